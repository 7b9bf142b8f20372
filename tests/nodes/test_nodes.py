"""Nodes, this machine and one behind a real SSH server: programs, files, facts, and a keeper there."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks, KeeperLost, StageFailed, StudyError
from ascar.nodes import Node, node_of
from ascar.program.node_binary import find_ascard
from ascar.systems.keeper import Keeper

if TYPE_CHECKING:
    from collections.abc import Iterator

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
STRANGE = ["two words", "", "$(touch /tmp/never)", "'quotes\"", "new\nline", "a;b|c&d", "-o", "*"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


class Server:
    """An SSH server of the tests' own, with keys of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        (folder / "authorized").write_bytes((folder / "user.pub").read_bytes())
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
            f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
            "PermitRootLogin prohibit-password\nUsePAM no\n"
        )
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {(folder / 'host.pub').read_text()}")
        (folder / "settings").write_text(
            f"Host *\nIdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
            f"StrictHostKeyChecking yes\nUser {getpass.getuser()}\n"
        )
        Path("/run/sshd").mkdir(exist_ok=True) if os.geteuid() == 0 else None
        self.log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            [str(SSHD), "-D", "-e", "-f", folder / "sshd_config"], stderr=self.log, start_new_session=True
        )

    def table(self, **keys: Any) -> dict[str, Any]:
        return {"host": "127.0.0.1", "port": self.port, "settings": str(self.folder / "settings"), **keys}

    def ready(self) -> None:
        end_s = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert time.monotonic() < end_s, (self.folder / "log").read_text()
                time.sleep(0.05)
            else:
                return

    def cut(self) -> None:
        """Every connection ends at once, as when the network is gone."""
        listed = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, check=False)
        for pid in listed.stdout.split():
            os.kill(int(pid), signal.SIGKILL)

    def end(self) -> None:
        self.cut()
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("the OpenSSH server is not installed")
    with tempfile.TemporaryDirectory(prefix="ascar-sshd-") as folder:
        server = Server(Path(folder))
        try:
            server.ready()
            yield server
        finally:
            server.end()


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
        end_s = time.monotonic() + 20
        while file.read_text() != "before\n":
            assert time.monotonic() < end_s
            time.sleep(0.02)
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
