from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ascar import __version__, _core
from ascar.cli import doctor, problems
from ascar.errors import HistoryError, StudyError

COMMANDS = ["init", "doctor", "space", "tune", "apply", "restore", "export", "sweep", "report", "history"]


@pytest.mark.parametrize(
    "command",
    [*COMMANDS, "history ls", "history show", "history export", "workload record", "workload features"],
)
def test_every_command_has_help_with_examples(ascar, command):
    done = ascar(*command.split(), "--help")
    assert done.status == 0
    if command != "history":
        assert "Examples" in done.out
        assert f"ascar {command}" in done.out.partition("Examples")[2]


def test_without_a_command_it_shows_its_help(ascar):
    done = ascar()
    assert done.status == 0
    assert all(command in done.out for command in COMMANDS)


def test_the_version_is_the_package_s(ascar):
    said = ascar("--version").out.splitlines()
    assert said[0] == f"ascar {__version__}"
    assert said[2].startswith(f"ascard {__version__} (")
    assert "keeper" in said[2]
    assert said[3].startswith("extras: ")
    digest = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    assert re.fullmatch(rf"build: extension {digest[:12]}, ascard [0-9a-f]{{12}} \(SHA-256\)", said[5])


def test_the_version_is_told_where_nothing_else_is_installed(ascar, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    said = ascar("--version")
    assert said.status == 0
    assert said.out.splitlines()[0] == f"ascar {__version__}"
    assert "pip install ascard" in said.out
    assert "ascar[online]" in said.out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["tun"], "'tune'"),
        (["tune"], "STUDY.toml"),
        (["tune", "--no-such-option", "a.toml"], "--no-such-option"),
        (["sweep", "a.toml", "--replicates", "0"], "--replicates"),
        (["export", "a", "--as", "yaml"], "'yaml'"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(ascar, arguments, named):
    done = ascar(*arguments)
    assert done.status == 2
    assert named in done.error
    assert "--help" in done.error
    assert done.out == ""


def test_a_wrong_command_line_is_json_when_json_is_wanted(ascar):
    done = ascar("tune", "--json")
    assert done.status == 2
    assert done.document["error"]["exit_status"] == 2
    assert done.document["error"]["kind"] == "UsageError"
    assert done.document["error"]["message"] == done.error


def test_json_after_two_dashes_is_not_ours(ascar):
    assert ascar("tun", "--", "--json").out == ""


@pytest.mark.parametrize(
    ("raised", "kind", "status"),
    [
        (StudyError("study.nmae: unknown key"), "StudyError", 2),
        (HistoryError("history x: cannot be read"), "HistoryError", 1),
        (KeyboardInterrupt(), "Interrupted", 130),
    ],
)
def test_errors_have_a_line_a_status_and_a_document(ascar, monkeypatch, raised, kind, status):
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr("ascar.readiness.readiness", fail)
    assert ascar("doctor").status == status
    done = ascar("doctor", "--json")
    assert done.status == status
    assert done.document["error"] == {"kind": kind, "message": done.error, "exit_status": status}


def test_what_nobody_expected_is_one_line_and_a_file(ascar, monkeypatch, own_state):
    def fail(*_: object) -> None:
        raise ValueError("this\nand that")

    monkeypatch.setattr("ascar.readiness.readiness", fail)
    done = ascar("doctor")
    assert done.status == 1
    assert "unexpected ValueError: this and that" in done.error
    (report,) = own_state.rglob("crash-*.txt")
    assert str(report) in done.error
    assert "Traceback" in report.read_text()
    assert report.stat().st_mode & 0o777 == 0o600


def test_a_traceback_that_cannot_be_kept_is_still_one_line(ascar, monkeypatch, tmp_path):
    def fail(*_: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr("ascar.readiness.readiness", fail)
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/no-such")
    monkeypatch.setattr(problems, "Path", lambda _: tmp_path / "file" / "below")
    (tmp_path / "file").write_text("")
    done = ascar("doctor")
    assert done.status == 1
    assert "could not be written" in done.error


def test_what_a_child_prints_on_stdout_does_not_spoil_the_document(ascar, monkeypatch):
    real = doctor.doctor

    def noisy(json: bool = False) -> int:
        subprocess.run(["echo", "noise"], check=True)
        sys.stdout.write("more noise\n")
        return real(json=json)

    monkeypatch.setattr(doctor, "doctor", noisy)
    done = ascar("doctor", "--json")
    assert done.document["schema"] == "ascar/doctor/1"
    assert "noise" in done.err


def test_a_full_disk_under_stdout_is_one_line(process):
    command = f"{sys.executable} -m ascar doctor --json > /dev/full"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot write the output: No space left")
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m ascar doctor | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_help_needs_nothing_heavy():
    """Start-up is what completion and every script pays: no NumPy, no SQL, no data frames for a help page."""
    heavy = {"numpy", "scipy", "polars", "sqlalchemy", "matplotlib", "msgspec", "jax"}
    code = "import sys; from ascar.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert heavy.isdisjoint(done.stderr.split())


def test_help_starts_within_its_budget():
    def processor_s(*words: str) -> float:
        """Of the cheapest of five runs: others may be at work here."""
        took_s: list[float] = []
        for _ in range(5):
            child = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
            used = os.wait4(child.pid, 0)[2]
            child.returncode = 0
            took_s.append(used.ru_utime + used.ru_stime)
        return min(took_s)

    # What Python takes for some modules of its own tells how fast this machine is.
    assert processor_s("-m", "ascar", "--help") < 8 * processor_s("-c", "import asyncio")


def test_colours_are_off_when_piped_and_with_no_color(process):
    colour = re.compile(r"\x1b\[[\d;]*[349][0-7][;m]")
    assert "\x1b" not in process("doctor").out
    assert not colour.search(_in_terminal(["doctor"], {"NO_COLOR": "1", "TERM": "xterm-256color"}))
    assert colour.search(_in_terminal(["doctor"], {"NO_COLOR": "", "TERM": "xterm-256color"}))


def _in_terminal(arguments: list[str], environment: dict[str, str]) -> str:
    """What a command prints on a terminal."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "COLUMNS": "100", **environment}
    child = subprocess.Popen(
        [sys.executable, "-m", "ascar", *arguments],
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
        env=environment,
    )
    os.close(theirs)
    seen: list[bytes] = []

    def read() -> None:
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                return
            if not piece:
                return
            seen.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    assert child.wait(60) == 0
    reader.join()
    os.close(ours)
    return b"".join(seen).decode()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell, process):
    environment = {"_ASCAR_COMPLETE": f"complete_{shell}", "COMP_WORDS": "ascar t", "COMP_CWORD": "1"}
    environment |= {"_TYPER_COMPLETE_ARGS": "ascar t", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert "tune" in process(env=environment).out


def test_completion_can_be_installed(process, tmp_path):
    (tmp_path / ".bashrc").write_text("")
    done = process("--install-completion", "bash", env={"HOME": str(tmp_path), "SHELL": "/bin/bash"})
    assert done.status == 0, done.err
    assert any("ascar" in path.name for path in tmp_path.rglob("*") if path.is_file())
