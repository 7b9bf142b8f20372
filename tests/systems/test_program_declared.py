"""A program that its study describes: started, set, read back, ended, and put back whoever is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.harness import free_port

from ascar.errors import EnvironmentLacks, Refused, StageFailed, StudyError
from ascar.space import ChangeCost, Space, boolean, categorical, floating, integer
from ascar.systems.asking import apply_checked
from ascar.systems.keeper import restore_all
from ascar.systems.program import ProgramSystem
from ascar.systems.program.commands import CommandPlace
from ascar.systems.program.unit import Unit
from ascar.testing import TargetContract
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A server with settings in its words, its variables and a file, and others that are set while it runs; also
# its own client.
SERVER = r"""
import json, os, socket, subprocess, sys, time
from pathlib import Path
port, words = int(sys.argv[1]), sys.argv[2:]
if words[:1] == ["ask"]:
    with socket.create_connection(("127.0.0.1", port), 5) as line:
        line.sendall((" ".join(words[1:]) + "\n").encode())
        answer = line.makefile().read()
    print(answer, end="")
    sys.exit("no" in answer.split()[:1])
log = Path("log")
with log.open("a") as file:
    file.write(f"started {' '.join(words)} {os.environ.get('LEVEL', 'unset')}\n")
if "13" in words:
    sys.exit("thirteen is not allowed")
subprocess.Popen(["sleep", "1000"], start_new_session=True)
values = dict(depth="8", ratio="0.5")
listening = socket.create_server(("127.0.0.1", port))
if "7" in words:
    listening.close(); time.sleep(1000)
while True:
    line, _ = listening.accept()
    asked = line.makefile().readline().split()
    if asked[:1] == ["set"]:
        values[asked[1]] = "8" if asked[2] == "66" else asked[2]
        answer = "ok" if asked[2] != "65" else "no such depth"
    elif asked[:1] == ["get"]:
        answer = values[asked[1]]
    elif asked[:1] == ["all"]:
        answer = "\n".join(f"{name} = {value}" for name, value in values.items())
    elif asked[:1] == ["reset"]:
        with log.open("a") as file:
            file.write("reset\n")
        answer = "ok"
    elif asked[:1] == ["die"]:
        os._exit(3)
    else:
        answer = "what?"
    line.sendall(f"{answer}\n".encode()); line.close()
"""
RESTART, ONLINE = ChangeCost.APP_RESTART, ChangeCost.DYN_APP
SPACE = Space(
    (
        integer("width", (1, 20), default=2, cost=RESTART),
        integer("depth", (1, 99), default=8, cost=ONLINE),
        floating("ratio", (0.0, 1.0), step=0.25, default=0.5, cost=ONLINE),
        categorical("level", ("low", "high"), default="low", cost=RESTART),
        boolean("deep", default=False, cost=RESTART),
        integer("much", (1, 5), default=3, when="deep == true", cost=RESTART),
    ),
    name="program",
)


class Place:
    """A folder with the server, its file of settings, and the options of a study."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        (folder / "server.py").write_text(SERVER)
        self.file = folder / "settings.json"
        self.file.write_bytes(b'{"deep":false,\r\n  "other" : "\xc3\xb6",  "much": 1}\r\n')
        self.file.chmod(0o640)
        self.before = self.file.read_bytes()

    def words(self, *words: str) -> list[Any]:
        return [sys.executable, str(self.folder / "server.py"), str(self.port), *words]

    def options(self, **changed: Any) -> dict[str, Any]:
        options: dict[str, Any] = {
            "start": [*self.words("{width}"), ["--deep", "{much}"]],
            "listen": f"127.0.0.1:{self.port}",
            "health": self.words("ask", "all"),
            "apply": self.words("ask", "set", "{name}", "{value}"),
            "check": self.words("ask", "get", "{name}"),
            "environment": {"LEVEL": "{level}"},
            "directory": str(self.folder),
            "file": [{"path": str(self.file), "keys": {"deep": "{deep}", "much": "{much}"}}],
            "end_s": 5.0,
            **changed,
        }
        return {key: value for key, value in options.items() if value is not None}

    def system(self, space: Space = SPACE, **changed: Any) -> ProgramSystem:
        system = ProgramSystem(self.options(**changed))
        system.adopt(space)
        return system

    def log(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def processes(self) -> list[str]:
        """Processes whose working directory is the folder."""
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdecimal() and (entry / "cwd").readlink() == self.folder:
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found

    def is_as_before(self) -> bool:
        same = self.file.read_bytes() == self.before and self.file.stat().st_mode & 0o777 == 0o640
        return same and self.processes() == []


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "place").mkdir()
    return Place(tmp_path / "place")


def setting(**changed: Any) -> Any:
    return SPACE.validate({**SPACE.default(), **changed})


class TestDeclaredContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _place(self, place: Place) -> None:
        self.place = place

    def make(self) -> ProgramSystem:
        space = Space((SPACE["width"], SPACE["depth"]), name="program")
        return self.place.system(space, environment=None, file=None, start=self.place.words("{width}"))

    def options(self) -> Mapping[str, Any]:
        return self.place.options(environment=None, file=None, start=self.place.words("{width}"))


def test_every_way_reaches_it_and_everything_is_put_back(place: Place, tmp_path: Path) -> None:
    with place.system() as system:
        apply_checked(system, setting())
        assert json.loads(place.file.read_text()) == {"deep": False, "other": "ö", "much": 1}
        change = apply_checked(system, setting(depth=20, ratio=0.75))
        assert (change.category, set(change.parameters)) == (0, {"depth", "ratio"})
        assert system.read(("depth", "ratio", "deep")) == {"depth": 20, "ratio": 0.75, "deep": False}
        change = apply_checked(system, setting(deep=True, much=4, level="high", depth=20))
        assert change.category == 1
        assert place.file.read_bytes() == place.before.replace(b"false", b"true").replace(b"1}", b"4}")
        assert system.read(("depth", "ratio")) == {"depth": 20, "ratio": 0.5}, "set again after the restart"
        assert system.sample().gauges["program_memory_bytes"] > 1e6
        assert place.log() == ["started 2 low", "started 2 --deep 4 high"]
        directory = system.workspace.directory
        assert directory.stat().st_mode & 0o777 == 0o700
    assert place.is_as_before()
    assert not directory.exists()
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_each_trial_can_begin_from_the_same_state(place: Place) -> None:
    with place.system(reset=place.words("ask", "reset")) as system:
        apply_checked(system, setting())
        apply_checked(system, setting())
    assert place.log() == ["started 2 low", "reset", "reset"]
    wiped = ["sh", "-c", "echo wiped >> log"]
    with place.system(reset=wiped, reset_stopped=True) as system:
        apply_checked(system, setting())
        apply_checked(system, setting())
    assert place.log()[3:] == ["wiped", "started 2 low"] * 2


def test_what_goes_wrong_fails_the_trial_by_name_and_the_next_one_is_tried(place: Place) -> None:
    with place.system(health_s=1.0) as system:
        for wrong, words in (
            ({"width": 13}, "exited with 1: thirteen is not allowed"),
            ({"width": 7}, "not ready after 1 s: nothing accepts connections at"),
            ({"depth": 65}, "target.apply: "),
            ({"depth": 66}, "depth = 66 was set, but the system reads back 8"),
        ):
            with pytest.raises(StageFailed) as caught:
                apply_checked(system, setting(**wrong))
            assert words in caught.value.message, caught.value.message
        apply_checked(system, setting(width=3))
        subprocess.run(place.words("ask", "die"), check=False)
        with pytest.raises(StageFailed, match="exited with 3"):
            _until_raised(system.sample)
        apply_checked(system, setting(width=3))
    assert place.is_as_before()


def _until_raised(call: Callable[[], object]) -> None:
    end_s = time.monotonic() + 30
    while time.monotonic() < end_s:
        call()
        time.sleep(0.01)


def test_a_command_that_hangs_or_floods_is_killed(place: Place) -> None:
    for command, words in (
        (["sleep", "1000"], "took longer than 0.5 s"),
        (["sh", "-c", "yes; sleep 1000"], "wrote more than"),
        (["sh", "-c", "echo why >&2; exit 3"], "exited with 3: why"),
    ):
        with (
            place.system(reset=command, command_s=0.5 if command[-1] == "1000" else 20.0) as system,
            pytest.raises(StageFailed) as caught,
        ):
            system.apply(setting())
        assert words in caught.value.message


def test_another_program_s_edit_is_noticed_and_stays(place: Place) -> None:
    with place.system() as system:
        system.apply(setting(deep=True, much=3))
        place.file.write_text('{"deep": true, "much": 9}')
        with pytest.raises(StageFailed, match="another program has changed it"):
            system.apply(setting(deep=False))
    assert place.file.read_text() == '{"deep": true, "much": 9}'
    assert place.processes() == []


def test_a_port_that_is_taken_is_refused_and_a_program_that_is_missing_named(place: Place) -> None:
    with (
        socket.create_server(("127.0.0.1", place.port)),
        place.system() as system,
        pytest.raises(Refused, match="another program accepts connections there"),
    ):
        system.apply(setting())
    with pytest.raises(EnvironmentLacks, match=r"target.start\[0\] = 'no-such-program'"):
        place.system(start=["no-such-program", "{width}", "{much}"]).__enter__()
    assert place.is_as_before()


def test_a_program_that_runs_already_gets_its_values_back(place: Place) -> None:
    server = subprocess.Popen(place.words("2"), cwd=place.folder, stdout=subprocess.DEVNULL)
    space = Space((SPACE["depth"], SPACE["ratio"]), name="program")
    outside: dict[str, Any] = dict.fromkeys(("start", "environment", "file"))
    try:
        place_ready(place)
        subprocess.run(place.words("ask", "set", "depth", "31"), check=True, stdout=subprocess.DEVNULL)
        for whole in (False, True):
            if whole:
                asking = " ".join(place.words("ask", "set"))
                script = f'{asking} depth "$1" && {asking} ratio "$2"'
                apply = ["sh", "-c", script, "sh", "{depth}", "{ratio}"]
                outside |= {"apply": apply, "check": place.words("ask", "all")}
            with place.system(space, **outside) as system:
                apply_checked(system, space.validate({"depth": 5, "ratio": 1.0}))
                assert system.read(("depth", "ratio")) == {"depth": 5, "ratio": 1.0}
            told = subprocess.run(
                place.words("ask", "all"), capture_output=True, text=True, check=True
            ).stdout
            assert told == "depth = 31\nratio = 0.5\n"
    finally:
        server.kill()
        server.wait()


def place_ready(place: Place) -> None:
    words = place.words("ask", "all")
    until(lambda: subprocess.run(words, capture_output=True, check=False).returncode == 0, 60)


CLIENT = """
import json, sys
sys.path[:0] = json.loads(sys.argv[2])
from test_program_declared import SPACE, setting
from ascar.systems.program import ProgramSystem
system = ProgramSystem(json.loads(sys.argv[1]))
system.adopt(SPACE)
def deep(number):
    return {"deep": True, "much": 2} if number % 2 else {}
with system:
    number = 0
    while True:
        system.apply(setting(width=1 + number % 3, depth=1 + number % 50, **deep(number)))
        print("applied", flush=True)
        number += 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["client", "keeper", "both"])
def test_whoever_is_killed_the_program_ends_and_the_file_comes_back(
    place: Place, whom: str, tmp_path: Path, seed: int
) -> None:
    def journals() -> list[Path]:
        return list(tmp_path.rglob("*.jsonl"))

    source = random.Random(f"{whom} {seed}")
    here = Path(__file__).parent
    paths = [str(here), str(here.parents[1])]
    for _ in range(4):
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, json.dumps(place.options()), json.dumps(paths)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert client.stdout is not None
        if source.random() < 0.7:
            client.stdout.readline()
        time.sleep(source.uniform(0, 0.6))
        keepers = _children(client.pid, "ascard")
        for pid in keepers if whom != "client" else ():
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(pid, signal.SIGKILL)
        if whom != "keeper":
            client.kill()
        if whom == "keeper" and keepers:
            client.stdout.read()
        client.kill()
        client.wait()
        client.stdout.close()
        end_s = time.monotonic() + 60
        while not place.is_as_before() or list(tmp_path.glob("ascar-program-*")) or journals():
            assert time.monotonic() < end_s, (place.processes(), place.file.read_bytes(), journals())
            if whom != "client":
                restore_all()
            time.sleep(0.05)


def _children(parent: int, name: str) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(parent), name], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


SYSTEMCTL = """#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/asked"
case $1 in
    show) echo loaded ;;
    is-active) cat "$here/state"; test "$(cat "$here/state")" = active ;;
    stop) echo inactive > "$here/state" ;;
    reset-failed) ;;
    *) echo active > "$here/state" ;;
esac
"""


@pytest.mark.parametrize(("state", "verb"), [("active", "restart"), ("inactive", "stop"), ("failed", "stop")])
def test_a_unit_is_brought_back_to_the_state_in_which_it_was_found(
    tmp_path: Path, state: str, verb: str
) -> None:
    """With a program in the place of systemctl: containers have no systemd."""
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(SYSTEMCTL)
    systemctl.chmod(0o755)
    (tmp_path / "state").write_text(f"{state}\n")
    unit = Unit("x.service", of_user=False, place=CommandPlace(tmp_path, 10.0), systemctl=str(systemctl))
    unit.do("restart")
    unit.check_alive()
    unit.do("stop")
    with pytest.raises(StageFailed, match=r"x.service is inactive"):
        unit.check_alive()
    assert unit.restoring() == [str(systemctl), verb, "x.service"]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[:5] == [
        "show --property=LoadState --value x.service",
        "is-active x.service",
        "reset-failed x.service",
        "restart x.service",
        "is-active x.service",
    ]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"command": ["true"]}, "is not allowed with target.command"),
        ({"start": None, "check": None}, "target.restore: missing"),
        ({"start": None, "apply": None, "file": None}, "target: must say how values are put in force"),
        ({"start": [["a", "b"]]}, "must begin with the name of a program"),
        ({"start": ["a\0b"]}, "none with a zero byte"),
        ({"start": "redis"}, "target.start = 'redis'"),
        ({"service": "x.service"}, "target.service: is not allowed with target.start"),
        ({"start": None, "service": "a b"}, "target.service = 'a b'"),
        ({"listen": "somewhere"}, "target.listen = 'somewhere'"),
        ({"health_s": 0}, "target.health_s = 0"),
        ({"end_s": 51.0}, "target.end_s = 51.0: must be above 0, and at most 50"),
        ({"restart": {"sometimes": ["true"]}}, "target.restart.'sometimes': must be one of dyn-kernel"),
        ({"restart": {"app-restart": ["true"]}}, "ascar starts the program of `start` anew"),
        ({"reset_stopped": True}, "target.reset_stopped = true: needs `reset`"),
        ({"restore": ["x", "--password=1"]}, "looks like a secret"),
        ({"environment": {"A B": "1"}}, "target.environment.'A B'"),
        ({"file": [{"path": "a.conf", "keys": {"a": 1}}]}, "target.file[0].path = 'a.conf'"),
        ({"file": [{"path": "/a.conf"}]}, "must have a `template`, `keys`, or both"),
        ({"file": [{"path": "/a", "keys": {"a": 1}}]}, "target.file[0].format: missing"),
        ({"file": [{"path": "/a", "keys": {"a": 1}, "format": "yaml"}]}, "must be one of 'conf', 'env'"),
        ({"file": [{"path": "{directory}/a.conf", "keys": {"a": 1}}]}, "target.file[0].template: missing"),
        ({"booleans": "y/n"}, "target.booleans = 'y/n'"),
        ({"helth": ["true"]}, "did you mean 'health'?"),
    ],
)
def test_mistakes_are_named_before_anything_is_touched(place: Place, changed: Any, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        ProgramSystem(place.options(**changed))
    assert words in caught.value.message, caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"start": ["x", "{widht}", "{width}"]}, "names {widht}, which is no parameter"),
        ({"apply": None, "check": None}, "space.parameters.depth: nothing in [target] names {depth}"),
        ({"start": ["x", "{width}", "{depth}"]}, "space.parameters.depth.cost = 'dyn-app': `start` or"),
        ({"start": ["x"], "apply": ["y", "{width}"]}, "space.parameters.depth: nothing in [target]"),
        ({"start": ["x"]}, "space.parameters.width.cost = 'app-restart': `apply` sets it while"),
        ({"environment": {"A": "{nothing}"}}, "target.environment.A: names {nothing}"),
        ({"file": [{"path": "/a.conf", "keys": {"a": "{b}"}}]}, "target.file[0].keys.a: names {b}"),
        ({"file": [{"path": "/a.conf", "template": "/no/such"}]}, "target.file[0].template = '/no/such'"),
    ],
)
def test_a_parameter_that_reaches_nothing_is_named(place: Place, changed: Any, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        place.system(**changed)
    assert words in caught.value.message, caught.value.message
    assert "\n" not in caught.value.message


def test_a_template_leaves_out_lines_of_what_does_not_apply(place: Place) -> None:
    template = place.folder / "settings.in"
    template.write_bytes(b"# {not} a name, {{width}}, { width }\nwidth={width}\nmuch={much}\r\nlatin \xf6\n")
    made = {"path": "{directory}/made.conf", "template": str(template)}
    space = Space((SPACE["width"], SPACE["deep"], SPACE["much"]), name="program")
    start = place.words("{width}", "{deep}")
    with place.system(space, start=start, environment=None, file=[made], apply=None, check=None) as system:
        system.apply(space.default())
        text = (system.workspace.directory / "made.conf").read_bytes()
        assert text == b"# {not} a name, {width}, { width }\nwidth=2\nlatin \xf6\n"
        system.apply(space.validate({"width": 3, "deep": True, "much": 5}))
        text = (system.workspace.directory / "made.conf").read_bytes()
        assert text.endswith(b"width=3\nmuch=5\r\nlatin \xf6\n")
