"""A program of one's own as a target: well-behaved, slow, lying, dead, babbling."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.space import Space, integer
from ascar.systems.asking import apply_checked
from ascar.systems.program import ProgramSystem
from ascar.testing import TargetContract

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

GOOD = """
import json, sys
values = dict(depth=8, width=2)
for line in sys.stdin:
    order = json.loads(line)
    if "sample" in order:
        print(json.dumps({"error": "no such request"}), flush=True)
        continue
    values = dict(depth=8, width=2) if "restore" in order else values | order.get("set", {})
    print(json.dumps({"ok": values}), flush=True)
open(sys.argv[1], "w").write("restored")
"""
SPACE = Space((integer("depth", (1, 64), default=8), integer("width", (1, 4), default=2)), name="program")


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., ProgramSystem]:
    def of(text: str = GOOD, **options: Any) -> ProgramSystem:
        (tmp_path / "settings.py").write_text(text)
        command = [sys.executable, str(tmp_path / "settings.py"), str(tmp_path / "ended")]
        system = ProgramSystem({"command": command, **options})
        system.adopt(SPACE)
        return system

    return of


class TestProgramContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _program(self, program: Callable[..., ProgramSystem]) -> None:
        self.program = program

    def make(self) -> ProgramSystem:
        return self.program()

    def options(self) -> Mapping[str, Any]:
        return {"command": ["true"]}


def test_its_input_ends_with_the_study(program: Callable[..., ProgramSystem], tmp_path: Path) -> None:
    with program() as system:
        apply_checked(system, SPACE.validate({"depth": 16, "width": 2}))
        assert system.read(("depth",)) == {"depth": 16}
        assert not (tmp_path / "ended").exists()
    assert (tmp_path / "ended").read_text() == "restored"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import time; time.sleep(60)", "does not answer within 0.3 s"),
        ("", "has ended"),
        ("import sys; print('hello', flush=True); sys.stdin.read()", "Expecting value"),
        ("import sys; print('[' * 9000, flush=True); sys.stdin.read()", "program"),
        ("import sys; print('{}', flush=True); sys.stdin.read()", "answers neither ok nor error: b'{}'"),
        ("import sys; print('{\"ok\": 1}', flush=True); sys.stdin.read()", "which is not a table"),
        (
            "import sys; print('x' * (2 << 20), flush=True); sys.stdin.read()",
            "answers more than 1048576",
        ),
        ('import sys; print(\'{"error": "disk full"}\', flush=True); sys.stdin.read()', "disk full"),
        (GOOD.replace('order.get("set", {})', "{}"), "depth = 16 was set, but the system reads back 8"),
    ],
)
def test_one_that_misbehaves_fails_the_trial_by_name(
    program: Callable[..., ProgramSystem], text: str, words: str
) -> None:
    begun_s = time.monotonic()
    with program(text, answer_s=0.3 if "sleep" in text else 5.0) as system:
        with pytest.raises(StageFailed) as caught:
            apply_checked(system, SPACE.validate({"depth": 16, "width": 2}))
        assert words in caught.value.message
        if "sleep" in text:
            os.kill(system._program._pipe._process.pid, signal.SIGKILL)  # type: ignore[union-attr]
    assert time.monotonic() - begun_s < 12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"command": []}, "target: must say how values are put in force: by `command`"),
        ({"command": ["a\0b"]}, "target.command: must name a program"),
        ({"command": ["true"], "answer_s": 0}, "target.answer_s = 0"),
        ({"command": "true"}, "target.command"),
        ({}, "target: must say how values are put in force"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        ProgramSystem(options)
    assert words in caught.value.message, caught.value.message


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(EnvironmentLacks, match="target.command = '/no/such/program': No such file"):
        ProgramSystem({"command": ["/no/such/program"]}).__enter__()


STUDY = """
[study]
name = "cache"
objective = "maximize requests_per_s"
budget = "20 s"
[target]
kind = "program"
command = ["PYTHON", "./settings.py", "./ended"]
[space.parameters.depth]
kind = "ordinal"
values = [8, 16]
default = 8
cost = "dyn-app"
[workload]
kind = "command"
argv = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo 5 requests/s; sleep 0.1; done"]
metrics = { requests_per_s = "regex:([0-9.]+) requests/s" }
[measurement]
load_min = "500 ms"
load_max = "1 s"
reading = "100 ms"
[stop]
trials = 2
[verify]
runs_min = 2
runs_max = 2
[online]
"""


def test_it_is_tuned_offline_by_the_file_that_a_session_takes(
    ascar_in: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = ascar_in(tmp_path, "tune", "study.toml", "--json")
    assert done.returncode in (0, 3), done.stderr
    assert json.loads(done.stdout)["study"] == "cache"
    assert (tmp_path / "ended").read_text() == "restored"


def test_an_adapter_serves_it_to_an_agent(
    ascar_in: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    requests = '{"get": true}\n{"set": {"depth": 16}}\n{"set": {"depth": 17}}\n{"restore": true}\n'
    done = ascar_in(tmp_path, "adapter", "study.toml", input_text=requests)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0] == answers[3] == {"ok": {"depth": 8}}
    assert answers[1] == {"ok": {"depth": 16}}
    assert "depth" in answers[2]["error"]
    assert (tmp_path / "ended").read_text() == "restored"
    wrong = ascar_in(tmp_path, "adapter")
    assert wrong.returncode == 2
    assert "name a study file, or a session's socket with --connect" in wrong.stderr


@pytest.fixture
def ascar_in(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    (tmp_path / "settings.py").write_text(GOOD)
    (tmp_path / "study.toml").write_text(STUDY.replace("PYTHON", sys.executable))

    def run(folder: Path, *words: str, input_text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "ascar", *words],
            cwd=folder,
            env={**os.environ, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)},
            input=input_text,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
