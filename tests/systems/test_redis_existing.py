"""Redis that people use: a real server with clients, whose settings and files stay what they were."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks, Refused, StageFailed, StudyError, WorkError
from ascar.study import GuardSection
from ascar.systems import open_target
from ascar.systems.asking import apply_checked
from ascar.systems.redis.existing import ExistingRedis
from ascar.systems.redis.space import LEAVES_SOMETHING
from ascar.workspace import LoadTiming
from live_redis import LiveRedis, free_port, live_redis, redis_installed
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(not redis_installed(), reason="Redis is not installed")

TRIAL = {"hz": 100, "hash_max_listpack_entries": 1024, "activerehashing": False}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper's journal is the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def server() -> Iterator[LiveRedis]:
    with live_redis() as started:
        yield started


def target_of(live: LiveRedis, /, **options: Any) -> ExistingRedis:
    given = {"server": "existing", "host": str(live.socket), "confirmed_server": live.name, **options}
    target = open_target({"kind": "redis", **{key: one for key, one in given.items() if one is not None}})
    assert isinstance(target, ExistingRedis)
    return target


@contextmanager
def unchanged(server: LiveRedis) -> Generator[None]:
    """What the server is set to, and its file, are the same afterwards."""
    told, file = server.ask("CONFIG", "GET", "*"), server.conf.read_bytes()
    yield
    assert server.ask("CONFIG", "GET", "*") == told
    assert server.conf.read_bytes() == file


def trial(target: ExistingRedis) -> Any:
    return target.space.validate({**target.space.default(), **TRIAL})


def test_it_is_refused_unless_the_command_line_names_it(server: LiveRedis) -> None:
    with unchanged(server):
        for given in (None, "127.0.0.1:6379"):
            with pytest.raises(Refused) as told, target_of(server, confirmed_server=given):
                pass
            assert server.name in told.value.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"port": 0}, "target.port = 0: must be from 1 to 65535"),
        ({"port": 6379}, "target.port = 6379: must be left out where target.host is a socket"),
        ({"host": "a\nb"}, "target.host = 'a\\nb': must be a text of characters that are printed"),
        ({"host": "redis://u:p@host"}, "target.host: must be a host or the path of a socket"),
        ({"user": "tuner"}, "target.user = 'tuner': must be one word, and needs target.password_file"),
        ({"password_file": "/nowhere"}, "target.password_file = '/nowhere': No such file"),
        ({"memory": "much"}, "target.memory = 'much': is not a size"),
        ({"server": "own"}, "target.server"),
        ({"password": "x"}, "password"),
    ],
)
def test_a_wrong_key_is_one_line(server: LiveRedis, options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        target_of(server, **options)
    assert words in told.value.message
    assert "\n" not in told.value.message


def test_a_password_that_a_crash_would_lose_is_refused(
    server: LiveRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDISCLI_AUTH", "secret")
    with pytest.raises(StudyError, match=r"target\.password_file") as told:
        target_of(server)
    assert "secret" not in told.value.message


def test_a_server_that_is_not_there_is_one_line(server: LiveRedis) -> None:
    for options in ({"host": "/nowhere/redis.sock"}, {"host": "127.0.0.1", "port": 1}):
        with pytest.raises(EnvironmentLacks, match=r"target\.server: ") as told, target_of(server, **options):
            pass
        assert "\n" not in told.value.message


def test_settings_change_and_nothing_else_does(server: LiveRedis) -> None:
    with unchanged(server):
        with target_of(server, parameters="wide") as target:
            default = target.space.default()
            assert default["hz"] == 20
            assert not {name.replace("-", "_") for name in LEAVES_SOMETHING} & set(target.space.names)
            # No log is written and no snapshot taken: their settings have no effect, or a lasting one.
            assert not {"appendfsync", "save", "tcp_backlog"} & set(target.space.names)
            change = apply_checked(target, trial(target))
            assert change.filled
            assert set(change.parameters) == set(TRIAL)
            assert server.get("hz") == "100"
            apply_checked(target, default)
            assert server.get("hz") == "20"
            apply_checked(target, trial(target))
        assert server.get("hz") == "20"


def test_the_whole_space_of_a_server_that_keeps_its_data_can_be_set() -> None:
    with (
        live_redis("appendonly yes", "save 7200 1", "hash-max-listpack-entries 7") as server,
        unchanged(server),
        target_of(server, parameters="wide") as target,
    ):
        default = target.space.default()
        assert default["hash_max_listpack_entries"] == 7  # which no search would try
        assert "appendfsync" in target.space.names
        assert "save" not in target.space.names  # nobody can tell what is weaker than a rule of one's own
        for near in target.space.neighbours(default):
            apply_checked(target, near)


def test_it_is_reached_by_a_port_too(server: LiveRedis) -> None:
    name = f"127.0.0.1:{server.port}"
    with (
        unchanged(server),
        target_of(server, host="127.0.0.1", port=server.port, confirmed_server=name) as target,
    ):
        apply_checked(target, trial(target))
        assert target.describe()["server"] == name


def test_what_clients_get_is_the_load(server: LiveRedis) -> None:
    with server.clients(), target_of(server) as target:
        found = target.run(target.workspace, LoadTiming(1.0, 2.0, 0.5, lambda _: False))
        assert found.metrics["throughput_ops_per_s"] > 20
        assert 0 < found.metrics["latency_ms_mean"] < 100
        assert 0 < found.metrics["latency_ms_ping"] < 1000
        assert set(found.metrics) == target.reported
        assert len(found.series["throughput_ops_per_s"]) >= 2


def test_a_server_without_clients_is_no_load(server: LiveRedis) -> None:
    with target_of(server) as target, pytest.raises(StageFailed, match="clients sent no command"):
        target.run(target.workspace, LoadTiming(0.5, 1.0, 0.5, lambda _: False))


def test_a_value_that_the_server_refuses_fails_its_trial_alone(server: LiveRedis) -> None:
    with unchanged(server), target_of(server) as target:
        default = target.space.default()
        with pytest.raises(StageFailed, match="CONFIG SET"):
            target.apply({**default, "hash_max_listpack_entries": 1024, "hz": "much"})  # type: ignore[arg-type]
        assert server.get("hash-max-listpack-entries") == "512"
        apply_checked(target, trial(target))


def test_what_somebody_else_changes_ends_the_study_and_is_left_alone(server: LiveRedis) -> None:
    try:
        with pytest.raises(WorkError, match="left alone: hz: is '33'"), target_of(server) as target:
            apply_checked(target, trial(target))
            server.ask("CONFIG", "SET", "hz", "33")
            with pytest.raises(WorkError, match="hz: somebody else changed it"):
                target.apply(target.space.default())
        assert server.get("hz") == "33"
        assert server.get("hash-max-listpack-entries") == "512"
    finally:
        server.ask("CONFIG", "SET", "hz", "20")


def test_what_somebody_else_changes_outside_the_study_ends_it_by_name(server: LiveRedis) -> None:
    try:
        with target_of(server) as target:
            apply_checked(target, trial(target))
            server.ask("CONFIG", "SET", "slowlog-max-len", "77")
            for asked in (target.sample, lambda: target.apply(target.space.default())):
                with pytest.raises(
                    WorkError, match="^slowlog_max_len: was 128, is 77: somebody else changed it"
                ):
                    asked()
        assert server.get("slowlog-max-len") == "77"
        assert server.get("hz") == "20"
    finally:
        server.ask("CONFIG", "SET", "slowlog-max-len", "128")


def test_config_rewrite_in_mid_study_is_named() -> None:
    with live_redis() as server:
        with (
            pytest.raises(WorkError, match="CONFIG REWRITE was called in mid-study"),
            target_of(server) as target,
        ):
            apply_checked(target, trial(target))
            server.ask("CONFIG", "REWRITE")
        assert server.get("hz") == "20"


def test_two_studies_of_one_server_are_refused(server: LiveRedis) -> None:
    with target_of(server), pytest.raises(Refused, match="is tuned by another study"), target_of(server):
        pass


def test_a_restart_in_mid_study_ends_it() -> None:
    with live_redis() as server:
        with pytest.raises(WorkError, match="was started anew in mid-study"), target_of(server) as target:
            apply_checked(target, trial(target))
            server.stop()
            server.start()
            target.sample()
        assert server.get("hz") == "20"


def test_a_failover_in_mid_study_ends_it() -> None:
    with live_redis() as server, live_redis() as other:
        with (
            unchanged(other),
            pytest.raises(WorkError, match="became a replica in mid-study"),
            target_of(server) as target,
        ):
            apply_checked(target, trial(target))
            server.ask("REPLICAOF", "127.0.0.1", str(other.port))
            target.apply(target.space.default())
        assert server.get("hz") == "20"
        with pytest.raises(Refused, match=rf"is a replica of 127\.0\.0\.1:{other.port}; tune the primary"):
            target_of(server).__enter__()


def test_a_server_that_is_gone_at_the_end_has_nothing_to_put_back() -> None:
    with (
        live_redis() as server,
        pytest.raises(WorkError, match="the server is gone in mid-study"),
        target_of(server) as target,
    ):
        apply_checked(target, trial(target))
        server.stop()
        target.sample()


def test_passwords_and_users(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    with live_redis("requirepass open sesame".replace(" sesame", "-sesame")) as server:
        with pytest.raises(EnvironmentLacks, match="asks for a password"), target_of(server):
            pass
        secret.write_text("wrong\n")
        secret.chmod(0o644)
        with pytest.raises(StudyError, match="others may read it"):
            target_of(server, password_file=str(secret))
        secret.chmod(0o600)
        with (
            pytest.raises(EnvironmentLacks, match="refuses the password"),
            target_of(server, password_file=str(secret)),
        ):
            pass
        secret.write_text("open-sesame\n")
        with target_of(server, password_file=str(secret)) as target:
            apply_checked(target, trial(target))


def test_a_user_needs_rights_and_the_refusal_says_which(server: LiveRedis, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("tune")
    secret.chmod(0o600)
    server.ask("ACL", "SETUSER", "tuner", "on", ">tune", "+ping", "+client|setname", "+info")
    try:
        with pytest.raises(Refused) as told, target_of(server, user="tuner", password_file=str(secret)):
            pass
        _, _, command = told.value.message.partition("let an administrator run: ")
        words = command.split()
        server.ask(*(word for word in words if word != "+config|set"))
        with (
            target_of(server, user="tuner", password_file=str(secret)) as target,
            pytest.raises(Refused, match="user tuner: lacks rights"),
        ):
            target.adopt(target.space)
        server.ask(*words)
        with unchanged(server), target_of(server, user="tuner", password_file=str(secret)) as target:
            target.adopt(target.space)
            apply_checked(target, trial(target))
            assert server.get("hz") == "100"
    finally:
        server.ask("ACL", "DELUSER", "tuner")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["rename-command CONFIG away"], "has no CONFIG GET .*: rename-command"),
        (["cluster-enabled yes"], "is a node of a cluster"),
    ],
)
def test_servers_that_cannot_be_tuned_are_refused_in_one_line(lines: list[str], words: str) -> None:
    with live_redis(*lines) as server:
        with pytest.raises(Refused, match=words) as told, target_of(server):
            pass
        assert "\n" not in told.value.message


def test_a_sentinel_and_the_server_that_it_watches_are_refused(tmp_path: Path) -> None:
    with live_redis() as server:
        port, conf = free_port(), tmp_path / "sentinel.conf"
        conf.write_text(f"port {port}\ndir {tmp_path}\nsentinel monitor shop 127.0.0.1 {server.port} 1\n")
        words = [str(server.programs.server), str(conf), "--sentinel"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=tmp_path) as sentinel:
            try:
                channel = "__sentinel__:hello"
                until(lambda: server.ask("PUBSUB", "NUMSUB", channel) == [channel, 1], 60)
                with (
                    unchanged(server),
                    pytest.raises(Refused, match="is watched by Sentinel"),
                    target_of(server),
                ):
                    pass
                name = f"127.0.0.1:{port}"
                of_sentinel = target_of(server, host="127.0.0.1", port=port, confirmed_server=name)
                with pytest.raises(Refused, match="is a Sentinel, which stores no data"), of_sentinel:
                    pass
            finally:
                sentinel.kill()


def test_protected_mode_is_one_line() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address but the loopback's")
        address = str(probe.getsockname()[0])
    with live_redis("bind * -::*") as server:
        with (
            pytest.raises(EnvironmentLacks, match="is in protected mode") as told,
            target_of(server, host=address, port=server.port),
        ):
            pass
        assert "\n" not in told.value.message


def nobody_holds(server: LiveRedis) -> bool:
    """Whether the keeper of the study that was killed is gone."""
    with suppress(Refused), target_of(server):
        return True
    return False


SCRIPT = """
import sys
from ascar.systems import open_target
with open_target({"kind": "redis", "server": "existing", "host": sys.argv[1],
                  "confirmed_server": sys.argv[1]}) as target:
    default = target.space.default()
    for number in range(100000):
        target.apply(target.space.validate({**default, "hz": 100 + number % 300, "activerehashing": False}))
        print("set", flush=True)
"""


@pytest.mark.slow
def test_killed_while_it_changes_settings_everything_is_put_back(
    server: LiveRedis, seed: int, tmp_path: Path
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with unchanged(server):
        for turn in range(5):
            words = [sys.executable, "-c", SCRIPT, str(server.socket)]
            until(lambda: nobody_holds(server), 60)
            with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == b"set\n"
                assert list(tmp_path.glob("ascar-live-*"))
                time.sleep(0.05 * turn + (seed % 50) / 1000)
                process.send_signal(signal.SIGKILL)
            until(lambda: server.get("hz") == "20", 60)
            until(lambda: server.get("activerehashing") == "yes", 60)
            until(lambda: not list(tmp_path.glob("ascar-live-*")), 60)


@pytest.mark.slow
def test_what_gives_clients_less_than_a_share_of_the_usual_is_put_back() -> None:
    with (
        live_redis("appendonly yes", "appendfsync no") as server,
        unchanged(server),
        server.eager_clients(),
    ):
        usual = server.rate(2.0)
        target = target_of(server)
        floor = {"metric": "throughput_ops_per_s", "minimum": "70%", "hold_ticks": 10}
        target.guard_by(GuardSection(floor=(floor,)))
        with target:
            bad = target.space.validate({**target.space.default(), "appendfsync": "always"})
            target.apply(bad)
            if server.rate(1.0) > 0.6 * usual:
                pytest.skip("the disk of this machine makes each write durable at once")
            until(lambda: target.violation is not None, 30)
            assert "70% of the usual; the old values were put back in" in str(target.violation)
            assert server.get("appendfsync") == "no"


def test_an_interrupted_answer_is_taken_for_no_other_when_values_are_put_back(server: LiveRedis) -> None:
    with unchanged(server), target_of(server) as target:
        apply_checked(target, trial(target))
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            target._entered().session.ask("BLPOP", "no-such-key", "2")
    assert server.get("hz") == "20"
