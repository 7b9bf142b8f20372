"""Redis behind the proxy: a real server and real clients, and what neither of them does."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.harness import free_port

from certificates import Authority
from data_plane_peers import Proxy, Starter, disk_of
from live_redis import LiveRedis, live_redis, redis_installed
from nbd_peers import RawServer, Session
from resp_peers import Push, Refusal, RespClient, command, commands, counting
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

RESP = 'protocol = "resp"\n'
EVERYWHERE = "0,2147483647,0,2147483647,100,2147483647"

needs_redis = pytest.mark.skipif(not redis_installed(), reason="no redis-server is installed")


@pytest.fixture(scope="module")
def redis() -> Iterator[LiveRedis]:
    """A server for all tests that do not end it."""
    with live_redis() as server:
        yield server


def before(start: Starter, server: LiveRedis | Path, keys: str = "", **terms: str) -> Proxy:
    """A proxy before a server."""
    path = server.socket if isinstance(server, LiveRedis) else server
    return start.proxy(path, keys, terms=RESP, **terms)


def only_stream(proxy: Proxy) -> dict[str, Any]:
    """What the only stream shows."""
    (stream,) = proxy.streams()
    return stream


def is_idle(proxy: Proxy) -> bool:
    """Whether nothing is in flight, and no connection passes unheld."""
    return all((it["in_flight"], it["passing"], it["waiting"]) == (0, 0, 0) for it in proxy.streams())


# What passes.


@needs_redis
def test_replies_are_those_of_the_server(start, redis):
    proxy = before(start, redis, "window = 3\n")
    plain = ["SET k v", "GET k", "GET none", "NOSUCH x", "INCR k", "ZADD z 1.5 m", "HSET h f 1", "HELLO 3"]
    both = ["ZSCORE z m", "HGETALL h", "GET none", "SMEMBERS none", "LRANGE l 0 -1"]
    asked = b"".join(command(*line.split()) for line in ["FLUSHALL", *both, *plain, *both, "HELLO 2", *both])
    asked += command("RPUSH", "l", "a", "b\r\n$3\r\n", "") + command("LRANGE", "l", "0", "-1")
    asked += command("EVAL", "return {1, {2, {'x', false}}, 'y'}", "0")
    asked += b'PING\r\n  set q "a b"\r\n\r\n*0\r\nget q\n' + command("ECHO", "the end")

    def answers(path: Path) -> bytes:
        with RespClient(path) as client:
            client.send(asked)
            found = b""
            while not found.endswith(b"$7\r\nthe end\r\n"):
                found += client.socket.recv(65536)
            return found

    def without_ids(said: bytes) -> list[bytes]:
        lines = said.split(b"\r\n")
        return [line for before, line in zip([b"", *lines], lines, strict=False) if before != b"id"]

    through, direct = (without_ids(answers(path)) for path in (disk_of(proxy), redis.socket))
    assert through == direct
    assert proxy.log() == ""


@needs_redis
@pytest.mark.parametrize("network", [False, True])
def test_a_pipeline_of_10000_is_answered_in_its_order(start, redis, network):
    port = free_port()
    route = {"listen": f"tcp:127.0.0.1:{port}"} if network else {}
    server = f"tcp:127.0.0.1:{redis.port}" if network else f"unix:{redis.socket}"
    proxy = start.proxy(server, "window = 16\n", terms=RESP, **route)
    with RespClient(port if network else disk_of(proxy)) as client:
        # All of it is sent before anything is read, as clients do.
        client.send(b"".join(command("ECHO", f"{at}:" + "x" * (at % 200)) for at in range(10_000)))
        for at in range(10_000):
            assert client.next() == f"{at}:".encode() + b"x" * (at % 200)
        stream = only_stream(proxy)
    assert stream["replies"] == 10_000
    assert stream["passing"] == 0
    assert proxy.log() == ""


@needs_redis
def test_values_of_tens_of_megabytes_come_whole(start, redis):
    proxy = before(start, redis, "window = 2\n")
    data = random.Random(3).randbytes(32 << 20)
    with RespClient(disk_of(proxy)) as client:
        sending = threading.Thread(
            target=client.send,
            args=(command("SET", "big", data) + 3 * command("GET", "big") + command("PING"),),
        )
        sending.start()
        assert client.next() == "OK"
        for _ in range(3):
            assert hashlib.sha256(client.next()).digest() == hashlib.sha256(data).digest()
        assert client.next() == "PONG"
        sending.join()
        stream = only_stream(proxy)
        assert client.ask("DEL", "big") == 1
    assert stream["written_bytes"] >= 32 << 20
    assert stream["read_bytes"] >= 3 * (32 << 20)
    assert stream["in_flight"] == 0


@needs_redis
def test_bytes_one_by_one_are_commands_all_the_same(start, redis):
    proxy = before(start, redis, "window = 1\n")
    with RespClient(disk_of(proxy)) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        for byte in command("MULTI") + command("SET", "k", "\r\n*1\r\n") + b"GET k\r\n" + command("EXEC"):
            client.send(bytes([byte]))
        assert [client.next() for _ in range(4)] == ["OK", "QUEUED", "QUEUED", ["OK", b"\r\n*1\r\n"]]
        assert is_idle(proxy)


@needs_redis
def test_clients_of_redis_itself_work(start, redis):
    proxy = before(start, redis, "window = 4\n")
    words = ["-s", str(disk_of(proxy))]
    benchmark = [
        redis.programs.path("benchmark"),
        *words,
        "-q",
        "-n",
        "5000",
        "-c",
        "8",
        "-P",
        "16",
        "-t",
        "set,get,lrange_100",
    ]
    done = subprocess.run(benchmark, capture_output=True, text=True, check=True, timeout=60)
    assert "requests per second" in done.stdout
    assert "rror" not in done.stdout + done.stderr
    cli = [redis.programs.path("cli"), *words]
    asked = subprocess.run([*cli, "-3", "HSET", "h2", "f", "1"], capture_output=True, text=True, check=True)
    assert asked.stdout.strip() in {"0", "1"}
    piped = b"".join(command("SET", f"p{at}", "v") for at in range(2000))
    done = subprocess.run([*cli, "--pipe"], input=piped, capture_output=True, check=True, timeout=60)
    assert b"errors: 0, replies: 2000" in done.stdout
    until(lambda: not proxy.streams())
    assert proxy.log() == ""


# What is held.


def test_no_more_than_the_window_is_in_flight(start, folder):
    with counting(folder / "server.sock", 0.02) as server:
        proxy = start.proxy(server.path, "window = 4\n", terms=RESP)
        with RespClient(disk_of(proxy)) as client:
            begun_s = time.monotonic()
            client.send(64 * command("GET", "k"))
            assert [client.next() for _ in range(64)] == 64 * ["OK"]
            assert time.monotonic() - begun_s >= 64 / 4 * 0.02
        assert server.most == 4


def test_connections_of_one_client_share_their_window_and_their_pace(start, folder):
    with counting(folder / "server.sock", 0.1) as server:
        proxy = start.proxy(server.path, "window = 3\n", terms=RESP)
        with RespClient(disk_of(proxy)) as one, RespClient(disk_of(proxy)) as other:
            for client in (one, other):
                client.send(4 * command("GET", "k"))
            until(lambda: any((it["in_flight"], it["connections"]) == (3, 2) for it in proxy.streams()))
            for client in (one, other):
                assert [client.next() for _ in range(4)] == 4 * ["OK"]
    with counting(folder / "paced.sock", 0.0) as server:
        proxy = start.proxy(server.path, "gap_us = 5000\n", terms=RESP)
        with RespClient(disk_of(proxy)) as client:
            client.send(20 * command("GET", "k"))
            assert [client.next() for _ in range(20)] == 20 * ["OK"]
        assert sum(server.gaps_s) >= 18 * 0.005, "the first may have come late"


@needs_redis
def test_deployed_rules_hold_a_load_at_work(start, redis):
    proxy = before(start, redis)
    load = [
        redis.programs.path("benchmark"),
        "-s",
        str(disk_of(proxy)),
        "-q",
        "-l",
        "-c",
        "2",
        "-P",
        "32",
        "-t",
        "set",
    ]
    with subprocess.Popen(load, stdout=subprocess.DEVNULL) as working:
        try:
            until(lambda: proxy.streams() and only_stream(proxy)["replies"] > 5000)
            rules = proxy.folder / "rules.txt"
            rules.write_text(f"1,1000000\n{EVERYWHERE},0,200,0\n")
            words = ["--connection", str(proxy.folder / "connection.toml"), "--json"]
            deploy = [sys.executable, "-m", "ascar", "sharp", "deploy", "--floor", "0%", *words, str(rules)]
            subprocess.run(deploy, check=True, capture_output=True, timeout=60)
            seen = [only_stream(proxy) for _ in range(50)]
            assert all(it["window"] == 2.0 and it["in_flight"] <= 2 for it in seen)
            assert max(it["in_flight"] for it in seen) > 0
            assert seen[-1]["replies"] > seen[0]["replies"]
            assert seen[-1]["ack_ewma_us"] > 0
            assert working.poll() is None
        finally:
            working.kill()


# What is no row of commands and replies.


@needs_redis
def test_a_pop_that_waits_takes_no_place_and_is_no_congestion(start, redis):
    proxy = before(start, redis, "window = 1\n")
    with RespClient(disk_of(proxy)) as waits, RespClient(disk_of(proxy)) as works:
        waits.say("BLPOP", "queue", "0")
        waits.say("ECHO", "behind")
        waiting = [RespClient(disk_of(proxy)) for _ in range(3)]
        for client, words in zip(
            waiting,
            [
                ("XREAD", "COUNT", "1", "BLOCK", "0", "STREAMS", "xs", "$"),
                ("WAIT", "1", "0"),
                ("BZPOPMIN", "zs", "0"),
            ],
            strict=True,
        ):
            client.say(*words)
        until(lambda: "blocked_clients:4" in str(redis.ask("INFO", "clients")))
        for _ in range(200):
            assert works.ask("PING") == "PONG"
        assert is_idle(proxy)
        ratio = only_stream(proxy)["pt_ratio"]
        assert redis.ask("RPUSH", "queue", "it") == 1
        assert waits.next() == [b"queue", b"it"]
        assert waits.next() == b"behind"
        # How long it took is not among the process times.
        assert only_stream(proxy)["pt_ratio"] == ratio
        assert waits.ask("PING") == "PONG"
        assert is_idle(proxy)
        for client in waiting:
            client.close()
        until(lambda: "blocked_clients:0" in str(redis.ask("INFO", "clients")))


@needs_redis
def test_a_client_that_leaves_while_it_waits_takes_nothing(start, redis):
    proxy = before(start, redis, "window = 2\n")
    for pipelined in (b"", 10 * command("PING")):
        with RespClient(disk_of(proxy)) as waits:
            waits.send(command("BLPOP", "orphan", "0") + pipelined)
            until(lambda: "blocked_clients:1" in str(redis.ask("INFO", "clients")))
        until(lambda: "blocked_clients:0" in str(redis.ask("INFO", "clients")))
    redis.ask("RPUSH", "orphan", "it")
    assert redis.ask("LLEN", "orphan") == 1
    redis.ask("DEL", "orphan")
    until(lambda: not proxy.streams())


@needs_redis
def test_messages_of_resp2_are_told_from_replies(start, redis):
    proxy = before(start, redis, "window = 1\n")
    with RespClient(disk_of(proxy)) as client:
        client.send(command("SUBSCRIBE", "a", "b") + command("PSUBSCRIBE", "p*") + command("PING"))
        assert [client.next() for _ in range(3)] == [
            [b"subscribe", b"a", 1],
            [b"subscribe", b"b", 2],
            [b"psubscribe", b"p*", 3],
        ]
        assert client.next() == [b"pong", b""]
        for channel in ("a", "px", "b"):
            redis.ask("PUBLISH", channel, "word")
        assert client.next() == [b"message", b"a", b"word"]
        assert client.next() == [b"pmessage", b"p*", b"px", b"word"]
        assert client.next() == [b"message", b"b", b"word"]
        assert isinstance(client.ask("GET", "k"), Refusal)
        client.send(command("UNSUBSCRIBE") + command("PUNSUBSCRIBE") + command("UNSUBSCRIBE"))
        told = [client.next() for _ in range(4)]
        assert sorted(it[1] for it in told[:2]) == [b"a", b"b"]
        assert [it[2] for it in told] == [2, 1, 0, 0]
        # An array that looks like a message, now that there are none.
        client.send(
            command("DEL", "l3")
            + command("RPUSH", "l3", "message", "x", "y")
            + command("LRANGE", "l3", "0", "-1")
        )
        assert [client.next() for _ in range(3)][1:] == [3, [b"message", b"x", b"y"]]
        stream = only_stream(proxy)
        assert (stream["in_flight"], stream["passing"], stream["replies"]) == (0, 0, 10)
    assert proxy.log() == ""


@needs_redis
def test_pushes_of_resp3_are_told_from_replies(start, redis):
    proxy = before(start, redis, "window = 1\n")
    with RespClient(disk_of(proxy)) as client:
        assert client.ask("HELLO", "3")[b"proto"] == 3
        assert client.ask("CLIENT", "TRACKING", "ON") == "OK"
        client.send(
            command("SUBSCRIBE", "c", "d") + command("PUBLISH", "c", "word") + command("GET", "tracked")
        )
        assert [client.next() for _ in range(2)] == [
            Push([b"subscribe", b"c", 1]),
            Push([b"subscribe", b"d", 2]),
        ]
        told = [client.next() for _ in range(3)]
        assert Push([b"message", b"c", b"word"]) in told
        assert [it for it in told if not isinstance(it, Push)] == [1, None]
        redis.ask("SET", "tracked", "x")
        assert client.next() == Push([b"invalidate", [b"tracked"]])
        client.send(
            command("DEL", "l3") + command("RPUSH", "l3", "message", "x") + command("LRANGE", "l3", "0", "-1")
        )
        assert [client.next() for _ in range(3)][1:] == [2, [b"message", b"x"]]
        client.send(command("UNSUBSCRIBE") + command("RESET") + command("PING"))
        told = [client.next() for _ in range(4)]
        assert sorted(it.values[2] for it in told[:2]) == [0, 1]
        assert told[2:] == ["RESET", "PONG"]
        assert is_idle(proxy)
    assert proxy.log() == ""


@needs_redis
def test_transactions_and_commands_that_are_not_answered(start, redis):
    proxy = before(start, redis, "window = 2\n")
    with RespClient(disk_of(proxy)) as client:
        client.send(command("MULTI") + command("BLPOP", "none", "0") + command("INCR", "n") + command("EXEC"))
        assert [client.next() for _ in range(3)] == ["OK", "QUEUED", "QUEUED"]
        assert client.next()[0] is None
        client.send(
            command("CLIENT", "REPLY", "OFF") + 50 * command("INCR", "m") + command("CLIENT", "REPLY", "ON")
        )
        assert client.next() == "OK"
        client.send(command("CLIENT", "REPLY", "SKIP") + command("SET", "m", "7") + command("GET", "m"))
        assert client.next() == b"7"
        client.send(
            command("CLIENT", "REPLY", "OFF") + command("NOSUCH") + command("RESET") + command("PING")
        )
        assert [client.next() for _ in range(2)] == ["RESET", "PONG"]
        assert is_idle(proxy)
    assert proxy.log() == ""


@needs_redis
def test_what_cannot_be_followed_passes_and_status_says_so(start, redis):
    proxy = before(start, redis, "window = 1\n")
    with RespClient(disk_of(proxy)) as watches, RespClient(disk_of(proxy)) as works:
        watches.send(command("PING") + command("MONITOR"))
        assert [watches.next() for _ in range(2)] == ["PONG", "OK"]
        until(lambda: only_stream(proxy)["passing"] == 1)
        for at in range(20):
            assert works.ask("SET", f"seen{at}", "x") == "OK"
            assert f'"seen{at}"' in watches.next()
        assert (only_stream(proxy)["connections"], only_stream(proxy)["in_flight"]) == (2, 0)
    until(lambda: not proxy.streams())
    (line,) = proxy.log().splitlines()
    assert "MONITOR: nobody can tell" in line
    assert line.endswith("this connection passes unheld from now on")


@needs_redis
def test_a_command_that_is_none_gets_the_servers_own_word(start, redis):
    proxy = before(start, redis, "window = 1\n")
    for garbage in (
        b"*1\r\n!3\r\n",
        b"*x\r\n",
        b"*1\r\n$-5\r\n",
        b'SET "unbalanced\r\n',
        b"*2000000000\r\n$3\r\nGET\r\n:\r\n",
    ):
        with RespClient(disk_of(proxy)) as client:
            client.send(command("PING") + garbage)
            assert client.next() == "PONG"
            said = client.next()
            assert isinstance(said, Refusal), garbage
            assert said.text.startswith("ERR Protocol error"), garbage
            assert client.is_closed()
    until(lambda: not proxy.streams())
    assert "begins with byte 0x21" in proxy.log()


@needs_redis
def test_passwords_pass_untouched(start):
    with live_redis("requirepass secret") as server:
        proxy = before(start, server, "window = 1\n")
        with RespClient(disk_of(proxy)) as client:
            assert client.ask("GET", "k").text.startswith("NOAUTH")
            assert client.ask("AUTH", "wrong").text.startswith("WRONGPASS")
            assert client.ask("AUTH", "secret") == "OK"
            assert client.ask("GET", "k") is None
        with RespClient(disk_of(proxy)) as client:
            client.send(command("HELLO", "3", "AUTH", "default", "secret") + command("GET", "k"))
            assert client.next()[b"proto"] == 3
            assert client.next() is None
            assert is_idle(proxy)
        assert "secret" not in proxy.log()


# Sides that die, hang or lie.


@needs_redis
def test_whoever_is_killed_takes_its_connections_along_and_others_connect_again(start):
    with live_redis() as server:
        proxy = before(start, server, "window = 2\n")
        with RespClient(disk_of(proxy)) as client, RespClient(disk_of(proxy)) as waits:
            assert client.ask("SET", "k", "v") == "OK"
            waits.say("BLPOP", "queue", "0")
            until(lambda: "blocked_clients:1" in str(server.ask("INFO", "clients")))
            server.stop()
            assert client.is_closed()
            assert waits.is_closed()
        until(lambda: not proxy.streams())
        with RespClient(disk_of(proxy)) as client:
            assert client.is_closed()
        until(lambda: "the server cannot be reached" in proxy.log())
        server.start()
        with RespClient(disk_of(proxy)) as client:
            assert client.ask("PING") == "PONG"
            proxy.again(signal.SIGKILL)
            assert client.is_closed()
        with RespClient(disk_of(proxy)) as client:
            assert client.ask("PING") == "PONG"


@needs_redis
def test_a_server_that_hangs_is_given_up_and_one_that_may_wait_is_not(start):
    with live_redis() as server:
        proxy = before(start, server, "window = 2\nanswer_s = 1\n")
        with (
            RespClient(disk_of(proxy)) as client,
            RespClient(disk_of(proxy)) as waits,
            RespClient(disk_of(proxy)) as hears,
        ):
            waits.say("BLPOP", "queue", "0")
            assert hears.ask("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
            time.sleep(1.5)
            assert client.ask("RPUSH", "queue", "it") == 1
            assert waits.next() == [b"queue", b"it"]
            waits.say("BLPOP", "queue", "0")
            until(lambda: "blocked_clients:1" in str(server.ask("INFO", "clients")))
            assert server._process is not None
            server._process.send_signal(signal.SIGSTOP)
            try:
                client.say("PING")
                assert client.is_closed()
            finally:
                server._process.send_signal(signal.SIGCONT)
            assert waits.says_nothing()
            assert hears.says_nothing()
        assert "the server has said nothing for 1 s, and owes 1 answers" in proxy.log()


@pytest.mark.parametrize(
    "lie",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"+OK\r\n+OK\r\n+OK\r\n",
        b"$-7\r\n",
        b"*1\r\n" * 200,
        bytes(range(256)),
        b"$3\r\nab",
    ],
)
def test_what_a_server_says_passes_whatever_it_is(start, folder, lie):
    def serve(session: Session) -> None:
        asked = commands(session)
        next(asked)
        session.socket.sendall(b"+OK\r\n")
        next(asked)
        session.socket.sendall(lie)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, "window = 1\n", terms=RESP)
        with RespClient(disk_of(proxy)) as client:
            assert client.ask("PING") == "OK"
            client.say("PING")
            assert client.stream.read() == lie
        until(lambda: not proxy.streams())
        assert len(proxy.log().splitlines()) == (lie != b"$3\r\nab")


@needs_redis
@pytest.mark.parametrize("left_out", [1, 10, 1000, 3_999_990])
def test_a_client_that_leaves_amid_a_command_leaves_nothing(start, redis, left_out):
    proxy = before(start, redis, "window = 1\n")
    whole = command("SET", "cut", b"x" * 4_000_000)
    with RespClient(disk_of(proxy)) as client:
        client.send(command("DEL", "cut") + whole[:-left_out])
        client.next()
    until(lambda: not proxy.streams())
    assert redis.ask("EXISTS", "cut") == 0
    with RespClient(disk_of(proxy)) as client:
        assert client.ask("PING") == "PONG"
    assert proxy.log() == ""


@needs_redis
def test_a_client_that_ends_its_sending_gets_its_answers(start, redis):
    proxy = before(start, redis, "window = 1\n")
    with RespClient(disk_of(proxy)) as client:
        client.send(100 * command("PING"))
        client.socket.shutdown(socket.SHUT_WR)
        assert [client.next() for _ in range(100)] == 100 * ["PONG"]
        assert client.is_closed()


def flood(client: RespClient, asked: bytes, count: int, length: int) -> None:
    """Send all of it before anything is read, and read it then."""
    client.send(asked)
    for _ in range(count):
        assert len(client.next()) == length


@needs_redis
def test_a_client_that_reads_late_is_held_all_the_same(start, redis):
    proxy = before(start, redis, "window = 4\n")
    redis.ask("SET", "page", "x" * 1000)  # of all the pages a little less than the proxy keeps
    with RespClient(disk_of(proxy)) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        flood(client, 4000 * command("GET", "page"), 4000, 1000)
        stream = only_stream(proxy)
    assert (stream["passing"], stream["replies"]) == (0, 4000)
    assert proxy.log() == ""


@needs_redis
def test_a_client_that_only_sends_is_let_through_in_the_end(start, redis):
    proxy = before(start, redis, "window = 4\n")
    redis.ask("SET", "page", "x" * 5000)
    with RespClient(disk_of(proxy)) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        flood(client, 5000 * command("GET", "page"), 5000, 5000)
        assert only_stream(proxy)["passing"] == 1
        assert client.ask("PING") == "PONG"
    assert "the client reads no answers while it sends" in proxy.log()


def test_a_proxy_keeps_little_for_clients_that_do_not_read(start, folder):
    def serve(session: Session) -> None:
        for _ in commands(session):
            session.socket.sendall(b"$100000\r\n" + bytes(100_000) + b"\r\n")

    def memory(proxy: Proxy) -> int:
        status = Path(f"/proc/{proxy.process.pid}/status").read_text()
        return int(status[status.index("VmRSS:") :].split()[1])

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, "window = 4\n", terms=RESP)
        before_kib = memory(proxy)
        with RespClient(disk_of(proxy)) as client:
            client.send(400 * command("GET", "k"))
            until(lambda: memory(proxy) > before_kib + 1000)
            time.sleep(0.5)
            assert memory(proxy) < before_kib + 12_000
            for _ in range(400):
                assert len(client.next()) == 100_000
            assert only_stream(proxy)["in_flight"] == 0
        until(lambda: memory(proxy) < before_kib + 3000)


# TLS.


@needs_redis
def test_tls_on_both_sides(start, tmp_path):
    ca = Authority(tmp_path)
    own, of_client = ca.issue("server", "serverAuth"), ca.issue("client", "clientAuth", "DNS:client")
    port, listens = free_port(), free_port()
    lines = (
        f"tls-port {port}",
        f"tls-cert-file {own.path}",
        f"tls-key-file {own.key}",
        f"tls-ca-cert-file {ca.path}",
    )
    terms = (
        f"{RESP}[route.listen_tls]\nca = {json.dumps(str(ca.path))}\n"
        f"certificate = {json.dumps(str(own.path))}\nkey = {json.dumps(str(own.key))}\n"
        f"[route.server_tls]\nca = {json.dumps(str(ca.path))}\n"
        f"certificate = {json.dumps(str(of_client.path))}\nkey = {json.dumps(str(of_client.key))}\n"
    )
    context = ssl.create_default_context(cafile=str(ca.path))
    stranger = ssl.create_default_context(cafile=str(ca.path))
    context.load_cert_chain(of_client.path, of_client.key)
    with live_redis(*lines) as server:
        address = f"tcp:127.0.0.1:{port}"
        proxy = start.proxy(address, "window = 3\n", terms=terms, listen=f"tcp:127.0.0.1:{listens}")
        data = random.Random(4).randbytes(5 << 20)
        with RespClient(listens, context) as client:
            # By one thread: two must not use a session of OpenSSL at a time.
            client.send(command("SET", "big", data) + 5 * command("GET", "big"))
            assert client.next() == "OK"
            for _ in range(5):
                assert client.next() == data
            client.send(5000 * command("PING"))
            assert [client.next() for _ in range(5000)] == 5000 * ["PONG"]
            assert is_idle(proxy)
        assert proxy.log() == ""
        with suppress(OSError), RespClient(listens, stranger) as client:
            assert client.is_closed()
        until(lambda: "certificate" in proxy.log())
        with RespClient(listens) as client:
            client.say("PING")
            assert b"PONG" not in client.stream.read()
        until(lambda: len(proxy.log().splitlines()) == 2)
        assert server.ask("DBSIZE") == 1


# Endurance.


@pytest.mark.slow
@needs_redis
def test_kills_of_the_proxy_lose_no_answered_command(start):
    with live_redis() as server, ExitStack() as stack:
        proxy = before(start, server, "window = 4\n")
        end_s = time.monotonic() + 30
        answered, asked = [0] * 8, [0] * 8

        def work(number: int) -> None:
            while time.monotonic() < end_s:
                with suppress(OSError, EOFError), RespClient(disk_of(proxy)) as client:
                    while time.monotonic() < end_s:
                        count = random.randint(1, 40)
                        asked[number] += count
                        client.send(count * command("INCR", f"n{number}"))
                        for _ in range(count):
                            found = client.next()
                            assert found > answered[number]
                            answered[number] += 1
                time.sleep(0.01)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
        kills = 0
        while time.monotonic() < end_s - 1:
            time.sleep(random.uniform(0.05, 0.8))
            proxy.again(random.choice([signal.SIGKILL, signal.SIGTERM]))
            kills += 1
        for thread in threads:
            thread.join()
        assert kills > 10
        for number in range(8):
            told = server.ask("GET", f"n{number}")
            assert answered[number] <= int(str(told)) <= asked[number]
            assert answered[number] > 100
        until(lambda: not proxy.streams())
