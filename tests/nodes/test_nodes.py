"""Nodes, this machine and one behind a real SSH server: programs, files, facts, and a keeper there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.harness import free_port

from ascar.capes.session.environment import RequestedEnvironment
from ascar.capes.session.study import OnlineStudy
from ascar.errors import AscarError, EnvironmentLacks, KeeperLost, StageFailed, StudyError
from ascar.history import History
from ascar.loops.offline import tune
from ascar.nodes import Node, node_of
from ascar.program.node_binary import find_ascard
from ascar.study import Study
from ascar.systems.keeper import Keeper
from ascar.systems.linux import Linux
from ascar.systems.place import Place
from ssh_server import Server, running_server
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.events import Event

STRANGE = ["two words", "", "$(touch /tmp/never)", "'quotes\"", "new\nline", "a;b|c&d", "-o", "*"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture(params=["local", "ssh"])
def node(request: pytest.FixtureRequest) -> Node:
    if request.param == "local":
        return node_of({"kind": "local"})
    return node_of(request.getfixturevalue("server").table())


def test_every_word_arrives_as_it_is(node: Node) -> None:
    done = node.run(["printf", "%s\\0", *STRANGE], 20)
    assert done.out.decode().split("\0")[:-1] == STRANGE
    assert not Path("/tmp/never").exists()


def test_input_output_and_the_exit_status(node: Node) -> None:
    done = node.run(["sh", "-c", "cat; echo oops >&2; exit 3"], 20, b"\0\xff" * 50_000)
    assert (done.status, done.out, done.err) == (3, b"\0\xff" * 50_000, "oops\n")


def test_one_that_does_not_end_is_killed(node: Node) -> None:
    begun_s = time.monotonic()
    with pytest.raises(StageFailed, match="does not end within 1 s"):
        node.run(["sleep", "60"], 1)
    assert time.monotonic() - begun_s < 10


def test_one_that_writes_without_end_is_killed(node: Node) -> None:
    with pytest.raises(StageFailed, match="writes more than 16777216 bytes"):
        node.run(["cat", "/dev/zero"], 60)


def test_a_program_that_is_not_there_is_named(node: Node) -> None:
    with pytest.raises(EnvironmentLacks, match="no-such-program"):
        node.run(["no-such-program"], 20)


def test_a_command_whose_caller_is_killed_does_not_come_later(server: Server, tmp_path: Path) -> None:
    slow, late = tmp_path / "settings", tmp_path / "late"
    connect = f"sleep 2; exec 3<>/dev/tcp/127.0.0.1/{server.port}; cat <&3 & exec cat >&3"
    text = (server.folder / "settings").read_text()
    slow.write_text(f"{text}ProxyCommand bash -c '{connect}'\n")
    table = {**server.table(), "settings": str(slow)}
    node_of(table).run(["touch", str(late)], 30)
    late.unlink()
    child = f"from ascar.nodes import node_of; node_of({table!r}).run(['touch', {str(late)!r}], 30)"
    with subprocess.Popen([sys.executable, "-c", child]) as process:
        time.sleep(1.5)
        process.kill()
    time.sleep(3)
    assert not late.exists()


def test_a_command_of_this_machine_is_killed_with_its_caller(tmp_path: Path) -> None:
    begun, late = tmp_path / "begun", tmp_path / "late"
    words = ["sh", "-c", 'touch "$1"; sleep 0.7; touch "$2"', "sh", str(begun), str(late)]
    child = f"from ascar.nodes import node_of; node_of({{'kind': 'local'}}).run({words!r}, 30)"
    with subprocess.Popen([sys.executable, "-c", child]) as process:
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    time.sleep(1)
    assert not late.exists()


def test_a_file_is_put_as_a_whole(node: Node, tmp_path: Path) -> None:
    path = tmp_path / "a $(file) 'name"
    node.put(b"one\0\xff", str(path), 0o640)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one\0\xff", 0o640)
    with pytest.raises(StageFailed, match="none/x"):
        node.put(b"", str(tmp_path / "none/x"))


def test_facts(node: Node) -> None:
    facts = node.facts()
    assert facts.kernel == os.uname().release
    assert (facts.uid, facts.architecture) == (os.geteuid(), os.uname().machine)
    assert facts.cpus >= 1 and facts.memory_bytes > 1 << 28


def test_a_keeper_there_restores_when_the_connection_is_cut(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "service.conf"
    file.write_text("before\n")
    node = node_of(server.table())
    keeper = Keeper("a test", ascard=find_ascard(), state_dir=tmp_path / "state", user=True, node=node)
    with keeper:
        keeper.file_replace(file, "changed\n")
        assert file.read_text() == "changed\n"
        server.cut()
        until(lambda: file.read_text() == "before\n", 20)
        with pytest.raises(KeeperLost):
            keeper.file_replace(file, "again\n")
    assert file.read_text() == "before\n"


@pytest.mark.root
@pytest.mark.machine
def test_settings_of_the_kernel_there(server: Server, tmp_path: Path) -> None:
    path = Path("/proc/sys/vm/page-cluster")
    before = int(path.read_text())
    with Keeper("a test", ascard=find_ascard(), state_dir=tmp_path, node=node_of(server.table())) as keeper:
        keeper.knob_write("vm.page-cluster", 1 + before % 5)
        assert int(path.read_text()) == 1 + before % 5
    assert int(path.read_text()) == before


SWAPPED = """
[study]
name = "far"
objective = "maximize score"
budget = "1 min"

[recommend]
margin = 0

[[node]]
name = "far"
host = "127.0.0.1"
port = {port}
settings = "{settings}"
ascard = "{ascard}"

[target]
kind = "linux"
settings = ["vm.page-cluster"]
node = "far"

[space.parameters.vm_page_cluster]
low = 0
high = 8

[workload]
kind = "command"
argv = ["sh", "-c", "{load}"]
[workload.metrics]
score = "regex:score ([0-9.]+)"

[measurement]
load_min = "300 ms"
load_max = "500 ms"
reading = "100 ms"
[stop]
trials = 6
[verify]
runs_min = 2
runs_max = 2
"""
READ = "while sleep 0.02; do echo score $((10 + $(cat /proc/sys/vm/page-cluster))); done"


def study_there(server: Server, load: str = READ) -> Study:
    settings = server.folder / "settings"
    return Study.parse(SWAPPED.format(port=server.port, settings=settings, ascard=find_ascard(), load=load))


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.machine
def test_the_kernel_of_a_node_is_tuned_and_put_back(server: Server, tmp_path: Path) -> None:
    path = Path("/proc/sys/vm/page-cluster")
    before = path.read_text()
    with History(tmp_path / "history.sqlite") as history:
        outcome = tune(study_there(server), history)
        trials = history.run(outcome.run_id).trials()
    assert path.read_text() == before
    for trial in trials:
        assert trial.metrics["score"] == 10 + trial.configuration["vm_page_cluster"], (
            "it was set, and read there"
        )
    assert len({trial.configuration["vm_page_cluster"] for trial in trials}) > 2
    assert outcome.machine["node"] == "far"
    assert outcome.machine["kernel"] == os.uname().release


@pytest.mark.root
@pytest.mark.machine
def test_a_node_whose_connection_is_cut_puts_itself_back_and_the_study_ends_in_order(
    server: Server, tmp_path: Path
) -> None:
    path = Path("/proc/sys/vm/page-cluster")
    before = path.read_text()
    seen: list[str] = []

    def listen(event: Event) -> None:
        if event.kind == "trial-finished" and len(seen) < 4:
            seen.append(path.read_text())
            if len(seen) == 4:
                server.cut()

    with History(tmp_path / "history.sqlite") as history, pytest.raises(AscarError) as caught:
        tune(study_there(server), history, listener=listen)
    assert "keeper" in caught.value.message
    until(lambda: path.read_text() == before, 20)
    assert len(set(seen)) > 1, "it had been changed"


def test_a_study_names_its_nodes() -> None:
    text = (
        '[study]\nname = "s"\nobjective = "maximize x"\nbudget = "1 min"\n{nodes}[target]\nkind = "linux"\n'
    )
    text += 'settings = ["vm.dirty_ratio"]\nnode = "b"\n'
    node = '[[node]]\nname = "{}"\nhost = "10.0.0.1"\n'
    found = Study.parse(text.format(nodes=node.format("a") + node.format("b")))
    assert found.target["node"] == {"name": "b", "host": "10.0.0.1"}
    moved = text.format(nodes=node.format("b").replace("10.0.0.1", "10.0.0.2"))
    assert Study.parse(moved).digest == found.digest, "where a node is reached does not change the study"
    for nodes, words in (
        ("", "target.node = 'b': must be the name of a [[node]]; there are none; add a [[node]] table"),
        (node.format("a"), "there are a"),
        (node.format("b") * 2, "node[1].name = 'b': is another node's"),
        ("[[node]]\nport = 3\n", "node[0].name: missing"),
        ("[node]\nname = 'b'\n", "node"),
    ):
        with pytest.raises(StudyError) as caught:
            Study.parse(text.format(nodes=nodes))
        assert words in caught.value.message, caught.value.message


def test_what_changes_this_machine_alone_says_so(server: Server) -> None:
    study = study_there(server)
    options = {key: value for key, value in study.target.items() if key != "kind"}
    space = Linux(options).space
    with pytest.raises(StudyError, match="target.node = 'far': `ascar apply` changes this machine alone"):
        Linux.placement(options, space, space.default(), Place())
    with pytest.raises(StudyError, match="by an agent there"):
        RequestedEnvironment.of(OnlineStudy.parse(f"{study.text}\n[online]\n"))


def test_one_that_cannot_be_reached_is_named(server: Server) -> None:
    nowhere = node_of(server.table(name="far", port=free_port()))
    with pytest.raises(EnvironmentLacks, match="node far: cannot be reached: .*refused"):
        nowhere.facts()
    stranger = server.table(name="stranger", host="localhost")
    with pytest.raises(EnvironmentLacks, match="node stranger: cannot be reached"):
        node_of(stranger).run(["true"], 20)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"kind": "rsh", "host": "a"}, "node.kind = 'rsh': must be one of local, ssh"),
        ({"host": "-oProxyCommand=touch /tmp/never"}, "node.host"),
        ({"host": "a b"}, "node.host = 'a b': must be a host"),
        ({"host": ""}, "node.host"),
        ({"host": "a", "port": 0}, "node.port"),
        ({"host": "a", "user": "b"}, "node.user: unknown key"),
        ({"host": "a", "connect_s": 0}, "node.connect_s"),
        ({"kind": "ssh"}, "node.host: missing"),
        ({"name": 5}, "node.name"),
    ],
)
def test_mistakes_are_named(table: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        node_of(table)
    assert words in caught.value.message, caught.value.message


def test_importing_costs_little() -> None:
    code = "import ascar.nodes, sys; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
