"""MariaDB as a target: real servers, made and removed by the tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace as altered
from scripts.catalogue import differences, told_by_mariadb

from ascar.capes.session.parameters import session_parameters
from ascar.catalogues.mariadb import mariadb
from ascar.charging import Charge
from ascar.errors import EnvironmentLacks, SpaceError, StageFailed, StudyError
from ascar.program import mariadb as finder
from ascar.program.account import Account
from ascar.program.mariadb import MariaPrograms
from ascar.space import ChangeCost, Guarantee
from ascar.space.study_table import space_from_table
from ascar.systems import open_target
from ascar.systems.adapter import Adapter
from ascar.systems.asking import apply_checked
from ascar.systems.mariadb import MariaDB, mariadb_space
from ascar.systems.mariadb.live_values import as_taken
from ascar.systems.mariadb.statements import statements_of
from ascar.testing import TargetContract
from ascar.workloads import LoadTiming, open_workload
from ascar.workspace import Workspace
from own_servers import mariadb_account, mariadb_installed, running, see_it_end_with_its_study, server_place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from ascar.space import Value
    from ascar.systems.mariadb.server import MariaServer

PACE = LoadTiming(1.0, 2.0, 1.0, lambda series: False)
SMALL = {"kind": "sysbench", "tables": 2, "rows": 1000, "clients": 2}
# What the server only tells once it has a pool of threads.
POOLED = {"thread_pool_size"}

pytestmark = pytest.mark.skipif(
    not mariadb_installed(), reason="MariaDB or sysbench is not installed, or has no account"
)


def _place() -> Iterator[str]:
    with server_place(mariadb_account(), "ascar-maria-") as folder:
        yield folder


def _wide(folder: str) -> dict[str, Any]:
    return {"directory": folder, "memory": "1 GiB", "parameters": "wide", "binary_log": True}


place = pytest.fixture(_place)
shared_place = pytest.fixture(_place, scope="module")


@pytest.fixture
def target(place: str) -> Iterator[MariaDB]:
    with MariaDB({"directory": place, "memory": "1 GiB"}) as entered:
        yield entered


@pytest.fixture(scope="module")
def working(shared_place: str) -> Iterator[MariaDB]:
    """A target with a binary log whose server has its own defaults."""
    with MariaDB(_wide(shared_place)) as entered:
        entered.apply(entered.space.default())
        yield entered


def server_of(target: MariaDB) -> MariaServer:
    server = target._server
    assert server is not None
    return server


@pytest.fixture(scope="class")
def kept() -> Iterator[MariaDB]:
    """A target for several tests, with whatever configuration the one before has left in force."""
    with server_place(mariadb_account(), "ascar-maria-") as folder, MariaDB(_wide(folder)) as entered:
        yield entered


@pytest.mark.slow
class TestMariaDBContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _made(self, place: str, kept: MariaDB) -> None:
        self.place, self.kept = place, kept

    def options(self) -> dict[str, Any]:
        return _wide(self.place)

    def make(self) -> MariaDB:
        return MariaDB(self.options())

    def entered(self) -> AbstractContextManager[MariaDB]:
        return nullcontext(self.kept)


def test_the_catalogue_is_what_the_server_says(working: MariaDB) -> None:
    told = {one.name: one for one in told_by_mariadb(server_of(working))}
    known = [one for name, one in mariadb().items() if name in told]
    assert len(known) >= 100
    assert differences("mariadb", known, told) == []
    first, capacity = known[0], mariadb()["innodb_io_capacity"]
    wrong = [altered(first, default=1), altered(capacity, search=(1, 1000))]
    assert differences("mariadb", wrong, told) == [
        f"{first.name}: default = 1: the server says {first.default}",
        "innodb_io_capacity: search = 1: the server takes 100 to 4294967295",
    ]


def test_nothing_of_the_environment_leads_to_another_server(
    working: MariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator's variables name a server that people use: the study's own has to be asked."""
    place = server_of(working).place
    variables = {"MYSQL_HOST": "127.0.0.1", "MYSQL_TCP_PORT": "1", "MYSQL_PWD": "of another server"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert server_of(working).ask("SELECT @@datadir").startswith(str(place))
    told = {**os.environ, **working.workspace.environment}
    argv = ["mariadb", "--no-defaults", "--user=root", "-e", "SELECT @@datadir"]
    done = subprocess.run(argv, env=told, capture_output=True, text=True, timeout=60, check=False)
    assert str(place) in done.stdout, done.stderr


def test_the_data_of_a_server_that_people_use_is_no_place_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RPM's account has it as its home, and what is made there is a database of that server."""
    at_home = replace(mariadb_account(), home=tmp_path)
    monkeypatch.setattr(Account, "of", lambda *_: at_home)
    assert MariaDB({})._directory == tmp_path
    (tmp_path / "ibdata1").touch()
    assert MariaDB({})._directory == Path("/var/tmp")


def test_temporary_tables_are_not_where_those_of_other_servers_are(working: MariaDB) -> None:
    """A server that starts deletes every temporary table in its directory: in /tmp, those of others."""
    server = server_of(working)
    assert server.ask("SELECT @@GLOBAL.tmpdir").strip() == str(server.place / "tmp")


@pytest.mark.slow
def test_the_server_takes_both_ends_of_each_range_and_every_word_as_they_are(working: MariaDB) -> None:
    server, space = server_of(working), working.space
    for name, setting in mariadb().items():
        if name not in space or name in POOLED or setting.context == "restart":
            continue
        ends = [*setting.search, *map(int, setting.special)] if setting.kind in ("integer", "real") else ()
        before = setting.value(server.settings()[name])
        for value in ends or setting.values or (False, True):
            wanted: dict[str, Value] = {name: int(value) if setting.kind == "integer" else value}
            partners: dict[str, Value] = {}
            if name == "innodb_io_capacity":
                partners = {"innodb_io_capacity_max": 100_000}
            if name == "innodb_max_dirty_pages_pct":
                partners = {"innodb_max_dirty_pages_pct_lwm": 0.0}
            server.ask(" ".join(statements_of({**partners, **wanted}, {})))
            assert setting.value(server.settings()[name]) == wanted[name], (name, value)
        server.ask(statements_of({name: before}, {})[0])


def test_the_spaces_of_an_expert_and_of_everything() -> None:
    expert = MariaDB({"memory": "1 GiB"}).space
    wide = MariaDB({"memory": "1 GiB", "parameters": "wide"}).space
    logged = MariaDB({"memory": "1 GiB", "binary_log": True}).space
    assert 18 <= len(expert.parameters) <= 25
    assert len(wide.parameters) >= 80
    assert set(expert.names) < set(wide.names)
    assert set(logged.names) - set(expert.names) == {"sync_binlog"}
    assert expert["innodb_buffer_pool_size"].cost is ChangeCost.APP_RESTART
    assert expert["innodb_io_capacity"].cost is ChangeCost.DYN_APP
    assert expert["sort_buffer_size"].cost is ChangeCost.APP_RESTART, "it takes new connections"


def test_memory_is_summed_up_at_max_connections() -> None:
    small = MariaDB({"memory": "1 GiB", "max_connections": 20}).space
    many = MariaDB({"memory": "1 GiB", "max_connections": 200}).space
    wanted: dict[str, Value] = {"sort_buffer_size": 16 << 20}
    small.validate({**small.default(), **wanted})
    with pytest.raises(Exception, match="sort_buffer_size"):
        many.validate({**many.default(), **wanted})
    with pytest.raises(Exception, match="innodb_buffer_pool_size"):
        small.validate({**small.default(), "innodb_buffer_pool_size": 2 << 30})
    # What the server of today may use is allowed in any case.
    today = MariaDB({"memory": "1 GiB", "settings": {"innodb_buffer_pool_size": "2G"}}).space
    assert today.default()["innodb_buffer_pool_size"] == 2 << 30
    today.validate(today.default())


def test_what_each_connection_keeps_in_the_wide_space_is_counted_too() -> None:
    space = MariaDB({"memory": "1 GiB", "parameters": "wide", "binary_log": True}).space
    for name in ("query_prealloc_size", "net_buffer_length", "mrr_buffer_size", "binlog_stmt_cache_size"):
        most = int(mariadb()[name].search[1])
        nearest = space.nearest({**space.default(), name: most})
        assert int(nearest[name]) * 151 < 1 << 30, name


def test_tables_are_kept_open_within_the_files_that_the_server_may_open() -> None:
    known = tuple(MariaDB({})._known.values())
    space = mariadb_space("expert", known, {}, 100, 1 << 30, files=4131)
    space.validate({**space.default(), "table_open_cache": 2000})
    with pytest.raises(SpaceError, match="table_open_cache"):
        space.validate({**space.default(), "table_open_cache": 2001})


def test_temporary_tables_in_memory_can_grow_in_the_space_of_an_expert(target: MariaDB) -> None:
    """The server takes the smaller one of two limits."""
    larger: dict[str, Value] = {"tmp_table_size": 64 << 20, "max_heap_table_size": 64 << 20}
    target.apply(space_from_table({}, target.space).validate({**target.space.default(), **larger}))
    query = "SELECT COUNT(*) FROM (SELECT DISTINCT seq, REPEAT('x', 200) FROM seq_1_to_100000) AS made"
    told = server_of(target).ask(f"{query}; SHOW SESSION STATUS LIKE 'Created_tmp_disk_tables'")
    assert told.split() == ["100000", "Created_tmp_disk_tables", "0"]


def test_a_pool_of_whole_chunks_is_in_force_as_it_was_asked_for(
    working: MariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "innodb_buffer_pool_size"
    wanted = int(working.space.default()[name])
    told = server_of(working).settings()
    for pool, chunk, read in (
        (wanted, 0, wanted),
        (wanted + 2 * 2**20, 10 * 2**20, wanted),  # 130 MiB, where chunks have 10
        (wanted + 12 * 2**20, 10 * 2**20, wanted + 12 * 2**20),
    ):
        other = {name: str(pool), "innodb_buffer_pool_chunk_size": str(chunk)}
        monkeypatch.setattr(server_of(working), "settings", lambda other=other: {**told, **other})
        assert working.read([name]) == {name: read}, (pool, chunk)


TODAY: dict[str, Any] = {
    "innodb_buffer_pool_size": "300M",  # between two of the sizes that are searched
    "innodb_io_capacity": 5000,
    "innodb_max_dirty_pages_pct": 50,
    "innodb_max_dirty_pages_pct_lwm": 60,
    "query_cache_size": "64M",
    "table_open_cache": 64,
    "sort_buffer_size": 100_001,
    "aria_checkpoint_interval": 60,  # of which `mariadbd --help` tells nothing
}


def test_the_settings_of_today_may_be_values_that_no_search_tries_and_have_what_the_server_derives() -> None:
    space = MariaDB({"memory": "1 GiB", "parameters": "wide", "settings": TODAY}).space
    default = space.validate(space.default())
    assert default["innodb_buffer_pool_size"] == 300 << 20
    assert default["innodb_io_capacity_max"] == 10_000
    assert default["innodb_max_dirty_pages_pct_lwm"] == 50.0
    assert default["query_cache_type"] == "ON"
    assert default["table_open_cache"] == 64
    assert space.nearest({**default, "innodb_buffer_pool_size": 512 << 20}) != default


@pytest.mark.slow
def test_the_settings_of_today_are_those_that_such_a_server_has(place: str) -> None:
    options = {"directory": place, "memory": "1 GiB", "parameters": "wide", "settings": TODAY}
    with MariaDB(options) as target:
        default = target.space.default()
        apply_checked(target, default)
        server = server_of(target)
        told = server.settings()
        server.stop()
        server.begin([f"{name} = {value}" for name, value in TODAY.items()], 60)
        by_itself = server.settings()
        assert not {name for name, value in told.items() if by_itself[name] != value and name in mariadb()}
        for near in (64 << 20, 300 << 20, 512 << 20):
            wanted = target.space.nearest({**default, "innodb_buffer_pool_size": near})
            apply_checked(target, wanted)


def test_a_connection_keeps_its_cache_of_the_binary_log(working: MariaDB) -> None:
    server = server_of(working)

    def disk_use() -> int:
        return int(server.status()["Binlog_cache_disk_use"])

    insert = "INSERT INTO cached VALUES (REPEAT('x', 100000))"
    server.ask("CREATE TABLE cached (v LONGBLOB) ENGINE = InnoDB; SET GLOBAL binlog_cache_size = 4096")
    try:
        before = disk_use()
        larger = "SET GLOBAL binlog_cache_size = 1048576"
        server.ask(f"SET SESSION binlog_format = ROW; {insert}; {larger}; {insert}")
        assert disk_use() == before + 2, "the connection has the size with which it began"
        server.ask(f"SET SESSION binlog_format = ROW; {insert}")
        assert disk_use() == before + 2
    finally:
        server.ask("DROP TABLE cached; SET GLOBAL binlog_cache_size = 32768")
    assert mariadb()["binlog_cache_size"].context == "connection"


def test_what_a_server_takes_bounds_the_settings_of_one_that_people_use() -> None:
    rows = [
        "innodb_io_capacity\tNO\tGLOBAL\t200\t30000\t",
        "innodb_flush_neighbors\tYES\tGLOBAL\t0\t2\t",
        "innodb_stats_method\tNO\tGLOBAL\t\t\tnulls_equal,nulls_unequal",
        "innodb_deadlock_report\tNO\tGLOBAL\t\t\toff",
        "innodb_lru_scan_depth\tNO\tGLOBAL\t20000\t30000\t",
        "innodb_flush_sync\tNO\tGLOBAL\t\t\tOFF,ON",
        "a line that is none",
    ]
    taken = as_taken("\n".join(rows))
    assert set(taken) == {
        "innodb_io_capacity",
        "innodb_flush_neighbors",
        "innodb_stats_method",
        "innodb_flush_sync",
    }
    assert taken["innodb_io_capacity"].search == (200, 30_000)
    assert taken["innodb_flush_neighbors"].context == "restart"
    assert taken["innodb_stats_method"].values == ("nulls_equal", "nulls_unequal")


def test_what_weakens_a_guarantee_is_named_against_the_server_of_today() -> None:
    space = MariaDB({"parameters": "wide", "binary_log": True, "settings": {"sync_binlog": 1}}).space
    for name, value, guarantee in (
        ("innodb_flush_log_at_trx_commit", "2", Guarantee.DURABILITY),
        ("innodb_flush_log_at_trx_commit", "0", Guarantee.DURABILITY),
        ("sync_binlog", 0, Guarantee.DURABILITY),
        ("sync_binlog", 100, Guarantee.DURABILITY),
        ("innodb_doublewrite", False, Guarantee.INTEGRITY),
        ("innodb_checksum_algorithm", "crc32", Guarantee.INTEGRITY),
        ("innodb_flush_method", "nosync", Guarantee.DURABILITY),
        ("innodb_log_file_size", 1 << 30, Guarantee.AVAILABILITY),
        ("max_heap_table_size", 1 << 20, Guarantee.AVAILABILITY),
        ("binlog_checksum", "NONE", Guarantee.INTEGRITY),
    ):
        assert guarantee in space[name].weakens(value), name
    searched = space_from_table({}, space)
    with pytest.raises(Exception, match="innodb_doublewrite"):
        searched.validate({**searched.default(), "innodb_doublewrite": False})
    lax = MariaDB({"settings": {"innodb_flush_log_at_trx_commit": 2}}).space
    assert not lax["innodb_flush_log_at_trx_commit"].weakens("1")
    assert not lax["innodb_flush_log_at_trx_commit"].weakens("2")
    assert lax["innodb_flush_log_at_trx_commit"].weakens("0")
    strict = {"binlog_format": "ROW", "innodb_checksum_algorithm": "strict_full_crc32"}
    strict["aria_sync_log_dir"] = "ALWAYS"
    more = MariaDB({"parameters": "wide", "binary_log": True, "settings": strict}).space
    for name, value, guarantee in (
        ("binlog_format", "MIXED", Guarantee.CONSISTENCY),
        ("innodb_checksum_algorithm", "full_crc32", Guarantee.INTEGRITY),
        ("aria_sync_log_dir", "NEWFILE", Guarantee.DURABILITY),
    ):
        assert guarantee in more[name].weakens(value), name
        assert not space[name].weakens(value), name
    plain = MariaDB({"binary_log": True}).space
    assert not plain["sync_binlog"].weakens(1), "by itself, the server never forces its binary log"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"directory": "/proc/absent/x"}, "target.directory = '/proc/absent/x': is not a directory"),
        ({"directory": ""}, "target.directory = '': must be a path"),
        ({"parameters": "all"}, "target.parameters"),
        ({"memory": "much"}, "target.memory = 'much': is not a size"),
        ({"data": "old"}, "target.data"),
        ({"max_connections": 3}, "target.max_connections = 3: must be from 10"),
        ({"user": "no-such-user-here"}, "target.user = 'no-such-user-here': there is no such account"),
        ({"user": "root"}, "MariaDB must not run as root"),
        ({"memry": "1 GiB"}, "memry"),
        ({"settings": {"init_file": "/tmp/x"}}, "target.settings.init_file: must be a setting"),
        ({"settings": {"sync_binlog": 1}}, "target.settings.sync_binlog: must be a setting"),
        ({"settings": {"max_connections": 500}}, "must be left out; set target.max_connections instead"),
        ({"settings": {"log_bin": "ON"}}, "must be left out; set target.binary_log instead"),
        ({"settings": {"inodb_io_capacity": 1}}, "did you mean 'innodb_io_capacity'?"),
        ({"settings": {"table_open_cache": 1}}, "table_open_cache = 1: MariaDB would make 10 of it"),
        ({"settings": {"innodb_io_capacity": "fast"}}, "target.settings.innodb_io_capacity = 'fast'"),
        ({"settings": {"innodb_buffer_pool_size": 1}}, "target.settings.innodb_buffer_pool_size = 1"),
        ({"settings": {"innodb_flush_method": "O\nX"}}, "target.settings.innodb_flush_method = 'O\\nX'"),
    ],
)
def test_a_wrong_key_is_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        MariaDB(options)
    assert words in told.value.message
    assert "\n" not in told.value.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tables": 0}, "workload.tables = 0: must be from 1"),
        ({"rows": 0}, "workload.rows = 0: must be from 1"),
        ({"clients": 0}, "workload.clients = 0: must be from 1"),
        ({"seed": -1}, "workload.seed = -1: must be from 0"),
        ({"rate_per_s": 0}, "workload.rate_per_s = 0: must be from 1"),
        ({"test": "oltp"}, "workload.test"),
        ({"distribution": "flat"}, "workload.distribution"),
    ],
)
def test_a_wrong_key_of_the_load_is_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        open_workload({"kind": "sysbench", **options})
    assert words in told.value.message


def test_a_version_that_is_not_installed_is_one_line() -> None:
    with pytest.raises(EnvironmentLacks, match=r"target\.version = 99: must be one of the versions"):
        MariaDB({"version": 99})


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("mariadbd  Ver 10.6.18-MariaDB for Linux on x86_64", "is too old; ascar tunes versions from 10.11"),
        ("mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)", "MariaDB is not installed"),
        ("something else", "MariaDB is not installed; install the package mariadb-server"),
    ],
)
def test_a_server_of_a_wrong_version_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, words: str
) -> None:
    program = tmp_path / "mariadbd"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(finder, "_FOLDERS", ())
    with pytest.raises(EnvironmentLacks, match=words):
        MariaDB({})


def test_the_load_needs_a_server_and_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = open_workload(SMALL)
    with pytest.raises(StageFailed, match=r"it needs target\.kind = 'mariadb'"):
        load.prepare(Workspace(tmp_path))
    nowhere = {
        "MYSQL_UNIX_PORT": str(tmp_path / "none"),
        "MARIADB_USER": "root",
        "MARIADB_DATABASE": "test",
    }
    with pytest.raises(StageFailed, match="sysbench: unable to connect to MySQL server on socket"):
        load.run(Workspace(tmp_path, environment=nowhere), PACE)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="sysbench is not installed; install the package sysbench"):
        open_workload(SMALL)


def test_each_trial_starts_on_the_same_data_and_a_server_that_refuses_fails_its_trial_alone(
    target: MariaDB, place: str
) -> None:
    load = open_workload(SMALL)
    default = target.space.default()
    assert not target.apply(default).filled
    load.prepare(target.workspace)
    target.settle()
    server = server_of(target)
    total = "SELECT sum(k) FROM sbtest1"
    before = server.ask(total)
    found = load.run(target.workspace, PACE).metrics
    assert found["operations"] > 0
    assert found["latency_ms_p50"] <= found["latency_ms_p99"] <= found["latency_ms_p999"]
    assert found["latency_ms_p999"] <= 1.02 * found["latency_ms_max"]
    assert server.ask(total) != before
    sample = target.sample()
    assert sample.counters["mariadb_commits"] >= found["operations"]
    assert sample.counters["mariadb_log_bytes"] > 0
    assert sample.deferred["dirty_bytes"] > 0
    assert target.cycle_s(default, {"mariadb_log_bytes": 1e6, "load_s": 1.0}) == pytest.approx(80.5, rel=0.01)
    target.drain(60)
    drained = target.sample().deferred
    assert drained["dirty_bytes"] == 0
    assert drained["log_bytes"] < 0.01 * sample.deferred["log_bytes"] + 4096
    assert drained["unpurged_transactions"] == 0

    server.stop()
    with pytest.raises(StageFailed, match="does not start: unknown variable 'no_such_setting=1'"):
        server.begin(["no_such_setting = 1"], 30)
    with pytest.raises(StageFailed, match="Error while setting value 'sometimes' to 'innodb-flush-method'"):
        server.begin(["innodb_flush_method = sometimes"], 30)

    wanted: dict[str, Value] = {"innodb_log_file_size": 32 << 20, "innodb_io_capacity": 400}
    change = target.apply(target.space.validate({**default, **wanted}))
    assert change.filled
    assert target.read(tuple(wanted)) == wanted
    assert server.ask(total) == before
    assert len(running(place, "mariadbd")) >= 1


def test_a_server_that_dies_fails_its_trial_alone(target: MariaDB) -> None:
    load = open_workload(SMALL)
    target.apply(target.space.default())
    load.prepare(target.workspace)
    target.settle()
    server = server_of(target)
    assert server._processes
    os.kill(server._processes[0].pid, signal.SIGKILL)
    server._processes[0]._process.wait(60)
    with pytest.raises(StageFailed, match="sysbench: "):
        load.run(target.workspace, PACE)
    with pytest.raises(StageFailed, match="was killed by signal 9"):
        target.health(5)
    with pytest.raises(StageFailed, match="was killed by signal 9"):
        target.sample()
    target.apply(target.space.default())
    assert server.ask("SELECT count(*) FROM sbtest1").strip() == "1000"


@pytest.mark.parametrize("connections", [10, 1000])
def test_the_default_is_what_the_server_chooses_by_itself(place: str, connections: int) -> None:
    options = {"directory": place, "parameters": "wide", "max_connections": connections, "binary_log": True}
    with MariaDB({**options, "memory": "4 GiB"}) as target:
        default = target.space.default()
        apply_checked(target, default)
        server = server_of(target)
        told = server.settings()
        server.stop()
        server.begin([], 60)
        by_itself = server.settings()
        changed = {name for name, value in told.items() if by_itself[name] != value}
        assert not {one for one in changed if one in mariadb()}


def test_a_load_that_has_told_enough_ends_early(target: MariaDB) -> None:
    target.apply(target.space.default())
    load = open_workload({**SMALL, "rate_per_s": 50})
    load.prepare(target.workspace)
    pace = LoadTiming(1.0, 30.0, 1.0, bool)
    begun_s = time.monotonic()
    found = load.run(target.workspace, pace)
    assert found.ended == "enough"
    assert time.monotonic() - begun_s < 20
    assert found.load_s < 15
    # Transactions arrive at a rate of 50 a second, which any machine keeps up with.
    assert 20 <= found.metrics["throughput_ops_per_s"] <= 80


def test_it_ends_with_whoever_is_killed(place: str) -> None:
    see_it_end_with_its_study("mariadb", place, "mariadbd")


def test_kept_data_takes_statements_and_a_new_start_where_it_must(place: str) -> None:
    with MariaDB({"directory": place, "data": "kept"}) as target:
        default = target.space.default()
        target.apply(default)
        open_workload(SMALL).prepare(target.workspace)
        target.settle()
        server = server_of(target)
        process = server._processes[0]
        server.ask("INSERT INTO sbtest1 (k) VALUES (1)")
        rows = "SELECT count(*) FROM sbtest1"
        # The upper limit falls below what the lower one was, and then rises with it.
        for capacity, most in ((100, 150), (3000, 5000)):
            wanted: dict[str, Value] = {
                "innodb_io_capacity": capacity,
                "innodb_io_capacity_max": most,
                "innodb_flush_neighbors": "0",
                "innodb_adaptive_hash_index": True,
            }
            apply_checked(target, target.space.validate({**default, **wanted}))
            assert target.read(tuple(wanted)) == wanted
        assert server._processes[0] is process
        assert server.ask(rows).strip() == "1001"
        apply_checked(target, target.space.validate({**default, "innodb_buffer_pool_size": 64 << 20}))
        assert server._processes[0] is not process
        assert server.ask(rows).strip() == "1001"
        target.start_afresh()
        target.apply(default)
        assert server.ask(rows).strip() == "1000"


def test_a_session_sets_what_changes_while_a_load_runs(place: str) -> None:
    """As `ascar capes up` does it: through the adapter, by SET GLOBAL, and back again at the end."""
    with MariaDB(MariaDB.for_session({"directory": place})) as target:
        names = {one.parameter.name for one in session_parameters(target, target.space, None)}
        assert {"innodb_io_capacity", "innodb_flush_neighbors", "innodb_max_dirty_pages_pct"} <= names
        # What takes a new start or a new connection, and what brings others into play, stays as it is.
        assert not {"innodb_buffer_pool_size", "sort_buffer_size", "innodb_flush_log_at_trx_commit"} & names
        default = target.space.default()
        target.apply(default)
        open_workload(SMALL).prepare(target.workspace)
        target.settle()
        server = server_of(target)
        process = server._processes[0]
        connection = [f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=test", "--tables=2"]
        with subprocess.Popen(
            ["sysbench", "oltp_update_index", *connection, "--table-size=1000", "--time=600", "run"],
            stdout=subprocess.DEVNULL,
        ) as load:
            try:
                adapter = Adapter(target, target.space, default)
                wanted = {"innodb_io_capacity": 777, "innodb_max_dirty_pages_pct": 12.3456789}
                assert adapter.answer(json.dumps({"set": wanted}).encode()) == {"ok": wanted}
                assert server.settings()["innodb_io_capacity"] == "777"
                assert "innodb_io_capacity" in adapter.answer(b'{"set": {"innodb_io_capacity": 1}}')["error"]
                assert adapter.answer(b'{"sample": true}')["ok"]["counters"]["mariadb_statements"] > 0
                adapter.restore()
                assert target.read(tuple(wanted)) == {name: default[name] for name in wanted}
                assert server._processes[0] is process
                assert load.poll() is None
            finally:
                load.kill()


def test_what_an_administrator_is_told(place: str) -> None:
    target = open_target({"kind": "mariadb", "directory": place, "memory": "4 GiB"})
    wanted: dict[str, Value] = {
        "innodb_buffer_pool_size": 1 << 30,
        "innodb_io_capacity": 3000,
        "innodb_io_capacity_max": 6000,
        "thread_cache_size": 10,
    }
    configuration = target.space.validate({**target.space.default(), **wanted})
    lines = target.commands(configuration, tuple(wanted))
    assert lines["my.cnf"] == [
        "[mysqld]",
        "innodb_buffer_pool_size = 1073741824",
        "innodb_io_capacity = 3000",
        "innodb_io_capacity_max = 6000",
        "thread_cache_size = 10",
    ]
    told = "# write below [mysqld] in my.cnf, and restart the server: innodb_buffer_pool_size = 1073741824"
    assert lines["set-global"] == [
        "SET GLOBAL innodb_io_capacity_max = 6000;",
        "SET GLOBAL innodb_io_capacity = 3000;",
        "SET GLOBAL thread_cache_size = 10;",
        told,
    ]
    assert lines["shell"][0] == "mariadb -e 'SET GLOBAL innodb_io_capacity_max = 6000;'"
    assert lines["shell"][-1] == told
    cached = MariaDB({"parameters": "wide", "settings": {"query_cache_size": "64M"}})
    without = cached.space.nearest({**cached.space.default(), "query_cache_type": "OFF"})
    # With the size that my.cnf has today, the server would turn it on again.
    assert cached.commands(without, ("query_cache_type",))["my.cnf"] == [
        "[mysqld]",
        "query_cache_type = OFF",
        "query_cache_size = 0",
    ]


WANTED: dict[str, Value] = {
    "innodb_log_buffer_size": 32 << 20,
    "innodb_io_capacity": 2500,
    "innodb_io_capacity_max": 3000,  # the server would derive 5000
    "innodb_max_dirty_pages_pct": 75.5,
    "innodb_max_dirty_pages_pct_lwm": 12.25,
    "innodb_flush_neighbors": "0",
    "innodb_flush_method": "fsync",
    "innodb_adaptive_hash_index": True,
    "thread_handling": "pool-of-threads",
    "thread_pool_size": 3,
    "sort_buffer_size": 1 << 20,
    "query_cache_type": "DEMAND",
    "innodb_stats_method": "nulls_ignored",
    "sync_binlog": 1,
    "binlog_row_image": "MINIMAL",
}


@pytest.mark.parametrize("form", ["my.cnf", "set-global", "shell"])
def test_what_is_exported_works_on_a_fresh_server_and_is_read_back_equal(
    working: MariaDB, place: str, form: str
) -> None:
    configuration = working.space.nearest({**working.space.default(), **WANTED})
    assert {name: configuration[name] for name in WANTED} == WANTED
    lines = working.commands(configuration, tuple(WANTED.keys() - {"innodb_io_capacity_max"}))[form]
    with MariaDB({"directory": place, "binary_log": True, "memory": "1 GiB"}) as fresh:
        fresh.apply(fresh.space.default())
        server = server_of(fresh)
        wanted = dict(WANTED)
        if form == "my.cnf":
            assert len(lines) == 1 + len(WANTED)
            server.stop()
            server.begin(lines[1:], 60)
        else:
            dynamic = {name for name in WANTED if mariadb()[name].context != "restart"}
            wanted = {name: WANTED[name] for name in WANTED if name in dynamic - POOLED}
            reached = {**server.reached, "PATH": "/usr/bin:/bin", "USER": "root", "LOGNAME": "root"}
            text = "".join(f"{line}\n" for line in lines)
            client = ["mariadb", "--no-defaults", f"--user={reached['MARIADB_USER']}"]
            words = client if form == "set-global" else ["sh"]
            text = text.replace("mariadb -e", f"{' '.join(client)} -e") if form == "shell" else text
            done = subprocess.run(
                words, input=text, capture_output=True, text=True, check=False, env=dict(reached)
            )
            assert done.returncode == 0, done.stderr
        told = server.settings()
        assert {name: mariadb()[name].value(told[name]) for name in wanted} == wanted


@pytest.mark.slow
def test_a_huge_log_that_puts_writing_off_pays_for_it_after_the_load(place: str) -> None:
    """The trap: a naive trial ends before the pages are written."""
    prompt: dict[str, Value] = {
        "innodb_buffer_pool_size": 128 << 20,
        "innodb_log_file_size": 16 << 20,
        "innodb_io_capacity": 5000,
        "innodb_io_capacity_max": 10_000,
        "innodb_max_dirty_pages_pct_lwm": 1.0,
    }
    late: dict[str, Value] = {
        "innodb_log_file_size": 1 << 30,
        "innodb_max_dirty_pages_pct": 99.0,
        "innodb_max_dirty_pages_pct_lwm": 0.0,
    }
    written = 0.0

    def has_written(series: object) -> bool:
        """Loads end by what they write, however fast the machine is: thrice what the small log holds."""
        return target.sample().counters["mariadb_log_bytes"] - written > 40e6

    pace = LoadTiming(1.0, 120.0, 1.0, has_written)
    with MariaDB({"directory": place, "memory": "1 GiB", "settings": prompt}) as target:
        load = open_workload(
            {"kind": "sysbench", "test": "oltp_update_index", "tables": 2, "rows": 100_000, "clients": 4}
        )
        default = target.space.default()
        target.apply(default)
        load.prepare(target.workspace)
        target.settle()
        left: dict[str, float] = {}
        for name, configuration in (
            ("prompt", default),
            ("late", target.space.nearest({**default, **late})),
        ):
            target.apply(configuration)
            sample = target.sample()
            before, written = sample.deferred, sample.counters["mariadb_log_bytes"]
            readings = load.run(target.workspace, pace)
            assert readings.ended == "enough"
            charge = Charge.of(readings, before, target.sample().deferred)
            left[name] = charge.left["log_bytes"]
            begun_s = time.monotonic()
            target.drain(600)
            charge = replace(charge, drain_s=time.monotonic() - begun_s)
            assert target.sample().deferred["log_bytes"] < 0.01 * charge.left["log_bytes"] + 4096
            assert charge.is_due
            rate = "throughput_ops_per_s"
            share = charge.load_s / (charge.load_s + charge.tail_s + charge.owned * charge.drain_s)
            assert charge.charged(readings).metrics[rate] == pytest.approx(readings.metrics[rate] * share)
            assert share < 1
        assert left["late"] > 2 * left["prompt"], left


def test_programs_are_found_in_folders_of_administrators() -> None:
    found = MariaPrograms.find()
    assert Path(found.path("mariadb")).name == "mariadb"
    assert found.settings(151)["innodb_flush_log_at_trx_commit"] == "1"
