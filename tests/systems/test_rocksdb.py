"""RocksDB as a target: real databases, made and removed by the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scripts.catalogue import differences, told_by_rocksdb

from ascar.catalogues.rocksdb import rocksdb
from ascar.charging import Charge
from ascar.errors import EnvironmentLacks, StageFailed, StudyError, WorkError
from ascar.program.rocksdb import DATABASE, OPTIONS, OptionsInForce, RocksPrograms
from ascar.space import ChangeCost, Guarantee
from ascar.space.study_table import space_from_table
from ascar.systems.asking import apply_checked
from ascar.systems.rocksdb import RocksDB, rocksdb_space
from ascar.systems.rocksdb.event_log import DatabaseEvents, events_of
from ascar.systems.rocksdb.space import BY_OTHERS, options_here
from ascar.testing import TargetContract
from ascar.workloads import LoadTiming, open_workload
from own_servers import rocksdb_account, rocksdb_installed, server_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.space import Configuration, Value

PACE = LoadTiming(1.0, 2.0, 1.0, lambda series: False)
SMALL = {"kind": "db_bench", "keys": 20_000, "value_bytes": 100, "threads": 2, "benchmark": "overwrite"}
EAGER = {"write_buffer_size": 1 << 20, "level0_file_num_compaction_trigger": 2}
LAZY = {**EAGER, "level0_file_num_compaction_trigger": 64}
LAZY |= {"level0_slowdown_writes_trigger": 512, "level0_stop_writes_trigger": 1024}

pytestmark = pytest.mark.skipif(not rocksdb_installed(), reason="db_bench is not installed")


@pytest.fixture
def place() -> Iterator[str]:
    with server_place(rocksdb_account(), "ascar-rocks-") as folder:
        yield folder


@pytest.fixture
def target(place: str) -> Iterator[RocksDB]:
    with RocksDB({"directory": place, "memory": "1 GiB"}) as entered:
        yield entered


class TestRocksDBContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _place(self, place: str) -> None:
        self.place = place

    def options(self) -> dict[str, Any]:
        return {"directory": self.place, "memory": "1 GiB", "parameters": "wide"}

    def make(self) -> RocksDB:
        return RocksDB(self.options())


def with_values(target: RocksDB, **values: Value) -> Configuration:
    return target.space.default().replaced(**values)


def filled(target: RocksDB, configuration: Configuration, **options: Any) -> Any:
    """A target that has the configuration in force on filled data, and the load that filled it."""
    load = open_workload({**SMALL, **options})
    if not target.apply(configuration).filled:
        load.prepare(target.workspace)
    target.settle()
    return load


def test_the_catalogue_is_what_the_library_says() -> None:
    programs = RocksPrograms.find()
    said = {one.name: one for one in told_by_rocksdb(programs)}
    assert differences("rocksdb", rocksdb().values(), said) == []
    told = programs.defaults()
    for name, one in rocksdb().items():
        assert one.text(one.default) == told.values[name] or name == "block_cache", name
    assert {"kSnappyCompression", "kZSTD"} <= told.compressions


def test_rocksdb_takes_both_ends_of_each_range_and_every_word_as_they_are(place: str) -> None:
    with RocksDB({"directory": place, "memory": "2 GiB", "parameters": "wide"}) as target:
        default, refused = target.space.default(), list[str]()
        for column in range(7):
            values: dict[str, Value] = {}
            for one in options_here(RocksPrograms.find().defaults()):
                ends = [int(end) if one.kind == "integer" else end for end in one.search]
                listed = (
                    [*ends, *map(int, one.special)]
                    if one.kind in ("integer", "real")
                    else [*(one.values or (False, True))]
                )
                values[one.parameter_name] = listed[column % len(listed)]
            wanted = target.space.nearest({**default, **values})
            try:
                apply_checked(target, wanted)
            except StageFailed as failure:
                refused.append(failure.message)
        assert not refused


def test_an_upgrade_in_mid_study_ends_it(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, upgraded = Path(place, "db_bench"), Path(place, "db_bench.new")
    installed = RocksPrograms.find().bench
    shutil.copy2(installed, bench)
    monkeypatch.setenv("PATH", place, prepend=os.pathsep)
    with RocksDB({"directory": place}) as target:
        target.apply(target.space.default())
        target.apply(target.space.default())
        shutil.copy2(installed, upgraded)
        upgraded.replace(bench)  # as a package manager does
        with pytest.raises(WorkError, match="db_bench was replaced in mid-study") as caught:
            target.apply(target.space.default())
        assert not isinstance(caught.value, StageFailed), "which would fail this trial alone"


def test_random_configurations_are_read_back_equal(place: str) -> None:
    with RocksDB({"directory": place, "memory": "1 GiB", "parameters": "wide"}) as target:
        for configuration in target.space.sample(np.random.default_rng(7), 12):
            apply_checked(target, configuration)


def test_the_spaces_of_an_expert_and_of_everything() -> None:
    expert = RocksDB({"memory": "1 GiB"}).space
    wide = RocksDB({"memory": "1 GiB", "parameters": "wide"}).space
    assert 18 <= len(expert.parameters) <= 25
    assert len(wide.parameters) >= 60
    assert set(expert.names) < set(wide.names)
    assert expert["write_buffer_size"].cost is ChangeCost.DYN_APP
    assert expert["max_subcompactions"].cost is ChangeCost.DYN_APP
    assert expert["block_cache"].cost is ChangeCost.APP_RESTART
    assert expert["block_size"].cost is ChangeCost.REFORMAT_RESTORE


def test_memory_is_that_of_all_memtables_and_the_cache() -> None:
    space = RocksDB({"memory": "1 GiB"}).space
    buffers: dict[str, Value] = {"write_buffer_size": 256 << 20, "max_write_buffer_number": 3}
    space.validate({**space.default(), **buffers})
    with pytest.raises(Exception, match="block_cache"):
        space.validate({**space.default(), **buffers, "block_cache": 512 << 20})
    today = RocksDB({"memory": "256 MiB", "settings": {"block_cache": "1G"}}).space
    assert today.default()["block_cache"] == 1 << 30
    today.validate(today.default())


def test_memory_is_also_that_of_memtables_which_are_kept_after_their_flush() -> None:
    space = RocksDB({"memory": "512 MiB", "parameters": "wide"}).space
    kept: dict[str, Value] = {"max_write_buffer_size_to_maintain": 400 << 20}
    space.validate({**space.default(), **kept})
    with pytest.raises(Exception, match="max_write_buffer_size_to_maintain"):
        space.validate({**space.default(), "max_write_buffer_size_to_maintain": 512 << 20})
    today = RocksDB(
        {"memory": "256 MiB", "settings": {"max_write_buffer_size_to_maintain": 1 << 30}}
    ).space  # expert: it is not searched, and takes its part
    today.validate(today.default())
    with pytest.raises(Exception, match="block_cache"):
        today.validate({**today.default(), "block_cache": 64 << 20})


def test_the_database_of_today_has_values_that_no_search_tries_and_what_rocksdb_changes_for_them(
    place: str,
) -> None:
    given = {
        "level0_file_num_compaction_trigger": 30,
        "write_buffer_size": "1500K",
        "block_cache": "10000000",
    }
    target = RocksDB({"directory": place, "memory": "1 GiB", "settings": given})
    default = target.space.validate(target.space.default())
    assert default["write_buffer_size"] == 1_536_000
    assert default["block_cache"] == 10_000_000
    assert default["level0_slowdown_writes_trigger"] == 30, "RocksDB raises it"
    with target:
        apply_checked(target, default)
        for configuration in target.space.sample(np.random.default_rng(5), 4):
            apply_checked(target, configuration)


def test_triggers_ascend() -> None:
    space = RocksDB({}).space
    with pytest.raises(Exception, match="level0_slowdown_writes_trigger"):
        space.validate({**space.default(), "level0_file_num_compaction_trigger": 30})


def test_what_weakens_a_guarantee_is_named() -> None:
    space = RocksDB({"parameters": "wide"}).space
    for name, value, guarantee in (
        ("manual_wal_flush", True, Guarantee.DURABILITY),
        ("unordered_write", True, Guarantee.CONSISTENCY),
        ("checksum", "kNoChecksum", Guarantee.INTEGRITY),
        ("force_consistency_checks", False, Guarantee.INTEGRITY),
        ("max_total_wal_size", 1 << 30, Guarantee.AVAILABILITY),
    ):
        assert guarantee in space[name].weakens(value), name
    careful = {"use_fsync": True, "paranoid_file_checks": True, "max_total_wal_size": "64M"}
    today = RocksDB({"parameters": "wide", "settings": careful}).space
    for name, value, guarantee in (
        ("use_fsync", False, Guarantee.DURABILITY),
        ("paranoid_file_checks", False, Guarantee.INTEGRITY),
        ("max_total_wal_size", 128 << 20, Guarantee.AVAILABILITY),
        ("max_total_wal_size", 0, Guarantee.AVAILABILITY),
    ):
        assert guarantee in today[name].weakens(value), name
    assert not today["max_total_wal_size"].weakens(32 << 20)
    assert not any(space[name].weakens(space[name].default) for name in careful)
    searched = space_from_table({}, space)
    with pytest.raises(Exception, match="manual_wal_flush"):
        searched.validate({**searched.default(), "manual_wal_flush": True})
    assert not {"sync", "disable_wal"} & set(space.names), "that is the load's"


def test_an_exported_file_opens_a_fresh_database_that_has_just_these_values(tmp_path: Path) -> None:
    target, programs = RocksDB({"parameters": "wide", "memory": "1 GiB"}), RocksPrograms.find()
    known = {one.parameter_name: one for one in rocksdb().values()}
    for at, configuration in enumerate(target.space.sample(np.random.default_rng(3), 5)):
        chosen = target.space.departures(configuration)
        lines = target.commands(configuration, chosen)["rocksdb-options"]
        (tmp_path / "options").write_text("\n".join([*lines, ""]))
        database = tmp_path / str(at)
        words = programs.opening(database, tmp_path / "options", "--benchmarks=levelstats", "--num=1")
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        found = OptionsInForce.of(database).values
        for name in chosen:
            if name not in BY_OTHERS:
                read = known[name].value(found[known[name].name])
                assert read == pytest.approx(configuration[name], abs=1e-6), name  # six places are written


def test_an_exported_file_has_the_options_of_today_without_which_rocksdb_would_change_others(
    tmp_path: Path,
) -> None:
    today = {"level0_slowdown_writes_trigger": 100, "level0_stop_writes_trigger": 200, "block_cache": "64M"}
    target, programs = RocksDB({"settings": today}), RocksPrograms.find()
    configuration = with_values(target, level0_file_num_compaction_trigger=40)
    chosen = target.space.departures(configuration)
    assert chosen == ("level0_file_num_compaction_trigger",)
    lines = target.commands(configuration, chosen)
    assert len(lines["shell"]) == 1
    found = programs.opened(lines["rocksdb-options"]).values
    read = {name: rocksdb()[name].value(found[name]) for name in (*chosen, *today)}
    wanted = {"level0_slowdown_writes_trigger": 100, "level0_stop_writes_trigger": 200}
    assert read == {chosen[0]: 40, **wanted, "block_cache": 64 << 20}


def test_the_same_data_for_each_trial_and_another_layout_is_filled_again(target: RocksDB) -> None:
    default = target.space.default()
    filled(target, default)
    database = Path(target.workspace.environment[DATABASE])
    first = sorted(path.name for path in database.glob("*.sst"))
    assert first
    open_workload(SMALL).run(target.workspace, PACE)
    assert target.apply(with_values(target, max_background_jobs=4)).filled
    assert sorted(path.name for path in database.glob("*.sst")) == first
    other = with_values(target, compression="kNoCompression")
    assert not target.apply(other).filled, "its files are written anew"
    filled(target, other)
    assert target.apply(with_values(target, compression="kNoCompression", max_background_jobs=4)).filled
    assert target.apply(default).filled, "the first copy is kept"


def test_a_load_tells_rates_and_percentiles(target: RocksDB) -> None:
    load = filled(target, target.space.default(), benchmark="readwhilewriting")
    found = load.run(target.workspace, PACE)
    assert set(found.metrics) == load.reported
    names = ("p50", "p95", "p99", "p999", "max")
    latencies = [found.metrics[f"latency_ms_{name}"] for name in names]
    assert latencies == sorted(latencies)
    assert found.metrics["throughput_ops_per_s"] > 0
    assert len(found.series["throughput_ops_per_s"]) == 2
    assert 1.9 < found.load_s < 6.0, "late where the disk is slow, never early"
    early = load.run(target.workspace, LoadTiming(1.0, 30.0, 1.0, lambda series: True))
    assert early.ended == "enough"
    assert early.load_s < 10
    assert set(early.metrics) == load.reported


def test_work_that_is_put_off_is_counted_and_drained(target: RocksDB) -> None:
    load = filled(target, with_values(target, **LAZY), threads=1, value_bytes=400)
    before = target.sample()
    readings = load.run(target.workspace, PACE)
    after = target.sample()
    charge = Charge.of(readings, before.deferred, after.deferred)
    assert charge.is_due
    assert after.deferred["level0_files"] >= 4, "compactions are put off"
    target.drain(60.0)
    drained = target.sample()
    assert drained.deferred["level0_files"] < 4, "as the default has it"
    assert drained.counters["rocksdb_compactions"] > before.counters["rocksdb_compactions"]
    metrics = {"load_s": 2.0, "rocksdb_flushed_bytes": 1e8, "deferred_wal_bytes": 0.0}
    lazy, eager = with_values(target, **LAZY), with_values(target, **EAGER)
    assert target.cycle_s(lazy, metrics) > target.cycle_s(eager, metrics) > 0
    assert target.cycle_s(eager, {}) == 0


def test_a_database_that_nobody_filled_is_drained_at_once(target: RocksDB) -> None:
    target.drain(5.0)
    target.apply(target.space.default())
    target.drain(5.0)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("settings", {"nonsense": 1}, "must be a setting"),
        ("settings", {"compression": "kFastest"}, "target.settings.compression"),
        ("settings", {"write_buffer_size": "large"}, "target.settings.write_buffer_size"),
        ("settings", {"write_buffer_size": -4}, "write_buffer_size = -4: RocksDB would make"),
        (
            "settings",
            {"level0_slowdown_writes_trigger": 12, "level0_stop_writes_trigger": 8},
            "target.settings.level0_stop_writes_trigger = 8: RocksDB would make 12 of it",
        ),
        ("settings", {"write_bufer_size": 1}, "did you mean 'write_buffer_size'"),
        ("directory", "/nowhere", "is not a directory"),
        ("memory", "1 parsec", "target.memory"),
        ("data", "kept", "target.data"),
        ("user", "nobody-at-all", "target.user"),
    ],
)
def test_wrong_options_are_refused_in_one_line(key: str, value: Any, said: str) -> None:
    with pytest.raises(StudyError, match=said) as refused:
        RocksDB({key: value})
    assert "\n" not in refused.value.message


def test_a_version_that_is_not_installed_is_refused() -> None:
    with pytest.raises(EnvironmentLacks, match=r"target\.version = 3: must be one of the versions"):
        RocksDB({"version": 3})


@pytest.mark.parametrize(
    ("said", "status"),
    [("db_bench version 5.17.2", 0), ("db_bench: unknown flag --version", 1), ("", 0), ("\xff" * 100, 0)],
)
def test_another_db_bench_is_refused_in_one_line(
    said: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "db_bench").write_text(f"#!/bin/sh\nprintf '%s\\n' '{said}'\nexit {status}\n")
    (tmp_path / "db_bench").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(EnvironmentLacks, match="db_bench is not installed|is too old"):
        RocksDB({})


def test_an_option_that_a_version_lacks_is_left_out() -> None:
    told = RocksPrograms.find().defaults()
    gone = {"max_subcompactions", "cache_index_and_filter_blocks"}
    fewer = OptionsInForce(
        {name: text for name, text in told.values.items() if name not in gone} | {"brand_new": "1"},
        told.compressions - {"kZSTD"},
    )
    space = rocksdb_space("wide", tuple(options_here(fewer)), {}, 1 << 30)
    assert not gone & set(space.names)
    assert "brand_new" not in space
    with pytest.raises(Exception, match="compression"):
        space.validate({**space.default(), "compression": "kZSTD"})
    assert space.validate(space.default())


def test_db_bench_that_dies_fails_its_trial_by_name_and_the_next_goes_on(target: RocksDB) -> None:
    load = filled(target, target.space.default())
    database = Path(target.workspace.environment[DATABASE])
    (database / "CURRENT").write_text("nonsense\n")
    with pytest.raises(StageFailed, match="db_bench") as failure:
        load.run(target.workspace, PACE)
    assert "\n" not in failure.value.message
    target.apply(target.space.default())
    assert load.run(target.workspace, PACE).metrics["operations"] > 0


def test_an_option_that_rocksdb_refuses_fails_the_change(target: RocksDB) -> None:
    lines = [*target._lines(target.space.default()), '[TableOptions/BlockBasedTable "default"]', "  x=1"]
    database = target._entered()
    database.create()
    with pytest.raises(StageFailed, match="db_bench: ") as failure:
        database.begin(lines, 30.0)
    assert failure.value.stage == "change"
    assert not (database.place / "scratch").exists()


def test_without_a_database_the_load_says_what_it_needs(tmp_path: Path) -> None:
    from ascar.workspace import Workspace

    with pytest.raises(StageFailed, match="it needs target.kind = 'rocksdb'"):
        open_workload(SMALL).run(Workspace(tmp_path), PACE)


def test_the_log_is_read_whatever_stands_in_it(tmp_path: Path) -> None:
    events = DatabaseEvents()
    for line in (
        'EVENT_LOG_v1 {"event": "flush_started", "job": 1, "total_data_size": 100}',
        'EVENT_LOG_v1 {"event": "flush_started", "job": -5, "total_data_size": -100}',
        'EVENT_LOG_v1 {"event": "flush_started", "job": "x"}',
        "EVENT_LOG_v1 {",
        "EVENT_LOG_v1 []",
        'EVENT_LOG_v1 {"event": "flush_finished", "job": 1, "lsm_state": [3, 0]}',
        'EVENT_LOG_v1 {"event": "compaction_finished", "job": 9, "lsm_state": [], "total_output_size": 7}',
        "[WARN] Stalling writes because we have 20 level-0 files rate 16777216",
        "\0\ufffd" * 10,
    ):
        events.hear(line)
    assert (events.flushes, events.flushed_bytes, events.compacted_bytes) == (3, 100, 7)
    assert (events.level0_files, events.stalls) == (3, 1)
    (tmp_path / "LOG").write_bytes(b"\xff" * 100)
    assert events_of(tmp_path).flushes == 0
    assert events_of(tmp_path / "nowhere").flushes == 0
    assert OptionsInForce.of(tmp_path).values == {}


def test_nothing_is_left(place: str) -> None:
    with RocksDB({"directory": place}) as target:
        filled(target, target.space.default())
        assert (Path(target.workspace.environment[OPTIONS])).exists()
    assert not list(Path(place).iterdir())
