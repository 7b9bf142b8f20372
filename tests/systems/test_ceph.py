"""Ceph as a target: real clusters, made and removed by the tests that are slow; the others start none."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scripts.catalogue import differences, told_by_ceph

from ascar.catalogues.ceph import ceph
from ascar.charging import Charge
from ascar.degraded import degraded_metrics
from ascar.errors import EnvironmentLacks, InputError, StageFailed, StudyError
from ascar.program.ceph import CONFIGURATION, CephPrograms
from ascar.space import ChangeCost, Guarantee
from ascar.space.study_table import space_from_table
from ascar.systems.asking import apply_checked
from ascar.systems.ceph import Ceph, ceph_space
from ascar.systems.ceph.admin_socket import ask_daemon
from ascar.systems.ceph.statements import forms_of, settings_of
from ascar.testing import TargetContract
from ascar.workloads import LoadTiming, open_workload
from ascar.workspace import Workspace
from own_servers import ceph_account, ceph_installed, server_place
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ascar.space import Value

PACE = LoadTiming(1.0, 2.0, 1.0, lambda series: False)
SMALL = {"kind": "rados-bench", "objects": 2000, "operations": 8, "overrun_limit": "5 s"}
ONE = {"memory": "1 GiB", "osds": 1, "replicas": 1}
needs_ceph = pytest.mark.skipif(not ceph_installed(), reason="Ceph is not installed, or has no account")


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with server_place(ceph_account(), "ascar-ceph-") as folder:
        yield folder


@pytest.fixture(scope="module")
def filled(place: str) -> Iterator[Ceph]:
    """A cluster of three OSDs with data, which the tests share: each applies what it needs."""
    with Ceph({"directory": place, "memory": "3 GiB", "parameters": "wide"}) as target:
        target.apply(target.space.default())
        open_workload(SMALL).prepare(target.workspace)
        target.settle()
        yield target


@needs_ceph
@pytest.mark.slow
@pytest.mark.cluster
class TestCephContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _place(self, place: str) -> None:
        self.place = place

    def options(self) -> dict[str, Any]:
        return {"directory": self.place, "parameters": "wide", **ONE}

    def make(self) -> Ceph:
        return Ceph(self.options())


def test_the_spaces_of_an_expert_and_of_everything() -> None:
    expert, wide = (ceph_space(name, {}, 1 << 30) for name in ("expert", "wide"))
    assert 20 <= len(expert.parameters) <= 30
    assert set(expert.names) < set(wide.names)
    assert expert["bluestore_throttle_bytes"].cost is ChangeCost.DYN_APP
    assert expert["osd_op_num_shards"].cost is ChangeCost.APP_RESTART
    assert expert["objecter_inflight_ops"].cost is ChangeCost.APP_RESTART
    assert "bluestore_cache_size" not in wide.default(), "the caches are sized by the memory"
    assert not {"size", "min_size", "osd_memory_target"} & set(wide.names), "the study says these"


def test_caches_share_what_there_is() -> None:
    space = ceph_space("expert", {}, 1 << 30)
    with pytest.raises(InputError, match="bluestore_cache_kv_ratio"):
        space.validate({**space.default(), "bluestore_cache_kv_ratio": 0.9})


def test_what_weakens_a_guarantee_is_named() -> None:
    space = ceph_space("wide", {}, 1 << 30)
    for name, value, guarantee in (
        ("bluestore_csum_type", "none", Guarantee.INTEGRITY),
        ("bluestore_csum_type", "crc32c_8", Guarantee.INTEGRITY),
        ("ms_crc_data", False, Guarantee.INTEGRITY),
        ("bluestore_throttle_deferred_bytes", 1 << 30, Guarantee.AVAILABILITY),
        ("osd_min_pg_log_entries", 100, Guarantee.AVAILABILITY),
    ):
        assert guarantee in space[name].weakens(value), name
    searched = space_from_table({}, space)
    with pytest.raises(InputError, match="ms_crc_data"):
        searched.validate({**searched.default(), "ms_crc_data": False})
    assert not space["bluestore_csum_type"].weakens("xxhash64")


@needs_ceph
def test_a_log_level_of_today_is_where_a_study_starts_from() -> None:
    options = {"memory": "3 GiB", "settings": {"debug_osd": "20/20"}}
    space = Ceph(options).space
    assert space.default()["debug_osd"] == "20/20"
    assert space.validate({**space.default(), "debug_osd": "0/0"})
    with pytest.raises(StudyError, match="debug_osd = '21/20'.*not allowed"):
        Ceph({**options, "settings": {"debug_osd": "21/20"}})


def test_every_value_of_the_list_can_be_written_and_read() -> None:
    for one in ceph().values():
        values: list[Value] = [*one.search] if one.kind == "real" else [*map(int, one.search)]
        if one.kind in ("choice", "boolean"):
            values = [*(one.values or (False, True))]
        for value in [*values, *map(int, one.special)]:
            text = one.text(value)
            assert one.value(text) == value, one.name
            assert settings_of({one.name: value}) == [f"[{one.who}]", f"{one.name} = {text}"]
        assert one.value("nonsense") == "nonsense"


def test_exports_are_commands_for_ceph_and_for_a_shell() -> None:
    values: dict[str, Value] = {
        "debug_osd": "0/0",
        "osd_op_num_shards": 8,
        "objecter_inflight_ops": 64,
        "bluestore_default_buffered_write": True,
    }
    forms = forms_of(values, ["debug_osd", "osd_op_num_shards", "objecter_inflight_ops"])
    assert forms["ceph-config"] == [
        "config set osd debug_osd 0/0",
        "config set osd osd_op_num_shards 8",
        "config set client objecter_inflight_ops 64",
    ]
    assert forms["shell"][0] == "ceph config set osd debug_osd 0/0"
    assert [line for line in forms["shell"] if line.startswith("#")] == [
        "# restart every OSD, one after the other, for osd_op_num_shards",
        "# start the clients again, for objecter_inflight_ops",
    ]
    assert forms_of(values, []) == {}
    with pytest.raises(InputError, match="Ceph's configuration"):
        forms_of({"debug_osd": "0/0\nconfig set osd x"}, ["debug_osd"])


@needs_ceph
@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("settings", {"nonsense": 1}, "must be a setting"),
        ("settings", {"debug_osd": "21/20"}, "target.settings.debug_osd"),
        ("settings", {"osd_memory_target": 1 << 32}, "set target.memory instead"),
        ("directory", "/nowhere", "is not a directory"),
        ("directory", "/var/../var/" * 10, "directory"),
        ("memory", "1 parsec", "target.memory"),
        ("memory", "1 GiB", "must be at least 896 MiB for each OSD"),
        ("data", "kept", "target.data"),
        ("user", "nobody-at-all", "target.user"),
        ("user", "root", "must not run as root"),
        ("osds", 0, "target.osds = 0: must be from 1 to 16"),
        ("osds", 10**9, "must be from 1 to 16"),
        ("replicas", 4, r"must be from 1 to target\.osds \(3\)"),
        ("replicas", 0, "must be from 1"),
        ("osd_size", "1 MiB", "must be at least 2 GiB"),
        ("osd_size", "large", "target.osd_size"),
        ("osd_failure", "soon", "target.osd_failure = 'soon'"),
        ("osd_failure", "1 s", "must be from 4 s to 600 s"),
        ("osd_failure", "1 h", "must be from 4 s to 600 s"),
        ("recovery_limit", "1 h", "must be at most 1200 s"),
    ],
)
def test_wrong_options_are_refused_in_one_line(key: str, value: Any, said: str) -> None:
    with pytest.raises(StudyError, match=said) as refused, Ceph({key: value}):
        pass
    assert "\n" not in refused.value.message


@needs_ceph
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_failure_needs_a_pool_that_takes_writes_meanwhile(replicas: int) -> None:
    said = r"target.osd_failure = '10 s': needs target.replicas of at least 3"
    with pytest.raises(StudyError, match=said):
        Ceph({"osd_failure": "10 s", "replicas": replicas})


@needs_ceph
def test_a_version_that_is_not_installed_is_refused() -> None:
    with pytest.raises(EnvironmentLacks, match=r"target\.version = 3: must be one of the versions"):
        Ceph({"version": 3})


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("ceph version 14.2.1 (abc) nautilus (stable)", "is too old"),
        ("ceph version x", "ceph-osd is not installed; install the package ceph-osd"),
        ("", "ceph-osd is not installed"),
    ],
)
def test_another_ceph_is_refused_in_one_line(
    said: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ceph-osd", "ceph-mon", "ceph-mgr", "monmaptool", "ceph", "rados"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{said}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match=problem):
        Ceph({})


def test_a_program_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ceph-osd").write_text("#!/bin/sh\necho 'ceph version 16.2.15 (abc) pacific (stable)'\n")
    (tmp_path / "ceph-osd").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="ceph-mon is not installed; install the package ceph-mon"):
        CephPrograms.find()


@needs_ceph
def test_without_a_cluster_the_load_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(StageFailed, match="it needs target.kind = 'ceph'"):
        open_workload(SMALL).run(Workspace(tmp_path), PACE)


@needs_ceph
@pytest.mark.slow
def test_the_catalogue_is_what_the_installed_version_says(filled: Ceph) -> None:
    filled.apply(filled.space.default())
    cluster = filled._entered()
    told = {one.name: one for one in told_by_ceph(cluster)}
    assert differences("ceph", ceph().values(), told) == []
    shown = ask_daemon(cluster.place / "osd.0.asok", "config show", 10.0)
    for name, one in ceph().items():
        assert name == "osd_memory_target" or one.value(shown[name]) == one.default, name


@needs_ceph
@pytest.mark.slow
@pytest.mark.cluster
def test_a_cluster_takes_both_ends_of_each_range_and_every_word_as_they_are(filled: Ceph) -> None:
    default, refused, tried = filled.space.default(), list[str](), set[tuple[str, object]]()
    for column in range(6):
        values: dict[str, Value] = {}
        for name in filled.space.names:
            one = ceph()[name]
            ends = [int(end) if one.kind == "integer" else end for end in one.search]
            is_number = one.kind in ("integer", "real")
            listed = [*ends, *map(int, one.special)] if is_number else [*(one.values or (False, True))]
            values[name] = listed[column % len(listed)]
        wanted = filled.space.nearest({**default, **values})
        tried |= set(wanted.items())
        try:
            apply_checked(filled, wanted)
        except StageFailed as failure:
            refused.append(failure.message)
    assert not refused
    for name, value in (("osd_op_num_shards", 16), ("bluestore_csum_type", "none")):
        assert (name, value) in tried


@needs_ceph
@pytest.mark.slow
@pytest.mark.cluster
def test_random_configurations_are_read_back_equal(filled: Ceph) -> None:
    for configuration in filled.space.sample(np.random.default_rng(7), 3):
        apply_checked(filled, configuration)


@needs_ceph
@pytest.mark.slow
@pytest.mark.cluster
def test_what_a_trial_changed_is_gone_in_the_next(filled: Ceph) -> None:
    default = filled.space.default()
    filled.apply(default.replaced(osd_op_num_shards=2, debug_osd="0/0", objecter_inflight_ops=64))
    apply_checked(filled, default)
    load = open_workload(SMALL)
    load.run(filled.workspace, PACE)
    assert objects_of(filled) > 2000
    assert filled.apply(default).filled
    assert objects_of(filled) == 2001, "the fill's, and what rados bench notes of it"


def objects_of(target: Ceph) -> int:
    words = ["rados", "-c", target.workspace.environment[CONFIGURATION], "-p", "load", "ls"]
    return len(subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.split())


RECOVERY_S = 5.0
LATE_S = 6.0  # a load of 2 s ends late where its cluster is slow, never early


@needs_ceph
@pytest.mark.slow
def test_nothing_of_the_environment_leads_to_another_cluster(
    filled: Ceph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator's CEPH_ARGS name a cluster that people use; every program of Ceph heeds them."""
    monkeypatch.setenv("CEPH_ARGS", "--mon-host 127.0.0.1:1 --keyring /proc/absent")
    filled.apply(filled.space.default())
    open_workload(SMALL).run(filled.workspace, PACE)


@needs_ceph
@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["write", "rand"])
def test_a_load_tells_rates_and_latencies(filled: Ceph, benchmark: str) -> None:
    filled.apply(filled.space.default())
    load = open_workload({**SMALL, "benchmark": benchmark})
    found = load.run(filled.workspace, PACE)
    assert set(found.metrics) == load.reported
    assert found.metrics["throughput_ops_per_s"] > 0
    assert len(found.series["throughput_ops_per_s"]) == 2
    assert 1.9 < found.load_s < LATE_S
    before = filled.sample().counters
    early = load.run(filled.workspace, LoadTiming(1.0, 30.0, 1.0, lambda series: True))
    after = filled.sample().counters
    assert early.ended == "enough"
    assert early.load_s < 10
    assert set(early.metrics) == load.reported
    counted = after["ceph_operations"] - before["ceph_operations"]
    assert counted >= early.metrics["operations"] > 0


@needs_ceph
@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"ioengine": "rados", "rw": "randrw", "bs": "4k", "size": "4m", "nrfiles": 64, "iodepth": 8},
        {"ioengine": "rbd", "rw": "randwrite", "bs": "64k", "size": "64m", "numjobs": 2, "iodepth": 8},
    ],
    ids=["rados", "rbd"],
)
def test_fio_works_on_objects_and_on_an_image(filled: Ceph, given: dict[str, Any]) -> None:
    filled.apply(filled.space.default())
    before = filled.sample().counters
    load = open_workload({"kind": "fio", "options": given, "overrun_limit": "20 s"})
    load.prepare(filled.workspace)
    written = filled.sample().counters["ceph_operations"] - before["ceph_operations"]
    assert written >= (64 if given["ioengine"] == "rados" else 16), "the fill writes all of it"
    found = load.run(filled.workspace, PACE)
    assert found.metrics["operations"] > 0
    assert found.metrics["latency_ms_p99"] >= found.metrics["latency_ms_p50"] > 0
    assert 1.9 < found.load_s < LATE_S
    assert found.ended == "time"


@needs_ceph
@pytest.mark.slow
def test_writes_that_are_put_off_are_counted_and_drained(filled: Ceph) -> None:
    default = filled.space.default()
    lazy = default.replaced(
        bluestore_prefer_deferred_size=1 << 16,
        bluestore_deferred_batch_ops=4096,
        bluestore_max_defer_interval=60.0,
    )
    filled.apply(lazy)
    before = filled.sample()
    readings = open_workload(SMALL).run(filled.workspace, PACE)
    after = filled.sample()
    assert after.deferred["write_cost_bytes"] > 0
    assert Charge.of(readings, before.deferred, after.deferred).is_due
    began_s = time.monotonic()
    filled.drain(30.0)
    assert time.monotonic() - began_s < 20, "it does not wait for the interval"
    drained = filled.sample()
    assert drained.deferred["write_cost_bytes"] < after.deferred["write_cost_bytes"]
    for _ in range(10):
        if drained.deferred["write_cost_bytes"] == 0:
            break
        filled.drain(30.0)  # what the cluster has written for itself since was put off as well
        drained = filled.sample()
    assert drained.deferred["write_cost_bytes"] == 0
    assert drained.counters["ceph_deferred_writes"] > before.counters["ceph_deferred_writes"]
    assert filled.cycle_s(lazy, {"ceph_deferred_writes": 5.0}) == 60
    assert filled.cycle_s(lazy, {}) == 0
    assert filled.read(["bluestore_deferred_batch_ops"]) == {"bluestore_deferred_batch_ops": 4096}


@needs_ceph
@pytest.mark.slow
def test_osds_that_are_full_fail_the_trial_in_their_own_words(filled: Ceph) -> None:
    loads = (SMALL, {"kind": "fio", "options": {"ioengine": "rados", "rw": "write", "size": "4m"}})
    filled.apply(filled.space.default())
    server, hasty = filled._entered(), [open_workload({**one, "overrun_limit": "2 s"}) for one in loads]
    for load in hasty:
        load.prepare(filled.workspace)

    def is_full() -> bool:
        """Whether clients are refused: by a flag of the pool, which may come after that of the OSDs."""
        told = server._tell("health")
        return "full osd" in told and "pool(s) full" in told

    ratios = ("nearfull", "backfillfull", "full")
    for name, share in zip(ratios, ("0.001", "0.002", "0.003"), strict=True):
        server._tell("osd", f"set-{name}-ratio", share)
    try:
        until(is_full, 60.0)
        for load in hasty:
            with pytest.raises(StageFailed, match=r"the cluster says HEALTH_ERR.* full osd\(s\)") as failed:
                load.run(filled.workspace, PACE)
            assert failed.value.stage == "load"
        with pytest.raises(StageFailed, match="OSD_FULL"):
            filled.health(1.0)
    finally:
        for name, share in zip(reversed(ratios), ("0.95", "0.9", "0.85"), strict=True):
            server._tell("osd", f"set-{name}-ratio", share)
    filled.apply(filled.space.default())
    # On a busy machine a healthy load can take longer than those that were to end soon.
    for one in loads:
        load = open_workload({**one, "overrun_limit": "60 s"})
        load.prepare(filled.workspace)
        assert load.run(filled.workspace, PACE).metrics


@needs_ceph
@pytest.mark.slow
def test_an_osd_that_dies_fails_its_trial_and_the_next_goes_on(filled: Ceph) -> None:
    default, load = filled.space.default(), open_workload({**SMALL, "fill_limit": "60 s"})
    filled.apply(default)
    victim = filled._entered()._osds[1].pid
    timer = threading.Timer(0.7, os.kill, (victim, signal.SIGKILL))
    timer.start()
    with pytest.raises(StageFailed) as failure:
        load.run(filled.workspace, PACE)
        filled.health(5.0)
    timer.join()
    assert "\n" not in failure.value.message
    with pytest.raises(StageFailed, match="osd.1: does not answer"):
        filled.sample()
    filled.apply(default)
    assert load.run(filled.workspace, PACE).metrics["operations"] > 0


@needs_ceph
@pytest.mark.slow
def test_clients_go_on_while_an_osd_is_killed_and_comes_back(
    filled: Ceph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filled, "degraded_s", 12.0)
    monkeypatch.setattr(filled, "_recovery_limit_s", RECOVERY_S)
    filled.apply(filled.space.default())
    before = filled._entered()._osds[-1].pid
    load = open_workload(SMALL)
    found = degraded_metrics(filled, load, 1.0)
    assert set(found) == {"recovery_s", *(f"degraded_{name}" for name in load.reported)}
    assert found["degraded_operations"] > 0
    after = filled._entered()._osds[-1].pid
    assert after != before, "it was killed, and is another one"
    # Few objects were written meanwhile, or the trial waited for no longer than it may.
    assert filled._entered()._unhealthy() is None or found["recovery_s"] >= RECOVERY_S
    # The next trial has all of its OSDs, and none of it is left.
    filled.apply(filled.space.default())
    assert load.run(filled.workspace, PACE).metrics["operations"] > 0


@needs_ceph
@pytest.mark.slow
@pytest.mark.cluster
def test_a_trial_that_ends_during_a_failure_leaves_the_next_one_whole(filled: Ceph) -> None:
    default = filled.space.default()
    filled.apply(default)
    filled.degrade()
    with pytest.raises(StageFailed, match="OSD_DOWN|2 of 3 OSDs are up"):
        filled.health(3.0)
    filled.apply(default)
    filled.health(30.0)
    assert len(filled._entered()._osds) == 3


@needs_ceph
@pytest.mark.slow
@pytest.mark.cluster
def test_a_setting_that_ceph_refuses_fails_the_change(filled: Ceph) -> None:
    server = filled._entered()
    server.stop()
    server.load()
    with pytest.raises(StageFailed, match="Ceph has no such setting: nonsense = 5"):
        server.begin(["[osd]", "nonsense = 5"], 60.0)
    server.load()
    with pytest.raises(StageFailed, match="the Ceph server does not start") as failure:
        server.begin(["[osd]", "bluestore_cache_kv_ratio = 0.9", "bluestore_cache_meta_ratio = 0.9"], 60.0)
    assert failure.value.stage == "change"
    assert "\n" not in failure.value.message
    filled.apply(filled.space.default())


@needs_ceph
@pytest.mark.slow
def test_an_export_applied_to_a_cluster_is_read_back_equal(filled: Ceph) -> None:
    wanted = next(iter(filled.space.sample(np.random.default_rng(5), 1)))
    filled.apply(filled.space.default())
    server, chosen = filled._entered(), filled.space.departures(wanted)
    lines = filled.commands(wanted, chosen)["ceph-config"]
    said = subprocess.run(
        ["ceph", "-c", str(server.configuration)],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "Error" not in said.stderr
    server.stop()
    server.begin([], 120.0)
    found = server.settings()
    for name in chosen:
        assert ceph()[name].value(found[name]) == pytest.approx(wanted[name], abs=1e-6), name


@needs_ceph
@pytest.mark.slow
@pytest.mark.cluster
def test_clients_get_what_the_monitor_holds_for_them(filled: Ceph, tmp_path: Path) -> None:
    filled.apply(filled.space.default().replaced(objecter_inflight_ops=33))
    tmp_path.chmod(0o777)
    asked = tmp_path / "client.asok"
    words = ["rados", "-c", filled.workspace.environment[CONFIGURATION], "-p", "load", "bench", "5", "write"]
    with subprocess.Popen(
        [*words, f"--admin-socket={asked}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as client:
        until(asked.exists, 20)
        time.sleep(0.5)
        shown = ask_daemon(asked, "config show", 10.0)
        client.wait(60)
    assert shown["objecter_inflight_ops"] == "33"
