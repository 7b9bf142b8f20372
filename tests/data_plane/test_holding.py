"""Windows and paces are in force, rules change them at work and end in time; nothing is dropped."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbd_peers as nbd
from ascar.program.node_binary import find_ascard
from data_plane_peers import Proxy, disk_of, fio, needed
from nbd_peers import CountingServer, RawClient, RawServer, Session, answering
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERYWHERE = "0,2147483647,0,2147483647,100,2147483647"


def rules(window: int, tau_us: int = 0) -> str:
    """One rule that sets a window and a pace."""
    return f"1,1000000\n{EVERYWHERE},0,{window * 100},{tau_us}\n"


def load(text: str, within_s: float, name: str = "a1") -> dict[str, Any]:
    """A trial, as a manager asks for it."""
    return {"message": "rules.load/1", "rules": name, "text": text, "within_s": within_s}


def counting(path: Path, delay_s: float) -> CountingServer:
    """A server of blocks that counts how many requests it has at once."""

    def asked(session: Session) -> Iterator[nbd.Asked]:
        session.negotiate()
        return session.requests()

    return CountingServer(path, delay_s, asked, Session.answer)


def work(proxy: Proxy, count: int, *, checked: bool = True) -> float:
    """So many reads at once, all of which are answered; the seconds that it took."""
    with RawClient(disk_of(proxy)) as client:
        client.negotiate()
        begun_s = time.monotonic()
        client.send(b"".join(nbd.request(nbd.READ, at, 0, 512) for at in range(count)))
        for at in range(count):
            answer = client.receive(528)
            assert not checked or answer == nbd.simple_reply(at) + bytes(512)
        return time.monotonic() - begun_s


def test_no_more_than_the_window_is_in_flight(start, folder):
    with counting(folder / "server.sock", 0.02) as server:
        proxy = start.proxy(server.path, "window = 8\n")
        took_s = work(proxy, 64)
        assert server.most == 8
        assert took_s >= 64 / 8 * 0.02
        assert proxy.log() == ""


def test_connections_of_one_client_share_their_stream(start, folder):
    with counting(folder / "server.sock", 0.2) as server:
        proxy = start.proxy(server.path, "window = 3\n")
        with RawClient(disk_of(proxy)) as one, RawClient(disk_of(proxy)) as other:
            for client in (one, other):
                client.negotiate()
                client.send(b"".join(nbd.request(nbd.READ, at, 0, 512) for at in range(4)))
            (stream,) = until(
                lambda: [it for it in proxy.streams() if (it["in_flight"], it["connections"]) == (3, 2)]
            )
            assert stream["window"] == 3.0
            for client in (one, other):
                for at in range(4):
                    assert client.receive(528) == nbd.simple_reply(at) + bytes(512)


def test_requests_leave_a_pace_apart(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path, "gap_us = 5000\n")
        took_s = work(proxy, 40)
        assert 39 * 0.005 <= took_s < 2.0
        assert sorted(server.gaps_s)[len(server.gaps_s) // 2] > 0.004


def test_without_a_window_all_that_is_asked_is_in_flight(start, folder):
    with counting(folder / "server.sock", 0.3) as server:
        proxy = start.proxy(server.path)
        work(proxy, 200)
        assert server.most > 150


def test_memory_is_bounded_whatever_a_client_asks(start, folder):
    def serve(session: Session) -> None:
        session.negotiate()
        for _ in session.requests():
            pass  # and answers nothing

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            client.socket.settimeout(0.5)
            asked = b"".join(nbd.request(nbd.READ, at, 0, 1 << 20) for at in range(100_000))
            with pytest.raises(TimeoutError):
                client.send(asked)
            (stream,) = proxy.streams()
            assert stream["in_flight"] == 1024


def test_a_stream_takes_little_memory(start, folder):
    def resident_kib() -> int:
        status = Path(f"/proc/{proxy.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1])

    with counting(folder / "server.sock", 0.0) as server, ExitStack() as stack:
        proxy = start.proxy(server.path, "window = 32\n")
        work(proxy, 2000)
        before_kib = resident_kib()
        clients = [stack.enter_context(RawClient(disk_of(proxy))) for _ in range(64)]
        for client in clients:
            client.negotiate()
            client.send(b"".join(nbd.request(nbd.READ, at, 0, 4096) for at in range(32)))
        for client in clients:
            client.receive(4112 * 32)
        assert (resident_kib() - before_kib) / len(clients) <= 256


def test_rules_change_a_load_at_work_and_drop_nothing(start, folder):
    with counting(folder / "server.sock", 0.005) as server:
        proxy = start.proxy(server.path)
        done = threading.Event()

        def change() -> None:
            chosen = random.Random(3)
            while not done.wait(0.01):
                window, tau_us = chosen.randrange(1, 20), chosen.choice([0, 0, 300, 3_000_000])
                assert proxy.ask(load(rules(window, tau_us), 30.0))["rules"] == "a1"
                if chosen.random() < 0.3:
                    assert proxy.ask({"message": "rules.stop/1"})["rules"] is None

        changing = threading.Thread(target=change)
        changing.start()
        try:
            for _ in range(3):
                work(proxy, 500)
        finally:
            done.set()
            changing.join()


def test_rules_end_in_time_and_everything_passes_again(start, folder):
    with counting(folder / "server.sock", 0.01) as server:
        proxy = start.proxy(server.path)
        told = proxy.ask(load(rules(2), 1.5))
        assert told == {"message": "rules.in-force/1", "controller": "client1", "rules": "a1"}
        work(proxy, 40)
        assert server.most <= 8  # the window that streams begin with
        until(lambda: "their time is over" in proxy.log())
        server.most = 0
        work(proxy, 100)
        assert server.most > 50
        assert proxy.log() == "ascard proxy: rules a1: their time is over; in force: none\n"


def deploy(proxy: Proxy, words: list[str], text: str | None = None) -> dict[str, Any]:
    """What `ascar sharp` prints."""
    if text is not None:
        (proxy.folder / "rules.txt").write_text(text)
    connection = ["--connection", str(proxy.folder / "connection.toml"), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "ascar", "sharp", *words, *connection],
        capture_output=True, text=True, check=False, cwd=proxy.folder,
        env={"ASCAR_RUNTIME_DIR": str(proxy.folder / "run"), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_deploying_shows_in_fio(start):
    # So slow that a busy machine keeps up: 640 reads a second at most, and 20 a place in the window.
    proxy = start.proxy(start.nbdkit("-t", "64", "--filter=delay", "memory", "64M", "rdelay=50ms"))
    measured = {"free": fio(disk_of(proxy), depth=32, seconds=1)["read"]["iops"]}
    deploy(proxy, ["deploy", "rules.txt", "--floor", "0%"], f"1,2\n{EVERYWHERE},100,0,0\n")
    measured["window 8"] = fio(disk_of(proxy), depth=32, seconds=1)["read"]["iops"]
    deploy(proxy, ["deploy", "rules.txt", "--floor", "0%"], rules(2))
    measured["window 2"] = fio(disk_of(proxy), depth=32, seconds=1)["read"]["iops"]
    shown = deploy(proxy, ["show"])
    (workload,) = shown["workloads"]
    assert workload["workload"] == "blocks"
    assert workload["rule_set"]["rules"][0]["used_times"] > 20
    deploy(proxy, ["down"])
    measured["down"] = fio(disk_of(proxy), depth=32, seconds=1)["read"]["iops"]
    assert measured["free"] > 1.5 * 160 and measured["down"] > 1.5 * 160, measured
    assert 0.6 * 160 < measured["window 8"] <= 1.1 * 160, measured
    assert 0.6 * 40 < measured["window 2"] <= 1.15 * 40, measured


def test_a_deployment_with_a_limit_ends_by_itself(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path)
        done = deploy(proxy, ["deploy", "rules.txt", "--floor", "0%", "--back-after", "2 s"], rules(4))
        assert done["controllers"] == ["client1"]
        assert proxy.ask({"message": "rules.show/1"})["on_trial"] is True
        until(lambda: proxy.ask({"message": "rules.show/1"})["rules"] is None)


def test_kept_rules_end_at_their_limit_although_control_is_gone_and_everything_passes(start, folder):
    with counting(folder / "server.sock", 0.01) as server:
        proxy = start.proxy(server.path)
        words = ["deploy", "rules.txt", "--floor", "0%", "--keep-for"]
        deploy(proxy, [*words, "1 h"], rules(4))
        done = deploy(proxy, [*words, "6 s"], rules(2))
        assert proxy.ask({"message": "rules.show/1"})["on_trial"] is False
        work(proxy, 40)
        assert server.most <= 8  # the window that streams begin with
        until(lambda: "their time is over" in proxy.log())
        server.most = 0
        work(proxy, 100)
        assert server.most > 50
        assert proxy.log() == f"ascard proxy: rules {done['rules']}: their time is over; in force: none\n"
        assert proxy.ask({"message": "rules.keep/1", "rules": "a1", "within_s": -1})["reason"].startswith(
            "within_s = -1"
        )


KEEPS = 'state_directory = "state"\n'


def keep(proxy: Proxy, text: str, within_s: float | None = None, name: str = "a1") -> None:
    """Rules that are kept, as a manager does it."""
    assert proxy.ask(load(text, 30.0, name))["rules"] == name
    limit = {} if within_s is None else {"within_s": within_s}
    assert proxy.ask({"message": "rules.keep/1", "rules": name, **limit})["rules"] == name


def shown(proxy: Proxy) -> dict[str, Any]:
    """What is in force."""
    return proxy.ask({"message": "rules.show/1"})


def test_kept_rules_survive_a_restart_and_those_on_trial_do_not(start, folder):
    with counting(folder / "server.sock", 0.01) as server:
        proxy = start.proxy(server.path, KEEPS)
        keep(proxy, rules(3), 3600)
        assert proxy.ask(load(rules(5), 30.0, "b2"))["rules"] == "b2"
        (file,) = (proxy.folder / "state").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        for end in (signal.SIGKILL, signal.SIGTERM):
            proxy.again(end)
            assert (shown(proxy)["rules"], shown(proxy)["on_trial"]) == ("a1", False)
            assert shown(proxy)["text"].splitlines()[0] == "1,1000000"
            server.most = 0
            work(proxy, 60)
            assert server.most <= 8
        assert proxy.log() == "ascard proxy: rules a1: were kept before this start; in force again\n"
        assert proxy.ask({"message": "rules.stop/1"})["rules"] is None
        proxy.again(signal.SIGKILL)
        assert (shown(proxy)["rules"], proxy.log(), list((proxy.folder / "state").iterdir())) == (
            None,
            "",
            [],
        )


def test_kept_rules_end_at_their_limit_over_a_restart(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path, KEEPS)
        keep(proxy, rules(3), 3.0)
        proxy.again(signal.SIGKILL)
        until(lambda: shown(proxy)["rules"] is None)
        keep(proxy, rules(3), 0.5)
        proxy.process.kill()
        time.sleep(0.6)
        proxy.again(signal.SIGKILL)
        assert shown(proxy)["rules"] is None
        assert "rules a1: their time is over; it is ignored: no rules are in force" in proxy.log()


def test_a_file_of_kept_rules_that_is_broken_newer_or_hostile_is_named_and_ignored(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path, KEEPS)
        keep(proxy, rules(3))
        (file,) = (proxy.folder / "state").iterdir()
        good = file.read_bytes()

        def link(path: Path) -> None:
            path.symlink_to("/etc/passwd")

        def write(content: bytes):
            return lambda path: path.write_bytes(content)

        for make, words in (
            (write(good[:-1]), "checksum"),
            (write(good.replace(b"a1", b"a2")), "checksum"),
            (write(good.replace(b"-rules 1 ", b"-rules 2 ")), 'version = "2"'),
            (write(b""), "is no file of kept rules"),
            (write(b"\0" * (5 << 20)), "more than 4194304 bytes"),
            (os.mkfifo, "is no file of kept rules"),
            (link, "symbolic link"),
            (Path.mkdir, "directory"),
        ):
            if file.is_dir():
                file.rmdir()
            file.unlink(missing_ok=True)
            make(file)
            proxy.again(signal.SIGKILL)
            assert shown(proxy)["rules"] is None
            assert proxy.log().count("\n") == 1 and words in proxy.log() and str(file) in proxy.log()
        # In the folder's way, rules stay in force, and what does not outlast the process is named.
        keep(proxy, rules(3))
        assert "does not outlast this process" in proxy.log()
        assert shown(proxy)["rules"] == "a1"
        file.rmdir()
        proxy.again(signal.SIGKILL)
        assert (shown(proxy)["rules"], proxy.log()) == (None, "")


@pytest.mark.slow
def test_rules_below_the_floor_are_refused(start):
    proxy = start.proxy(start.nbdkit("-t", "64", "--filter=delay", "memory", "64M", "rdelay=20ms"))
    start.started(
        [needed("fio", "fio"), "--name=load", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={disk_of(proxy)}",
         "--rw=randread", "--bs=4k", "--iodepth=32", "--time_based", "--runtime=90", "--output=/dev/null"]
    )  # fmt: skip
    until(proxy.streams)
    with pytest.raises(AssertionError, match="below the floor of 80%"):
        deploy(proxy, ["deploy", "rules.txt"], rules(2))
    assert proxy.ask({"message": "rules.show/1"})["rules"] is None


def test_the_control_socket_is_its_users_alone_and_answers_anything_in_a_line(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path)
        assert stat.S_IMODE(proxy.control.stat().st_mode) == 0o600
        chosen = random.Random(4)
        good = json.dumps(load(rules(2), 30.0)).encode()
        for _ in range(200):
            broken = bytearray(good)
            for _ in range(chosen.randrange(1, 8)):
                broken[chosen.randrange(len(broken))] = chosen.randrange(256)
            line = bytes(broken).replace(b"\n", b" ") + b"\n"
            assert json.loads(proxy.ask_line(line))["message"] in {"refusal/1", "rules.in-force/1"}
            proxy.ask({"message": "rules.stop/1"})
        for line in (b"\n", b"{}\n", b"[" * 100_000 + b"\n", b"x" * (2 << 20), b"\xff\xfe\n"):
            with suppress(ConnectionError):  # closed before it had read all of it
                said = json.loads(proxy.ask_line(line))
            assert said["message"] == "refusal/1" and "\n" not in said["reason"]
        work(proxy, 10)
        assert proxy.log() == ""


def turned(text: str, most: int) -> str:
    """Rules under which so many streams to a server are active at a time."""
    return text.replace("1,1000000", f"1,1000000,active_files={most}")


def test_no_more_streams_than_the_limit_are_active_and_all_have_their_turn(start, folder):
    with counting(folder / "server.sock", 0.01) as server:
        proxy = start.proxy(server.path, "window = 4\nactive_streams = 2\nturn_ms = 100\n")
        readers = [
            subprocess.Popen([sys.executable, "-c", READER, disk_of(proxy), "300"], stdout=subprocess.PIPE)
            for _ in range(5)
        ]
        active, waiting = 0, 0
        try:
            while any(reader.poll() is None for reader in readers):
                streams = proxy.streams()
                active = max(active, sum(one["has_turn"] for one in streams))
                waiting = max(waiting, sum(one["waiting"] for one in streams if not one["has_turn"]))
                time.sleep(0.05)  # the proxy answers eight at a time
            assert [reader.communicate()[0] for reader in readers] == [b"300 answers\n"] * 5
        finally:
            for reader in readers:
                reader.kill()
                reader.wait()
        assert (active, waiting > 0, proxy.log()) == (2, True, "")


def test_rules_say_how_many_streams_are_active(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            client.read(1, 4096)
            assert [one["has_turn"] for one in proxy.streams()] == [None]
            assert proxy.ask(load(turned(rules(2), 2), 30.0))["rules"] == "a1"
            client.read(2, 4096)
            assert [one["has_turn"] for one in proxy.streams()] == [True]
            proxy.ask({"message": "rules.stop/1"})
            assert [one["has_turn"] for one in proxy.streams()] == [None]


def test_a_client_that_stops_in_the_middle_of_a_request_holds_others_up_for_a_while_only(start, folder):
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path, "active_streams = 1\nturn_ms = 50\n")
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            client.send(nbd.request(nbd.WRITE, 1, 0, 4096) + bytes(100))
            until(lambda: [one["in_flight"] for one in proxy.streams()] == [1])
            begun_s = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-c", READER, disk_of(proxy), "3"], capture_output=True, check=True
            )
            assert done.stdout == b"3 answers\n"
            assert time.monotonic() - begun_s > 3


READER = f"""
import sys
sys.path.insert(0, {str(Path(nbd.__file__).parent)!r})
from pathlib import Path
import nbd_peers as nbd
with nbd.RawClient(Path(sys.argv[1])) as client:
    count = int(sys.argv[2])
    client.negotiate()
    client.send(b"".join(nbd.request(nbd.READ, at, 0, 512) for at in range(count)))
    for at in range(count):
        assert client.receive(528) == nbd.simple_reply(at) + bytes(512)
    print(count, "answers")
"""
"""A client that is a process, and so a stream, of its own."""


def test_what_its_streams_show_is_printed_for_the_agent(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path, "window = 8\n")
        command = [proxy.process.args[0], "proxy", "--config", proxy.config, "--watch"]
        with (
            RawClient(disk_of(proxy)) as client,
            subprocess.Popen(command, stdout=subprocess.PIPE) as watching,
        ):
            client.negotiate()
            client.read(1, 4096)
            assert watching.stdout is not None
            lines = map(json.loads, watching.stdout)
            found = next(line for line in lines if line["0.read_bytes_total"])
            watching.kill()
        assert (found["0.streams"], found["0.window"], found["0.read_bytes_total"]) == (1, 8.0, 4096)


def test_totals_go_on_when_a_client_leaves(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path)
        for reads in (1, 2):
            with RawClient(disk_of(proxy)) as client:
                client.negotiate()
                client.read(1, 4096)
            until(lambda: not proxy.streams())
            (gone,) = proxy.ask({"message": "rules.observe/1"})["gone"]
            assert gone == {
                "server": f"unix:{server.path}",
                "read_bytes": 4096 * reads,
                "written_bytes": 0,
                "replies": reads,
                "overloads": 0,
                "refused": 0,
                "silent": 0,
            }


def test_the_group_may_change_rules_where_the_file_says_so(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path, "control_mode = 0o660\n")
        assert stat.S_IMODE(proxy.control.stat().st_mode) == 0o660


def test_one_too_many_on_the_control_socket_hears_why(start, folder):
    with counting(folder / "server.sock", 0.0) as server, ExitStack() as stack:
        proxy = start.proxy(server.path)

        def listens() -> bool:
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            listening.connect(str(proxy.control))
            listening.sendall(b'{"message": "rules.listen/1"}\n')
            return b"rules.beat/1" in listening.makefile("rb").readline()

        for _ in range(8):
            until(listens)
        for _ in range(20):
            told = proxy.ask({"message": "rules.show/1"})
            assert told == {"message": "refusal/1", "reason": "connections: 8 are open; close one"}
        (proxy.folder / "rules.txt").write_text(rules(4))
        with pytest.raises(AssertionError, match="8 are open"):
            deploy(proxy, ["deploy", "rules.txt", "--floor", "0%"])


def test_a_proxy_that_ends_leaves_the_socket_of_another_alone(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path)
        for path in (proxy.control, disk_of(proxy)):
            path.unlink()
        disk_of(proxy).write_text("another's")
        assert proxy.end() == 0
        assert disk_of(proxy).read_text() == "another's" and not proxy.control.exists()


class DeafServer(RawServer):
    """Answers its first client's negotiation, and then reads nothing of it; serves others.

    Args:
        path: its socket.
    """

    def __init__(self, path: Path) -> None:
        self.ends = threading.Event()
        self._sessions = 0
        super().__init__(path, self._served)

    def _served(self, session: Session) -> None:
        self._sessions += 1
        is_first = self._sessions == 1
        if not is_first:
            answering(session)
            return
        session.negotiate()
        self.ends.wait()


def blocked(client: RawClient) -> None:
    """Write until nothing is taken any more."""
    client.negotiate()
    client.socket.settimeout(1.0)
    with pytest.raises(TimeoutError):
        for at in range(64):
            client.send(nbd.request(nbd.WRITE, at, 0, 1 << 20) + bytes(1 << 20))


def test_a_server_that_takes_nothing_of_one_client_serves_others_and_its_end_is_passed_on(start, folder):
    with DeafServer(folder / "server.sock") as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as client:
            blocked(client)
            done = subprocess.run(
                [sys.executable, "-c", READER, disk_of(proxy), "100"], capture_output=True, check=True
            )
            assert done.stdout == b"100 answers\n"
            assert len(proxy.streams()) == 1
            server.ends.set()
            until(lambda: not proxy.streams())
            assert proxy.log() == ""


@pytest.mark.slow
def test_a_client_that_leaves_a_server_that_takes_nothing_is_let_go(start, folder):
    with DeafServer(folder / "server.sock") as server:
        try:
            proxy = start.proxy(server.path)
            with RawClient(disk_of(proxy)) as client:
                blocked(client)
            assert len(proxy.streams()) == 1
            until(lambda: not proxy.streams(), 90.0)
        finally:
            server.ends.set()


def watched(proxy: Proxy) -> subprocess.CompletedProcess[str]:
    """A watch of a proxy that is not there, or whose socket is not to be had."""
    command = [proxy.process.args[0], "proxy", "--config", proxy.config, "--watch"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_watches_the_proxy_of_another_user(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path)
        os.chown(proxy.control, 65534, 65534)
        command = [proxy.process.args[0], "proxy", "--config", proxy.config, "--watch"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None and watching.stderr is not None
            first = watching.stdout.readline()
            watching.kill()
            assert first, watching.stderr.read()
        assert json.loads(first)["0.streams"] == 0


def test_only_where_nobody_listens_is_it_asked_whether_the_proxy_runs(start, folder):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path)
        proxy.process.kill()
        proxy.process.wait()
        found = [watched(proxy)]  # a socket that was left
        proxy.control.unlink()
        found.append(watched(proxy))
        for done in found:
            assert done.returncode == 1 and "is the proxy running?" in done.stderr
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(str(proxy.control))
            done = watched(proxy)
        assert done.returncode == 1 and "control = " in done.stderr and "running" not in done.stderr


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("window = 0\n", "window = 0: allowed are 1 to 256"),
        ("windows = 8\n", "windows"),
        ('workload = "a b"\n', 'workload = "a b"'),
    ],
)
def test_a_wrong_file_is_refused_in_a_line(folder, keys, words):
    config = folder / "proxy.toml"
    config.write_text(f'control = "c"\n{keys}[[route]]\nlisten = "unix:a"\nserver = "unix:b"\n', "utf-8")
    done = subprocess.run(
        [find_ascard(), "proxy", "--config", config], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr
