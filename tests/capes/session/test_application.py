"""An application of one's own, with either learner: knobs and readings by lines of JSON, without root."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ascar.capes.session.files import agent_text, interface_text
from ascar.capes.session.study import OnlineStudy
from ascar.errors import StudyError
from studies import environment_of

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
EXAMPLE = EXAMPLES / "capes-application.toml"
START = {"batch_requests": 8, "compression": "off"}
CLASSIC = """
[online.learner.classic]
preset = "game"
hidden_size = 16
ticks_per_observation = 2
"""
LIMIT_S = 200.0


def as_nobody():
    """What makes a command run without root, where the machine allows it."""
    words = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]
    try:
        done = subprocess.run([*words, "id", "-u"], capture_output=True, text=True, check=False)
    except OSError:
        return []
    return words if done.stdout.strip() == "1000" else []


def ascar(*words):
    return [sys.executable, "-P", "-m", "ascar", "capes", *map(str, words)]


def assert_it_is_shown_on_a_terminal(place):
    """`status` on a terminal: another screen, refreshed at each tick, until ^C."""
    main, terminal = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    process = subprocess.Popen(
        ascar("status", place), stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    shown, end = b"", time.monotonic() + LIMIT_S
    try:
        while shown.count(b"maximize requests_per_s") < 5:  # five times refreshed
            assert time.monotonic() < end, shown[-2000:]
            shown += os.read(main, 1 << 16)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # its end of the terminal is closed
            while piece := os.read(main, 1 << 16):
                assert time.monotonic() < end, shown[-2000:]
                shown += piece
        assert process.wait(LIMIT_S) in (0, 130)
    finally:
        process.kill()
        process.wait()
        os.close(main)
    assert b"\x1b[?1049h" in shown and b"\x1b[?1049l" in shown, "the screen before comes back"
    for words in (b"baseline", b"batch_requests", b"compression", b"prediction error"):
        assert words in shown, words
    assert b"Traceback" not in shown


@pytest.fixture
def daemons():
    ascard = Path(sys.executable).parent / "ascard"
    if subprocess.run([ascard, "interface", "--help"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ascard was built without agent and interface: run `make online`")


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["modern", "classic"])
def test_the_example_is_tuned_and_left_as_it_was(algorithm, tmp_path, daemons):
    if algorithm == "classic":
        pytest.importorskip("jax")
    study = tmp_path / "study.toml"
    text = EXAMPLE.read_text().replace("[online]\n", f'[online]\nalgorithm = "{algorithm}"\n', 1)
    study.write_text(text + (CLASSIC if algorithm == "classic" else ""))
    (tmp_path / "capes_application.py").write_text((EXAMPLES / "capes_application.py").read_text())
    place = tmp_path / "session"
    with (tmp_path / "up.log").open("wb") as log:
        command = [*as_nobody(), *ascar("up", study, "--folder", place, "--json")]
        session = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
    end = time.monotonic() + LIMIT_S
    seen = {}
    try:
        while not seen.get("learner") or seen["learner"]["changes"] < 2:
            assert session.poll() is None and time.monotonic() < end, (tmp_path / "up.log").read_text()
            time.sleep(0.5)
            done = subprocess.run(
                ascar("status", place, "--json"), capture_output=True, text=True, check=False
            )
            seen = json.loads(done.stdout) if done.returncode == 0 else {}
        if algorithm == "modern":
            assert_it_is_shown_on_a_terminal(place)
    finally:
        session.terminate()
        out, _ = session.communicate(timeout=LIMIT_S)
    assert seen["learner"]["algorithm"] == algorithm
    assert (seen["learner"]["epsilon"] is None) == (algorithm == "modern")
    ended = json.loads(out)
    assert (session.returncode, ended["stopped"], ended["problem"]) == (0, "asked", None)
    assert ended["defaults"] == START and ended["left_changed"] == {}
    assert ended["verdicts"]["applied"] >= 2
    assert json.loads((tmp_path / "application.json").read_text()) == START
    logs = {log.name: log.read_text() for log in place.glob("*.log")}
    assert "Traceback" not in "".join(logs.values()), logs


def test_what_a_program_sets_goes_into_the_agent_s_file():
    import tomllib

    study = OnlineStudy.read(EXAMPLE)
    assert study.target["command"][1] == str(EXAMPLES / "capes_application.py")
    agent = tomllib.loads(agent_text(study, environment_of(study), None))
    assert agent["knob"] == []
    (program,) = agent["program"]
    assert program["command"][-3:] == ["adapter", "--connect", "system.sock"]
    assert [one["name"] for one in program["knob"]] == ["batch_requests", "compression"]
    assert agent["collector"][0]["command"][1] == str(EXAMPLES / "capes_application.py")


def test_further_keys_are_handed_on():
    import tomllib

    text = EXAMPLE.read_text().replace(
        "[online.proof]",
        "[online.agent]\ncalendar = true\nsignificant_digits = 4\n[online.interface]\naction_timeout_s = 3\n"
        "database_per_workload = true\n[online.proof]",
    )
    study = OnlineStudy.parse(text)
    agent = tomllib.loads(agent_text(study, environment_of(study), None))
    assert agent["calendar"] is True and agent["significant_digits"] == 4
    interface = tomllib.loads(interface_text(study, environment_of(study)))
    assert interface["action_timeout_s"] == 3 and interface["database_per_workload"] is True


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[online.proof]", "[online.agent]\nnode = 'x'\n[online.proof]", "online.agent.node: is made from"),
        ("[online.proof]", "[online.interface]\nmode = 'x'\n[online.proof]", "online.interface.mode"),
        ("[online.proof]", "[online.learner]\nsession = 'x'\n[online.proof]", "online.learner.session"),
        ("[online.proof]", "[online.agent]\nsince = 2020-01-01\n[online.proof]", "online.agent.since"),
    ],
)
def test_mistakes_are_named(old, new, words):
    text = EXAMPLE.read_text().replace(old, new)
    assert text != EXAMPLE.read_text()
    with pytest.raises(StudyError) as caught:
        OnlineStudy.parse(text)
    assert words in caught.value.message, caught.value.message
