"""Redis as a target: real servers, made and removed by the tests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.catalogue import differences, told_by_redis

from ascar.capes.session.parameters import session_parameters
from ascar.catalogues.redis import redis, redis_of
from ascar.charging import Charge
from ascar.errors import EnvironmentLacks, InputError, SpaceError, StageFailed, StudyError
from ascar.program.account import Account
from ascar.program.redis import RedisPrograms
from ascar.quoting import redis_word
from ascar.space import ChangeCost, Guarantee
from ascar.space.study_table import space_from_table
from ascar.systems import open_target
from ascar.systems.adapter import Adapter
from ascar.systems.keeper import Keeper
from ascar.systems.redis import Redis
from ascar.systems.redis.persistence import LogRule, snapshot_cycle_s
from ascar.systems.redis.protocol import RefusedCommand, ask
from ascar.systems.redis.server import RedisServer
from ascar.testing import TargetContract
from ascar.workloads import LoadTiming, open_workload
from own_servers import running, see_it_end_with_its_study, server_place

if TYPE_CHECKING:
    from collections.abc import Iterator

PACE = LoadTiming(1.0, 1.0, 0.5, lambda series: False)
SMALL = {"kind": "redis-benchmark", "keys": 1000, "clients": 4}


def _installed() -> bool:
    try:
        Account.of(None, "Redis", "redis")
        return RedisPrograms.find().number >= (7, 0)
    except EnvironmentLacks:
        return False


pytestmark = pytest.mark.skipif(not _installed(), reason="Redis is not installed, or has no account")


def _place() -> Iterator[str]:
    with server_place(Account.of(None, "Redis", "redis"), "ascar-redis-") as folder:
        yield folder


place = pytest.fixture(_place)
shared_place = pytest.fixture(_place, scope="module")


@pytest.fixture
def target(place: str) -> Iterator[Redis]:
    with Redis({"directory": place, "memory": "512 MiB"}) as entered:
        yield entered


@pytest.fixture(scope="module")
def server(shared_place: str) -> Iterator[RedisServer]:
    """An empty server with its own defaults."""
    account = Account.of(None, "Redis", "redis")
    with Keeper("redis", user=True) as keeper:
        made = RedisServer(RedisPrograms.find(), account, Path(shared_place), keeper)
        made.create()
        made.begin([], 60)
        yield made
        made.stop()


class TestRedisContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _place(self, place: str) -> None:
        self.place = place

    def options(self) -> dict[str, Any]:
        return {"directory": self.place, "memory": "512 MiB", "parameters": "wide"}

    def make(self) -> Redis:
        return Redis(self.options())


@pytest.mark.slow
class TestRedisContractWithKeptData(TestRedisContract):
    def options(self) -> dict[str, Any]:
        return {**super().options(), "data": "kept", "settings": {"appendonly": "yes"}}


def test_the_catalogue_is_what_the_server_says(server: RedisServer) -> None:
    told = {one.name: one for one in told_by_redis(server)}
    assert differences("redis", server.programs.settings().values(), told) == []
    for name in set(redis()) - set(server.programs.settings()):
        assert name not in told


def test_a_newer_server_has_what_came_since() -> None:
    came = {"set-max-listpack-entries", "set-max-listpack-value"}
    assert set(redis_of("redis", (7, 2))) - set(redis_of("redis", (7, 0))) == came
    assert came <= set(redis_of("valkey", (8, 1)))
    space = [one.parameter() for one in redis_of("redis", (7, 2)).values() if one.is_searched("expert")]
    assert 18 <= len(space) <= 25


def test_config_set_takes_both_ends_of_each_range_and_every_word(server: RedisServer) -> None:
    for name, setting in server.programs.settings().items():
        ends = [*map(int, setting.search), *setting.special] if setting.kind == "integer" else setting.values
        for value in ends or (False, True):
            words = ("CONFIG", "SET", name, setting.text(value))
            if setting.context == "dynamic":
                assert server.ask(*words) == "OK", words
                assert server.ask("CONFIG", "GET", name) == [name, setting.text(value)]
            else:
                with pytest.raises(RefusedCommand, match="immutable"):
                    server.ask(*words)
        if setting.context == "dynamic":
            server.ask("CONFIG", "SET", name, setting.text(setting.default))
    server.wait_until_written(time.monotonic() + 60)


def test_the_spaces_of_an_expert_and_of_everything() -> None:
    expert = Redis({"memory": "1 GiB"}).space
    wide = Redis({"memory": "1 GiB", "parameters": "wide"}).space
    assert 18 <= len(expert.parameters) <= 25
    assert len(wide.parameters) >= 50
    assert set(expert.names) < set(wide.names)
    assert wide["tcp_backlog"].cost is ChangeCost.APP_RESTART
    assert expert["hz"].cost is ChangeCost.DYN_APP
    assert "maxmemory" not in wide
    with pytest.raises(Exception, match="repl_backlog_size"):
        wide.validate({**wide.default(), "repl_backlog_size": 2**30})


def test_what_weakens_a_guarantee_is_named_against_the_server_of_today() -> None:
    today = {"appendonly": True, "appendfsync": "always", "auto-aof-rewrite-percentage": 50}
    space = Redis({"parameters": "wide", "settings": today}).space
    for name, value, guarantee in (
        ("appendonly", False, Guarantee.DURABILITY),
        ("appendfsync", "everysec", Guarantee.DURABILITY),
        ("save", "3600 1", Guarantee.DURABILITY),
        ("no_appendfsync_on_rewrite", True, Guarantee.DURABILITY),
        ("auto_aof_rewrite_percentage", 0, Guarantee.AVAILABILITY),
        ("auto_aof_rewrite_percentage", 100, Guarantee.AVAILABILITY),
        ("maxmemory_policy", "allkeys-lru", Guarantee.AVAILABILITY),
        ("rdbchecksum", False, Guarantee.INTEGRITY),
    ):
        assert guarantee in space[name].weakens(value), name
    assert not Redis({}).space["appendfsync"].weakens("always")
    searched = space_from_table({}, space)
    with pytest.raises(Exception, match="appendfsync"):
        searched.validate({**searched.default(), "appendfsync": "no"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"directory": "/proc/absent/x"}, "target.directory = '/proc/absent/x': is not a directory"),
        ({"parameters": "all"}, "target.parameters"),
        ({"memory": "much"}, "target.memory = 'much': is not a size"),
        ({"data": "old"}, "target.data"),
        ({"user": "no-such-user-here"}, "target.user = 'no-such-user-here': there is no such account"),
        ({"user": "root"}, "Redis must not run as root"),
        ({"memry": "1 GiB"}, "memry"),
        ({"settings": {"loadmodule": "/tmp/x.so"}}, "target.settings.loadmodule: must be a setting"),
        ({"settings": {"hz": "fast"}}, "target.settings.hz = 'fast': parameter hz: default"),
        ({"settings": {"hz": 0}}, "target.settings.hz = 0: parameter hz: default"),
        ({"settings": {"maxmemory": 1}}, "target.settings.maxmemory: must be left out; set target.memory"),
        ({"settings": {"save": "1\n2"}}, "target.settings.save = '1\\n2'"),
    ],
)
def test_a_wrong_key_is_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        Redis(options)
    assert words in told.value.message
    assert "\n" not in told.value.message


def test_a_version_that_is_not_installed_is_one_line() -> None:
    with pytest.raises(EnvironmentLacks, match=r"target\.version = 99: must be one of the versions"):
        Redis({"version": 99})


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("Valkey server v=6.2.1 sha=0 bits=64", "is too old; ascar tunes versions from 7.0 on"),
        ("something else", "valkey-server is not installed; install the package valkey-server"),
    ],
)
def test_a_server_of_a_wrong_version_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, words: str
) -> None:
    program = tmp_path / "valkey-server"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(EnvironmentLacks, match=words):
        Redis({"flavour": "valkey"})


def test_what_a_newer_server_removed_is_left_out_and_a_study_that_names_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "valkey-server"
    program.write_text("#!/bin/sh\necho 'Valkey server v=99.1.0 sha=0 bits=64'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    removed = "io_threads_do_reads"
    space = Redis({"flavour": "valkey", "parameters": "wide"}).space
    assert {"io_threads", "hz", "appendonly", "save"} <= set(space.names), "what both know is searched"
    assert removed not in space
    with pytest.raises(SpaceError, match=rf"space\.tuned: unknown parameter '{removed}'") as named:
        space_from_table({"tuned": [removed]}, space)
    with pytest.raises(StudyError, match=rf"target\.settings\.{removed}: must be a setting") as told:
        Redis({"flavour": "valkey", "settings": {removed: True}})
    assert "\n" not in named.value.message + told.value.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keys": 0}, "workload.keys = 0: must be from 1"),
        ({"clients": 0}, "workload.clients = 0: must be from 1"),
        ({"value_bytes": 2**30}, "workload.value_bytes = 1073741824: must be from 1 to"),
        ({"pipeline": -1}, "workload.pipeline = -1: must be from 1"),
        ({"mix": "scan"}, "workload.mix"),
    ],
)
def test_a_wrong_key_of_the_load_is_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        open_workload({"kind": "redis-benchmark", **options})
    assert words in told.value.message


def test_each_trial_starts_on_the_same_data_and_a_server_that_refuses_fails_its_trial_alone(
    target: Redis, place: str
) -> None:
    load = open_workload(SMALL)
    default = target.space.default()
    assert not target.apply(default).filled
    load.prepare(target.workspace)
    target.settle()
    server = target._server
    assert isinstance(server, RedisServer)
    assert server.ask("DBSIZE") == 1000
    found = load.run(target.workspace, PACE).metrics
    assert found["operations"] > 0
    assert found["latency_ms_p50"] <= found["latency_ms_p99"] <= found["latency_ms_max"]
    lengths = {server.ask("STRLEN", f"key:{number:012}") for number in range(1000)}
    assert lengths == {200}, "the load writes values as large as the fill's"
    sample = target.sample()
    assert sample.counters["redis_commands"] > found["operations"]
    assert sample.counters["redis_commands_cpu_s"] > 0
    assert sample.deferred["unsaved_changes"] > 0
    server.ask("SET", "another", "key")
    target.drain(60)
    assert target.sample().deferred == {"log_bytes": 0, "unsaved_changes": 0}

    server.stop()
    with pytest.raises(StageFailed, match="does not start: 'hz many': argument couldn't be parsed"):
        server.begin(["hz many"], 30)
    with pytest.raises(StageFailed, match="Bad directive"):
        server.begin(["no-such-setting 1"], 30)

    # A server with a log has the same data as one with snapshots.
    for appendonly in (True, False):
        change = target.apply(target.space.nearest({**default, "hz": 20, "appendonly": appendonly}))
        assert change.filled
        assert server.ask("CONFIG", "GET", "hz") == ["hz", "20"]
        assert server.ask("DBSIZE") == 1000
    assert len(running(place, "redis")) >= 1

    os.kill(server._processes[0].pid, signal.SIGSEGV)
    with pytest.raises(StageFailed):
        load.run(target.workspace, PACE)
    server._processes[0]._process.wait(60)  # it writes a report of its crash first
    with pytest.raises(StageFailed, match="was killed by signal|exited with"):
        target.health(5)
    target.apply(default)
    assert server.ask("DBSIZE") == 1000


def test_data_that_does_not_fit_fails_the_fill_in_one_line(place: str) -> None:
    with Redis({"directory": place, "memory": "4 MiB"}) as target:
        target.apply(target.space.default())
        load = open_workload({"kind": "redis-benchmark", "keys": 10_000, "value_bytes": 1000})
        with pytest.raises(StageFailed, match="OOM command not allowed") as told:
            load.prepare(target.workspace)
        assert "\n" not in told.value.message


@pytest.mark.machine
@pytest.mark.root
def test_a_full_disk_fails_the_settling_in_one_line(place: str) -> None:
    small = Path(place) / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(small)], check=True)
    try:
        shutil.chown(small, "redis")
        with Redis({"directory": str(small), "memory": "512 MiB"}) as target:
            target.apply(target.space.validate({**target.space.default(), "save": ""}))
            server = target._server
            assert server is not None
            for number in range(100):
                server.ask("SET", f"key:{number}", os.urandom(40_000).hex())
            with pytest.raises(StageFailed, match=r"cannot save its data \([0-9] MiB are free") as told:
                target.settle()
            assert "\n" not in told.value.message
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_kept_data_takes_config_set_and_a_new_start_where_it_must(place: str) -> None:
    with Redis({"directory": place, "data": "kept", "parameters": "wide"}) as target:
        default = target.space.default()
        target.apply(default)
        open_workload(SMALL).prepare(target.workspace)
        target.settle()
        server = target._server
        assert server is not None
        process = server._processes[0]
        server.ask("SET", "another", "key")
        wanted = {"hz": 50, "appendonly": True, "appendfsync": "always"}
        configuration = target.space.nearest({**default, **wanted})
        target.apply(configuration)
        assert server._processes[0] is process
        assert target.read(["hz", "appendonly", "appendfsync"]) == wanted
        assert server.ask("DBSIZE") == 1001
        other = target.space.nearest({**configuration, "tcp_backlog": 256})
        target.apply(other)
        assert server._processes[0] is not process
        assert server.ask("DBSIZE") == 1001
        target.start_afresh()
        target.apply(other)
        assert server.ask("DBSIZE") == 1000


def test_a_session_sets_what_changes_while_a_load_runs(place: str) -> None:
    """As `ascar capes up` does it: through the adapter, by CONFIG SET, and back again at the end."""
    options = Redis.for_session({"directory": place, "settings": {"appendonly": "yes"}})
    with Redis(options) as target:
        names = {one.parameter.name for one in session_parameters(target, target.space, None)}
        assert {"hz", "appendfsync", "hash_max_listpack_entries"} <= names
        assert not {"io_threads_do_reads", "appendonly"} & names
        dynamic = target.space["io_threads"].cost is ChangeCost.DYN_APP  # in Valkey from 9.0 on
        assert ("io_threads" in names) == dynamic
        target.apply(target.space.default())
        open_workload(SMALL).prepare(target.workspace)
        target.settle()
        server = target._server
        assert server is not None
        process = server._processes[0]
        with subprocess.Popen(
            [server.programs.path("benchmark"), "-s", str(server.socket), "-l", "-q"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as load:
            try:
                adapter = Adapter(target, target.space, target.space.default())
                wanted = {"hz": 50, "appendfsync": "no"}
                assert adapter.answer(json.dumps({"set": wanted}).encode()) == {"ok": wanted}
                assert server.ask("CONFIG", "GET", "appendfsync") == ["appendfsync", "no"]
                assert "hz" in adapter.answer(b'{"set": {"hz": 100000}}')["error"]
                assert adapter.answer(b'{"sample": true}')["ok"]["counters"]["redis_commands"] > 0
                adapter.restore()
                assert target.read(["hz", "appendfsync"]) == {"hz": 10, "appendfsync": "everysec"}
                assert server._processes[0] is process
                assert load.poll() is None
            finally:
                load.kill()


def test_it_ends_with_whoever_is_killed(place: str) -> None:
    see_it_end_with_its_study("redis", place, "redis")


def test_what_an_administrator_is_told(place: str) -> None:
    target = open_target({"kind": "redis", "directory": place})
    configuration = target.space.nearest({**target.space.default(), "io_threads": 2, "hz": 50, "save": ""})
    chosen = [name for name in target.space.departures(configuration) if name != "io_threads_do_reads"]
    lines = target.commands(configuration, chosen)
    assert lines["redis.conf"] == ["io-threads 2", "hz 50", 'save ""']
    restart = "write to redis.conf, and restart the server: io-threads 2"
    assert lines["config-set"] == ["CONFIG SET hz 50", 'CONFIG SET save ""', f'ECHO "{restart}"']
    assert lines["shell"] == [
        "redis-cli CONFIG SET hz 50",
        "redis-cli CONFIG SET save ''",
        "redis-cli CONFIG REWRITE",
        f"# {restart}",
    ]


WANTED = {
    "hz": 50,
    "save": "900 1 300 10 60 10000",
    "list_max_listpack_size": "-5",
    "appendonly": True,
    "appendfsync": "always",
    "latency_tracking": False,
    "hash_max_listpack_value": 128,
    "auto_aof_rewrite_percentage": 50,
}


@pytest.mark.parametrize("form", ["redis.conf", "config-set", "ansible", "ansible, at once"])
def test_what_is_exported_works_on_a_fresh_server_and_is_read_back_equal(target: Redis, form: str) -> None:
    target.apply(target.space.default())
    server = target._server
    assert server is not None
    configuration = target.space.nearest({**target.space.default(), **WANTED})
    lines = target.commands(configuration, tuple(WANTED))[form.partition(",")[0]]
    if form.startswith("ansible"):
        (play,) = yaml.safe_load("\n".join(lines))
        block, *others = play["tasks"]
        if form == "ansible":
            lines = block["ansible.builtin.blockinfile"]["block"].splitlines()
        else:
            tasks = [task["community.general.redis"] for task in others]
            for task in tasks:
                assert server.ask(task["command"], "SET", task["name"], task["value"]) == "OK"
    if form in ("redis.conf", "ansible"):
        assert {line.split()[0] for line in lines} == {name.replace("_", "-") for name in WANTED}
        server.stop()
        server.create()
        server.begin(["save 60 1", "save 3600 5", *lines], 60)
    elif form == "config-set":
        said = cli(server, lines)
        assert said == ["OK"] * len(lines) == ["OK"] * len(WANTED)
    server.wait_until_written(time.monotonic() + 60)  # while a log is begun, a server does not end
    told = {name.replace("-", "_"): value for name, value in server.settings().items()}
    by_name = {one.parameter_name: one for one in redis().values()}
    assert {name: by_name[name].value(told[name]) for name in WANTED} == WANTED


def cli(server: RedisServer, lines: list[str]) -> list[str]:
    """What redis-cli answers to lines of its standard input."""
    words = [server.programs.path("cli"), "-s", str(server.socket)]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(words, input=text.encode(), capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape").splitlines()


NAMES = ("masterauth", "masteruser", "syslog-ident")
HOSTILE = st.one_of(
    st.text(max_size=20),
    st.text(st.sampled_from(" \t\n\r\x1b;&|<>$`\"'\\{}#%x0a\u202e\x9b"), min_size=1, max_size=12),
    st.sampled_from(['"; SHUTDOWN', "\\", "\\x00", "'", '""', "# no", "\r\nFLUSHALL\r\n", "include /etc/x"]),
)


@settings(max_examples=6, deadline=None)
@given(st.lists(HOSTILE, min_size=15, max_size=15))
def test_redis_cli_reads_each_value_as_it_was(server: RedisServer, values: list[str]) -> None:
    for value in values:
        try:
            word = redis_word(value)
        except InputError:
            assert "\0" in value
            continue
        assert word.isprintable()
        assert cli(server, [f"CONFIG SET masterauth {word}"]) == ["OK"]
        assert server.ask("CONFIG", "GET", "masterauth") == ["masterauth", value]


@settings(max_examples=8, deadline=None)
@given(st.lists(HOSTILE.filter(lambda value: "\0" not in value), min_size=3, max_size=3))
def test_redis_conf_says_each_value_as_it_was(shared_place: str, values: list[str]) -> None:
    usable = dict(zip(NAMES, values, strict=True))
    conf = Path(shared_place) / "hostile.conf"
    lines = [f"{name} {redis_word(value)}" for name, value in usable.items()]
    socket = Path(shared_place) / "hostile.sock"
    conf.write_text("\n".join([*lines, "port 0", 'save ""', f"unixsocket {socket}", f"dir {shared_place}"]))
    with subprocess.Popen([RedisPrograms.find().server, str(conf)], stdout=subprocess.DEVNULL) as process:
        try:
            assert _told(socket, process) == usable
        finally:
            process.kill()


def _told(socket: Path, process: subprocess.Popen[bytes]) -> dict[str, str]:
    """What a server that just started says of those settings."""
    while process.poll() is None:
        try:
            return {name: str(ask(socket, ("CONFIG", "GET", name), 10)[1]) for name in NAMES}  # type: ignore[index]
        except StageFailed:
            time.sleep(0.01)
    raise AssertionError("the server refuses the file")


def test_the_rule_of_the_log_and_the_time_between_snapshots() -> None:
    rule = LogRule(100, 64 << 20)
    assert rule.cycle_bytes(10 << 20) == 54 << 20
    assert rule.cycle_bytes(100 << 20) == 100 << 20
    assert [rule.owed(pending, 100 << 20) for pending in (0, 1, 100 << 20, 250 << 20)] == [0, 1, 1, 3]
    assert LogRule(0, 0).owed(1 << 40, 1) == 1
    assert snapshot_cycle_s("3600 1 300 100 60 10000", 1000) == 60
    assert snapshot_cycle_s("3600 1 300 100 60 10000", 100) == 100
    assert snapshot_cycle_s("3600 1 300 100 60 10000", 1e-3) == 3600
    assert snapshot_cycle_s("", 1000) == 0


@pytest.mark.slow
def test_a_log_that_is_never_rewritten_leaves_its_work_to_be_charged(place: str) -> None:
    """The trap: naive trials report a gain, since the rewrites of the log come after them."""
    today = {"appendonly": "yes", "save": "", "auto-aof-rewrite-min-size": 2**20}
    pace = LoadTiming(4.0, 4.0, 0.5, lambda series: False)
    with Redis({"directory": place, "memory": "1 GiB", "settings": today}) as target:
        load = open_workload({"kind": "redis-benchmark", "mix": "writes", "keys": 20_000, "pipeline": 16})
        default = target.space.default()
        target.apply(default)
        load.prepare(target.workspace)
        target.settle()
        sides = {
            "default": default,
            "never": target.space.nearest({**default, "auto_aof_rewrite_percentage": 0}),
        }
        charges: dict[str, Charge] = {}
        for name, configuration in sides.items():
            target.apply(configuration)
            before = target.sample().deferred
            charges[name] = Charge.of(load.run(target.workspace, pace), before, target.sample().deferred)
            target.drain(600)
            assert not any(target.sample().deferred.values())
        assert charges["never"].left["log_bytes"] > 4 * charges["default"].left["log_bytes"]
