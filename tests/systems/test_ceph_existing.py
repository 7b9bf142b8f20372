"""Ceph that people use: settings change while the health is HEALTH_OK, and become what they were.

A stand-in for `ceph` where a test is about what it says; a real cluster where it is about what that does.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from ascar.errors import EnvironmentLacks, Refused, SpaceError, StageFailed, StudyError, WorkError
from ascar.space import ChangeCost
from ascar.study import GuardSection
from ascar.systems import open_target
from ascar.systems.asking import apply_checked
from ascar.systems.ceph import Ceph
from ascar.systems.ceph.cluster_facts import CephFacts
from ascar.systems.ceph.existing import ExistingCeph, live_ceph_space
from ascar.systems.ceph.keyring import keyring_text
from ascar.systems.keeper import restore_all
from ascar.workloads import LoadTiming, open_workload
from ascar.workloads.fio_ceph import CephJobs
from ascar.workloads.fio_job import FioJob
from ceph_stand_in import FSID, CephStandIn
from own_servers import ceph_account, ceph_installed, server_place
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

TRIAL = {"osd_client_message_cap": 512, "bluestore_throttle_bytes": 1 << 24}
PACE = LoadTiming(1.0, 2.0, 1.0, lambda series: False)
KILLS = 3
USER = "client.ascar"
# A process that sets what it is told, says so, and goes on setting until it is killed.
CHILD = """
import json, sys
from ascar.systems import open_target
with open_target(json.loads(sys.argv[1])) as target:
    default = target.space.default()
    while True:
        for cap in (512, 1024):
            changes = {**default, **json.loads(sys.argv[2]), "osd_client_message_cap": cap}
            target.apply(target.space.validate(changes))
            print("set", flush=True)
"""
needs_ceph = pytest.mark.skipif(not ceph_installed(), reason="Ceph is not installed, or has no account")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper's journal is the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CephStandIn:
    made = CephStandIn(tmp_path)
    monkeypatch.setenv("PATH", f"{made.folder}:{os.environ['PATH']}")
    return made


def target_of(options: dict[str, Any], **others: Any) -> ExistingCeph:
    given = {key: one for key, one in {**options, **others}.items() if one is not None}
    target = open_target(given)
    assert isinstance(target, ExistingCeph)
    return target


def trial(target: ExistingCeph) -> Any:
    return target.space.validate({**target.space.default(), **TRIAL})


@contextmanager
def unchanged(cluster: CephStandIn) -> Generator[None]:
    """What the monitors hold is the same afterwards."""
    before = cluster.held
    yield
    assert cluster.held == before


def test_it_is_refused_unless_the_command_line_names_it(cluster: CephStandIn) -> None:
    for given in (None, "another"):
        wanted = target_of(cluster.options, confirmed_server=given)
        with unchanged(cluster), pytest.raises(Refused, match=FSID), wanted:
            pass


def test_settings_change_and_come_back(cluster: CephStandIn) -> None:
    with unchanged(cluster), target_of(cluster.options) as target:
        default = target.space.default()
        assert default["osd_client_message_cap"] == 300, "what the cluster has"
        target.adopt(target.space)
        change = target.apply(trial(target))
        assert change.category == ChangeCost.DYN_APP.category
        assert change.filled
        assert target.read(list(TRIAL)) == TRIAL
        held = {one["name"]: one["value"] for one in cluster.held}
        assert held == {"osd_client_message_cap": "512", "bluestore_throttle_bytes": str(1 << 24)}
        target.apply(default)
        assert target.read(list(default)) == dict(default)
        target.apply(trial(target))


def test_no_setting_of_the_space_takes_a_restart() -> None:
    space = live_ceph_space("wide", None, restarts=False)
    assert {one.cost for one in space.parameters} == {ChangeCost.DYN_APP}
    assert len(space.parameters) > len(live_ceph_space("expert", None, restarts=False).parameters) >= 5


def test_ceph_moves_no_data_by_itself_during_a_study(cluster: CephStandIn) -> None:
    pools = {"bench": "on", "rbd": "warn", "logs": "on"}
    cluster.change(balancer=True, pools=pools)
    with unchanged(cluster), target_of(cluster.options) as target:
        assert cluster.said("balancer") is False
        assert cluster.said("pools") == {"bench": "off", "rbd": "warn", "logs": "off"}
        target.apply(trial(target))
    assert cluster.said("balancer") is True
    assert cluster.said("pools") == pools
    with target_of(cluster.options, fix_placement=False):
        assert cluster.said("balancer") is True
    target = target_of(cluster.options)
    target.keeps = True  # as `ascar apply` has it
    with target:
        assert cluster.said("pools") == pools


@pytest.mark.slow
def test_whoever_is_killed_ceph_may_move_data_again(cluster: CephStandIn, seed: int) -> None:
    cluster.change(balancer=True, pools={"bench": "on"})
    draw = random.Random(seed)
    for _ in range(KILLS):
        words = [sys.executable, "-c", CHILD, json.dumps(cluster.options), json.dumps(TRIAL)]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            until(lambda: not cluster.said("balancer"))
            time.sleep(draw.random() / 2)
            child.kill()
        until(lambda: cluster.said("balancer") and cluster.said("pools") == {"bench": "on"})


def test_what_somebody_else_does_with_pools_in_mid_study_stays(cluster: CephStandIn) -> None:
    cluster.change(balancer=True, pools={"bench": "on", "gone": "on", "logs": "on"})
    with unchanged(cluster), target_of(cluster.options) as target:
        target.apply(trial(target))
        cluster.change(pools={"bench": "off", "logs": "warn"})
    assert cluster.said("pools") == {"bench": "on", "logs": "warn"}, "the others are as before"
    assert cluster.said("balancer") is True


def test_a_pool_that_cannot_be_put_back_keeps_nothing_else(
    cluster: CephStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ascar.systems.keeper.ROOTS_STATE", tmp_path / "of-root")
    cluster.change(balancer=True, pools={"bench": "on", "logs": "on"})
    target = target_of(cluster.options)
    with pytest.raises(WorkError, match=r"autoscaler is still off: .*ceph osd pool.*ascar restore"), target:
        cluster.change(quirk="no bench")
    assert cluster.said("pools") == {"bench": "off", "logs": "on"}
    assert cluster.said("balancer") is True
    cluster.change(quirk="")
    assert restore_all().failed == ()
    assert cluster.said("pools") == {"bench": "on", "logs": "on"}


def test_who_may_not_turn_the_balancer_off_is_told_both_ways_out(cluster: CephStandIn) -> None:
    cluster.change(balancer=True, quirk="denied")
    with pytest.raises(Refused, match="ceph auth caps .*balancer off.*; or set target.fix_placement = false"):
        target_of(cluster.options).__enter__()
    assert cluster.said("balancer") is True


def test_a_pool_with_a_name_of_no_pool_is_not_given_to_a_command(cluster: CephStandIn) -> None:
    cluster.change(balancer=True, pools={"--yes": "on"})
    with pytest.raises(Refused, match=r"pool '--yes': its autoscaler cannot be turned off by name"):
        target_of(cluster.options).__enter__()
    assert cluster.said("balancer") is True, "what was off by then is on again"


SHARDS = {"osd_op_num_shards": 8}


def restarting(cluster: CephStandIn, **others: Any) -> ExistingCeph:
    return target_of({**cluster.options, **cluster.restarting}, **others)


def test_osds_are_started_anew_one_after_the_other_and_only_where_a_setting_asks_for_it(
    cluster: CephStandIn,
) -> None:
    with unchanged(cluster), restarting(cluster) as target:
        default = target.space.default()
        assert target.space["osd_op_num_shards"].cost is ChangeCost.APP_RESTART
        target.adopt(target.space)
        target.apply(trial(target))
        assert cluster.said("starts") == [], "what OSDs take at once takes no start"
        change = target.apply(target.space.validate({**default, **SHARDS}))
        assert change.category == ChangeCost.APP_RESTART.category
        each = [f"ok {n}" if asked else f"{n} on {host}" for n, host in enumerate(("one", "one", "two"))
                for asked in (True, False)]  # fmt: skip
        assert cluster.said("starts") == each
        assert target.read(list(SHARDS)) == SHARDS
        target.apply(target.space.validate({**default, **SHARDS, **TRIAL}))
        assert cluster.said("starts") == each, "they run with it already"
        target.apply(default)
        assert cluster.said("starts") == 2 * each
        target.apply(target.space.validate({**default, **SHARDS}))
    assert cluster.said("starts") == 4 * each
    assert all(one["osd_op_num_shards"] == "0" for one in cluster.said("running"))


def test_what_osds_show_before_they_take_it_takes_a_start_all_the_same(cluster: CephStandIn) -> None:
    """Many have no flag that says that they are read at the start alone: `config show` has them at once."""
    depth = {"bdev_aio_max_queue_depth": 4096}

    def running() -> list[str]:
        return [one["bdev_aio_max_queue_depth"] for one in cluster.said("running")]

    with unchanged(cluster), restarting(cluster, parameters="wide") as target:
        target.apply(target.space.validate({**target.space.default(), **depth}))
        assert running() == ["4096"] * 3
        assert target.read(list(depth)) == depth
    assert running() == ["1024"] * 3


def test_an_osd_is_stopped_only_when_the_one_before_is_up_again(cluster: CephStandIn) -> None:
    cluster.change(quirk="late")
    with unchanged(cluster), restarting(cluster) as target:
        target.apply(target.space.validate({**target.space.default(), **SHARDS}))
        starts = [one for one in cluster.said("starts") if "on" not in one]
        assert starts == ["ok 0", "0 is up", "ok 1", "1 is up", "ok 2", "2 is up"]
        cluster.change(quirk="")


def test_osds_get_old_values_back_although_one_has_crashed_under_a_trials(cluster: CephStandIn) -> None:
    with unchanged(cluster), restarting(cluster) as target:
        target.apply(target.space.validate({**target.space.default(), **SHARDS}))
        cluster.change(health="HEALTH_WARN", check="RECENT_CRASH")
        with pytest.raises(StageFailed, match="RECENT_CRASH"):
            target.apply(target.space.validate({**target.space.default(), "osd_op_num_shards": 4}))
        assert all(one["osd_op_num_shards"] == "0" for one in cluster.said("running"))


def test_fractions_are_read_back_with_the_decimals_that_ceph_prints(cluster: CephStandIn) -> None:
    shares = {"bluestore_cache_kv_ratio": 0.31234567891, "bluestore_cache_meta_ratio": 1 / 3}
    waits = {"bluestore_max_defer_interval": 0.123456789}
    with unchanged(cluster), restarting(cluster, parameters="wide") as target:
        wanted = target.space.validate({**target.space.default(), **shares, **waits})
        begun_s = time.monotonic()
        apply_checked(target, wanted)
        assert time.monotonic() - begun_s < 8, "it is known to be in force"
        assert target.read([*shares, *waits]) == {**shares, **waits}


def test_no_trial_has_osds_that_do_not_start_or_outgrow_their_memory(cluster: CephStandIn) -> None:
    with restarting(cluster, parameters="wide") as target:
        default = target.space.default()
        for wrong in (
            {"bluestore_cache_kv_ratio": 0.6, "bluestore_cache_meta_ratio": 0.4},
            {"bluestore_cache_size": 3 << 30},
            {"bluestore_cache_autotune": False},
        ):
            with pytest.raises(SpaceError):
                target.space.validate({**default, **wrong})
        target.space.validate({**default, "bluestore_cache_autotune": False, "bluestore_cache_size": 1 << 30})
    cluster.change(held=[*cluster.held, held_by_osds("bluestore_cache_autotune", "false")])
    with restarting(cluster, parameters="wide") as target:
        assert target.space.default()["bluestore_cache_autotune"] is False, "what is in force is allowed"


def held_by_osds(name: str, value: str) -> dict[str, str]:
    return {"section": "osd", "name": name, "value": value, "mask": ""}


def test_osds_of_a_host_start_together_where_the_study_says_so(cluster: CephStandIn) -> None:
    with unchanged(cluster), restarting(cluster, restart_domain="host") as target:
        target.apply(target.space.validate({**target.space.default(), **SHARDS}))
        assert cluster.said("starts") == ["ok 0 1", "0 on one", "1 on one", "ok 2", "2 on two"]


def test_no_osd_is_stopped_that_may_not_be(cluster: CephStandIn) -> None:
    with unchanged(cluster), restarting(cluster) as target:
        cluster.change(quirk="not ok")
        with pytest.raises(StageFailed, match=r"osd.0: not ok to stop, none was stopped: .*unsafe to stop"):
            target.apply(target.space.validate({**target.space.default(), **SHARDS}))
        assert cluster.said("starts") == []
        cluster.change(quirk="warns")
        with pytest.raises(StageFailed, match="not healthy after 3 s: OSDMAP_FLAGS: noout"):
            target.apply(target.space.validate({**target.space.default(), **SHARDS}))
        assert cluster.said("starts") == []
        cluster.change(quirk="", health="HEALTH_OK")


def test_an_osd_that_does_not_come_up_with_a_trials_value_runs_with_the_old_one_again(
    cluster: CephStandIn,
) -> None:
    with unchanged(cluster), restarting(cluster) as target:
        cluster.change(quirk="bad shards")
        comes_up_late(target)
        assert cluster.said("down") == []
        assert cluster.said("starts") == ["ok 0", "0 on one", "0 on one"], "the other OSDs were left alone"
        target.apply(target.space.validate({**target.space.default(), **SHARDS}))
        assert target.read(list(SHARDS)) == SHARDS


def shards(cluster: CephStandIn) -> list[str]:
    return [one["osd_op_num_shards"] for one in cluster.said("running")]


def comes_up_late(target: ExistingCeph) -> None:
    """A trial whose first OSD does not come up in time."""
    with pytest.raises(StageFailed, match=r"osd.0 has not come up again"):
        target.apply(target.space.validate({**target.space.default(), "osd_op_num_shards": 7}))


def test_an_osd_that_the_map_has_up_while_it_starts_with_a_trials_value_is_started_again(
    cluster: CephStandIn,
) -> None:
    """Nobody has seen it go down: the map shows the start with the old values until it is up again."""
    with unchanged(cluster), restarting(cluster, restart_limit="1 s") as target:
        cluster.change(quirk="slow shards")
        comes_up_late(target)
        assert cluster.said("starts") == ["ok 0", "0 on one", "ok 0", "0 on one"], (
            "the others were left alone"
        )
        assert shards(cluster) == ["0"] * 3


def test_an_osd_that_could_not_be_started_with_the_old_value_is_before_the_next_trial(
    cluster: CephStandIn,
) -> None:
    with unchanged(cluster), restarting(cluster, restart_limit="1 s") as target:
        cluster.change(quirk="slow shards, no start")
        comes_up_late(target)
        assert shards(cluster) == ["7", "0", "0"]
        cluster.change(quirk="", coming=[[0, 1, 0]])
        target.apply(trial(target))
        assert shards(cluster) == ["0"] * 3
        begun = len(cluster.said("starts"))
        target.apply(target.space.default())
        target.apply(trial(target))
    assert len(cluster.said("starts")) == begun, "it is known that they have the old value"


def test_osds_that_are_down_are_started_first_and_together(cluster: CephStandIn) -> None:
    with unchanged(cluster), restarting(cluster, restart_domain="host") as target:
        target.apply(target.space.validate({**target.space.default(), **SHARDS}))
        begun = len(cluster.said("starts"))
        cluster.change(down=[1, 2])
    assert cluster.said("starts")[begun:] == ["1 on one", "2 on two", "ok 0", "0 on one"]
    assert shards(cluster) == ["0"] * 3


@pytest.mark.slow
def test_an_osd_that_comes_back_long_after_a_study_was_killed_runs_with_the_old_value(
    cluster: CephStandIn,
) -> None:
    before, late = cluster.held, {"restart_limit": "60 s"}
    cluster.change(late_s=14.0)
    options = {**cluster.options, **cluster.restarting, **late}
    words = [sys.executable, "-c", CHILD, json.dumps(options), json.dumps({**TRIAL, **SHARDS})]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        until(lambda: "0 on one" in cluster.said("starts"))
        child.kill()
    assert shards(cluster) == ["8", "0", "0"]
    until(lambda: cluster.held == before and shards(cluster) == ["0"] * 3, limit_s=60)
    assert cluster.said("starts") == ["ok 0", "0 on one", "ok 0", "0 on one"]


@pytest.mark.slow
def test_an_osd_that_does_not_come_back_in_time_is_named_and_restore_finishes(
    cluster: CephStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ascar.systems.keeper.ROOTS_STATE", tmp_path / "of-root")
    before, target = cluster.held, restarting(cluster, restart_limit="1 s")
    with pytest.raises(WorkError, match=r"osd.0 has not come up again.*`ascar restore`"), target:
        target.apply(target.space.validate({**target.space.default(), **SHARDS}))
        cluster.change(late_s=1e9)
    assert cluster.held == before, "the monitors have the old values"
    assert shards(cluster) == ["0", "8", "8"]
    (failed,) = restore_all().failed
    assert "osd.0 has not come up again" in failed
    cluster.change(late_s=0, coming=[])
    assert restore_all().failed == ()
    assert shards(cluster) == ["0"] * 3


def test_a_host_that_is_no_name_is_not_given_to_a_command(cluster: CephStandIn) -> None:
    with unchanged(cluster), restarting(cluster) as target:
        cluster.change(quirk="host")
        with pytest.raises(StageFailed, match="host '-oProxy': must be a host's name"):
            target.apply(target.space.validate({**target.space.default(), **SHARDS}))
        assert not [one for one in cluster.said("starts") if "-oProxy" in one]


@pytest.mark.slow
def test_a_study_that_is_killed_leaves_osds_that_run_as_before(
    cluster: CephStandIn, tmp_path: Path, seed: int
) -> None:
    before, draw = cluster.held, random.Random(seed)
    options = {**cluster.options, **cluster.restarting}
    for _ in range(KILLS):
        words = [sys.executable, "-c", CHILD, json.dumps(options), json.dumps({**TRIAL, **SHARDS})]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            until(lambda: cluster.held != before)
            time.sleep(draw.random())
            child.kill()
        until(
            lambda: (
                cluster.held == before
                and all(one["osd_op_num_shards"] == "0" for one in cluster.said("running"))
                # Whoever puts them back has ended, and lets the next study in.
                and not list(tmp_path.rglob("*.jsonl"))
            )
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT])
def test_whoever_is_killed_the_settings_come_back(
    cluster: CephStandIn, kind: signal.Signals, seed: int
) -> None:
    before, draw = cluster.held, random.Random(seed)
    for _ in range(KILLS):
        words = [sys.executable, "-c", CHILD, json.dumps(cluster.options), json.dumps(TRIAL)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"set\n"
            time.sleep(draw.random() / 2)
            child.send_signal(kind)
        until(lambda: cluster.held == before)


def test_nothing_is_set_while_the_cluster_is_not_healthy(cluster: CephStandIn) -> None:
    with target_of(cluster.options) as target:
        cluster.change(health="HEALTH_WARN")
        with unchanged(cluster), pytest.raises((StageFailed, WorkError), match="noout"):
            target.apply(trial(target))
        cluster.change(health="HEALTH_OK")
        target.apply(trial(target))
    cluster.change(health="HEALTH_WARN")
    with unchanged(cluster), pytest.raises(Refused, match="noout.*a study needs HEALTH_OK"):
        target_of(cluster.options).__enter__()


def test_a_trial_beside_an_osd_that_fails_or_comes_back_is_none(cluster: CephStandIn) -> None:
    with target_of(cluster.options) as target:
        target.apply(trial(target))
        target.sample()
        cluster.change(up_since=1700000900)
        with pytest.raises(StageFailed, match="an OSD went down or came up during the load"):
            target.sample()
        target.sample()
        cluster.change(health="HEALTH_WARN")
        with pytest.raises(StageFailed, match="not healthy: OSDMAP_FLAGS"):
            target.sample()
        cluster.change(health="HEALTH_OK")
        target.apply(target.space.default())
        target.sample()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inside": 2}, "2 OSDs that hold data, and had 3"),
        ({"groups": 65}, "65 placement groups, and had 33"),
        ({"osds": 4}, "4 OSDs, and had 3"),
    ],
)
def test_a_cluster_that_grows_ends_the_study(cluster: CephStandIn, change: dict[str, int], said: str) -> None:
    with unchanged(cluster), target_of(cluster.options) as target:
        target.apply(trial(target))
        cluster.change(**change)
        with pytest.raises((WorkError, StageFailed), match=said):
            target.apply(target.space.default())
        cluster.change(groups=33, osds=3, inside=3)


def test_another_cluster_under_the_same_name_is_left_alone(cluster: CephStandIn) -> None:
    before = cluster.held
    target = target_of(cluster.options)
    with pytest.raises(WorkError, match="is the cluster"), target:
        target.apply(trial(target))
        cluster.change(fsid="99999999-2222-4333-8444-555555555555", held=before)
        with pytest.raises(WorkError, match="another cluster answers"):
            target.apply(target.space.default())
    assert cluster.held == before


def test_what_somebody_else_changed_is_left_alone_and_named(cluster: CephStandIn) -> None:
    target = target_of(cluster.options)
    with pytest.raises(WorkError, match="osd_client_message_cap.*somebody else changed it"), target:
        target.apply(trial(target))
        held = [one for one in cluster.held if one["name"] != "osd_client_message_cap"]
        cluster.change(
            held=[*held, {"section": "osd", "name": "osd_client_message_cap", "value": "77", "mask": ""}]
        )
    assert [one["value"] for one in cluster.held] == ["77"], "the others are as before"


@pytest.mark.parametrize(("section", "mask"), [("osd.1", ""), ("osd", "class:ssd"), ("mon", "")])
def test_a_value_that_comes_first_is_named(cluster: CephStandIn, section: str, mask: str) -> None:
    own = {"section": section, "name": "bluestore_throttle_bytes", "value": "5", "mask": mask}
    cluster.change(held=[*cluster.held, own])
    with target_of(cluster.options) as target:
        with pytest.raises(Refused, match=f"bluestore_throttle_bytes: {section}.*pin the setting"):
            target.adopt(target.space)
        target.adopt(
            target.space.pin({"bluestore_throttle_bytes": target.space.default()["bluestore_throttle_bytes"]})
        )


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ({"source": "file"}, "has a value of its own ('67108864'), from its ceph.conf; take it out"),
        ({"source": "cmdline"}, "from its command line"),
        ({"source": "override"}, "ceph tell osd.2 config unset bluestore_throttle_bytes"),
        ({"ignores": "mon"}, "runs with '67108864', not with what the monitors hold"),
    ],
)
def test_a_value_of_a_daemon_that_the_monitors_do_not_change_is_named(
    cluster: CephStandIn, shown: dict[str, str], said: str
) -> None:
    """ceph.conf, injectargs and `ceph tell OSD config set` come before what `ceph config set` writes."""
    cluster.change(own={"osd.2": {"bluestore_throttle_bytes": shown}})
    with target_of(cluster.options) as target:
        space = target.space
        with pytest.raises(Refused) as caught:
            target.adopt(space)
        assert "bluestore_throttle_bytes: osd.2 " in caught.value.message
        assert said in caught.value.message
        assert "pin the setting" in caught.value.message
        target.adopt(space.pin({"bluestore_throttle_bytes": space.default()["bluestore_throttle_bytes"]}))


def test_a_setting_in_which_osds_differ_is_left_out_and_named(
    cluster: CephStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.change(own={"osd.1": {"bluestore_throttle_bytes": {"source": "override", "value": "5"}}})
    with target_of(cluster.options) as target:
        assert "bluestore_throttle_bytes" not in target.space
        target.adopt(target.space)
    assert "bluestore_throttle_bytes: OSDs run with different values (67108864,5)" in caplog.text


def test_osds_that_are_looked_at_are_from_all_over_the_cluster() -> None:
    facts = CephFacts("f", "16.2.15", 30, 33, tuple(range(30)))
    asked: list[str] = []

    class Session:
        def shown(self, daemon: str) -> dict[str, str]:
            asked.append(daemon)
            return {}

    facts.shown(cast("Any", Session()))
    assert asked == ["osd.0", "osd.10", "osd.20"]


def test_a_value_that_comes_first_in_mid_study_ends_it(cluster: CephStandIn) -> None:
    target = target_of(cluster.options)
    with (
        pytest.raises(WorkError, match=r"bluestore_throttle_bytes: osd/host:a has .*set in mid-study"),
        target,
    ):
        target.apply(trial(target))
        own = {"section": "osd", "name": "bluestore_throttle_bytes", "value": "5", "mask": "host:a"}
        cluster.change(held=[*cluster.held, own])
        target.apply(target.space.validate({**target.space.default(), "bluestore_throttle_bytes": 1 << 25}))
    assert own in cluster.held


@pytest.mark.parametrize(
    ("quirk", "kind", "said"),
    [
        ("old", EnvironmentLacks, "ascar tunes versions from 16.2 on"),
        ("upgrade", Refused, "its OSDs have 2 versions"),
        ("babble", StageFailed, "is not readable"),
        ("no fsid", StageFailed, "must be the fsid of a cluster"),
    ],
)
def test_a_cluster_that_cannot_be_tuned_says_why(
    cluster: CephStandIn, quirk: str, kind: type[Exception], said: str
) -> None:
    cluster.change(quirk=quirk)
    with unchanged_but(cluster), pytest.raises(kind, match=said), target_of(cluster.options):
        pass


@contextmanager
def unchanged_but(cluster: CephStandIn) -> Generator[None]:
    before = cluster.held
    with suppress(AssertionError):
        yield
        return
    assert cluster.held == before


def test_a_user_without_rights_is_told_which(cluster: CephStandIn) -> None:
    with target_of(cluster.options) as target:
        cluster.change(quirk="denied")
        with pytest.raises(Refused, match=r"client.ascar: lacks rights .* ceph auth caps client.ascar mon"):
            target.adopt(target.space)


def test_a_value_that_ceph_refuses_fails_the_trial_and_the_next_goes_on(cluster: CephStandIn) -> None:
    with unchanged(cluster), target_of(cluster.options) as target:
        cluster.change(quirk="refuses")
        with pytest.raises(StageFailed, match="error parsing value"):
            target.apply(trial(target))
        cluster.change(quirk="")
        target.apply(trial(target))
        assert target.read(list(TRIAL)) == TRIAL


def test_any_log_level_in_force_is_a_default(cluster: CephStandIn) -> None:
    level = {"section": "osd", "name": "debug_osd", "value": "20/20", "mask": ""}
    cluster.change(held=[*cluster.held, level])
    with target_of(cluster.options) as target:
        assert target.space.default()["debug_osd"] == "20/20"


def test_its_clients_are_the_load_and_are_watched(cluster: CephStandIn) -> None:
    target = target_of(cluster.options)
    floor = {"metric": "throughput_ops_per_s", "minimum": "10%", "hold_ticks": 3}
    target.guard_by(GuardSection(floor=(floor,)))
    with target:
        found = target.run(target.workspace, PACE)
        assert found.metrics["throughput_ops_per_s"] > 0
        assert target.sample().counters["ceph_writes"] == 0, "no number that a float holds"
        assert "CEPH_POOL" not in target.workspace.environment


@pytest.mark.parametrize(
    ("periods", "quirk", "seconds"),
    [
        ({"mgr_stats_period": "5", "mgr_tick_period": "2"}, "", 7),
        ({"mgr_stats_period": "60", "mgr_tick_period": "2"}, "", 62),
        ({"mgr_stats_period": "30"}, "mgr", 32),
        ({"mgr_stats_period": "soon", "mgr_tick_period": "1e9"}, "", 7),
        ({"mgr_stats_period": "999999"}, "", 602),
    ],
)
def test_readings_are_as_long_as_osds_take_to_tell_of_their_work(
    cluster: CephStandIn, periods: dict[str, str], quirk: str, seconds: float
) -> None:
    cluster.change(periods=periods, quirk=quirk)
    with target_of(cluster.options) as target:
        assert target._activity(target._entered().session, ()).tells_s == seconds  # pyrefly: ignore


@needs_ceph
def test_a_load_finds_the_pool_and_the_user(cluster: CephStandIn) -> None:
    with target_of(cluster.options, pool="bench") as target:
        job = FioJob({"ioengine": "rados", "size": "1m"}, {"objects": {}})
        jobs = CephJobs.of(job)
        assert jobs is not None
        placed = jobs.place(target.workspace)
        assert placed == {"clientname": "ascar", "pool": "bench", "conf": cluster.options["conf"]}
        assert target.workspace.environment["CEPH_ARGS"] == "--name client.ascar"


def test_what_is_missing_is_the_client_alone(cluster: CephStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    (need,) = ExistingCeph.needs()
    assert (need.found, need.debian_package) == (str(cluster.folder / "ceph"), "ceph-common")
    monkeypatch.setenv("PATH", "/nowhere")
    (need,) = ExistingCeph.needs()
    assert need.found is None


def test_what_may_be_issued_is_announced(cluster: CephStandIn) -> None:
    told = target_of(cluster.options).announced(("osd_client_message_cap",))
    assert told.statements[:2] == (
        "ceph config set osd osd_client_message_cap ...",
        "ceph config rm osd osd_client_message_cap",
    )
    assert told.rights == (
        'ceph auth get-or-create client.ascar mon \'allow r, allow command "config set" with who=osd, '
        'allow command "config rm" with who=osd, allow command "config rm" with who=mgr '
        'name="mgr/balancer/active", allow command "osd pool set" with var=pg_autoscale_mode\' '
        'mgr \'allow r, allow command "balancer off", allow command "balancer on"\'',
    )
    assert "BlueStore puts off are not charged" in told.notes[0]
    assert "bluestore_max_defer_interval" in told.notes[0]
    least = target_of(cluster.options, fix_placement=False).announced(("osd_client_message_cap",))
    assert least.rights == (
        'ceph auth get-or-create client.ascar mon \'allow r, allow command "config set" with who=osd, '
        "allow command \"config rm\" with who=osd' mgr 'allow r'",
    )
    assert not [one for one in least.statements if "balancer" in one or "pool" in one]
    (rights,) = target_of(cluster.options, pool="bench").announced(()).rights
    assert rights.endswith(" osd 'allow rwx pool=bench'")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("conf", "ceph.conf", "absolute path of a file that you may read"),
        ("conf", "/nowhere/ceph.conf", "target.conf = '/nowhere/ceph.conf'"),
        ("keyring", "/nowhere/keyring", "target.keyring = '/nowhere/keyring'"),
        ("user", "admin", "target.user = 'admin': must be a name such as client.ascar"),
        ("user", "client.a --x", "must be a name"),
        ("pool", "-p", "must be the name of a pool"),
        ("memory", "1 GiB", "must be left out"),
        ("parameters", "all", "target.parameters = 'all'"),
        ("osds", 3, "target.osds"),
        ("restarts", "allowed", "['sudo', '-n', 'systemctl', 'restart', 'ceph-osd@{id}']"),
        ("restart_command", ["true"], "needs target.restarts = 'allowed'"),
        ("restart_domain", "host", "target.restart_domain: needs target.restarts = 'allowed'"),
        ("restart_domain", "a host", "must be a type of bucket, such as 'host'"),
    ],
)
def test_wrong_options_are_refused_in_one_line(cluster: CephStandIn, key: str, value: Any, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        target_of(cluster.options, **{key: value})
    assert said in caught.value.message
    assert "\n" not in caught.value.message


def test_a_command_that_starts_osds_anew_says_which_and_ends(cluster: CephStandIn) -> None:
    allowed = {**cluster.options, "restarts": "allowed"}
    with pytest.raises(StudyError, match="target.restart_command: must name the OSD by '{id}'"):
        target_of(allowed, restart_command=["true"])
    with pytest.raises(StudyError, match="target.restart_limit = '2 h': must be at most 1800 s"):
        target_of(allowed, restart_command=["true", "{id}"], restart_limit="2 h")
    with pytest.raises(EnvironmentLacks, match="is not a program that can be run here"):
        target_of(allowed, restart_command=["no-such-program", "{id}"])
    told = target_of(allowed, restart_command=["true", "{id}"]).announced(("osd_op_num_shards",)).statements
    assert "ceph osd ok-to-stop ID ..." in told
    assert told[-1].endswith("true '{id}'")


# On a real cluster.

# Starts an OSD anew, as a unit of systemd would.
RESTART = r"""
import os, signal, subprocess, sys, time
from pathlib import Path
conf, number = sys.argv[1:]
for path in Path("/proc").glob("[0-9]*/cmdline"):
    try:
        words = path.read_bytes().decode().split("\0")[:-1]
        mine = words and words[0].endswith("ceph-osd") and conf in words
        if mine and words[words.index("-i") + 1] == number:
            status = path.parent.stat()
            break
    except OSError:
        continue
pid = int(path.parent.name)
os.kill(pid, signal.SIGTERM)
while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
    time.sleep(0.05)
silent = subprocess.DEVNULL
given = {"stdin": silent, "stdout": silent, "stderr": silent, "start_new_session": True, "cwd": "/"}
subprocess.Popen(words, user=status.st_uid, group=status.st_gid, extra_groups=[], **given)
"""


@pytest.fixture(scope="module")
def real() -> Iterator[dict[str, Any]]:
    """A cluster that people use: its options for a study."""
    with (
        server_place(ceph_account(), "ascar-ceph-") as folder,
        Ceph({"directory": folder, "memory": "3 GiB"}) as own,
    ):
        own.apply(own.space.default())
        conf = own.workspace.environment["CEPH_CONF"]
        options = {"kind": "ceph", "server": "existing", "conf": conf, "user": USER, "pool": "load"}
        options["keyring"] = with_rights(
            options, Path(folder) / USER, target_of(options).announced(()).rights[0]
        )
        asked(options, "config", "set", "mon", "mon_data_avail_warn", "1")  # whatever disk the tests have
        asked(options, "config", "set", "osd", "osd_client_message_cap", "300")
        asked(options, "config", "set", "osd", "osd_recovery_sleep_hdd", "0")  # 0.1 s an object by default
        options["confirmed_server"] = asked(options, "fsid").strip()
        until(lambda: "HEALTH_OK" in asked(options, "health"))
        try:
            yield options
        finally:
            subprocess.run(["pkill", "-f", f"ceph-osd -c {conf} "], check=False)


def asked(options: dict[str, Any], *words: str) -> str:
    argv = ["ceph", "--conf", options["conf"], *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout


def with_rights(options: dict[str, Any], path: Path, command: str) -> str:
    """The path of a keyring that is made by a command, such as the one that a study announces."""
    path.write_text(asked(options, *shlex.split(command)[1:]))
    return str(path)


def dump(options: dict[str, Any]) -> list[str]:
    return sorted(map(str, json.loads(asked(options, "config", "dump", "--format", "json"))))


@needs_ceph
@pytest.mark.slow
def test_a_real_cluster_takes_settings_and_has_the_old_ones_afterwards(real: dict[str, Any]) -> None:
    before = dump(real)
    with target_of(real) as target:
        target.adopt(target.space)
        assert target.space.default()["osd_client_message_cap"] == 300
        for configuration in (trial(target), target.space.default(), trial(target)):
            apply_checked(target, configuration)
        load = open_workload({"kind": "rados-bench", "objects": 100, "operations": 2})
        load.prepare(target.workspace)
        assert load.run(target.workspace, PACE).metrics["operations"] > 0
    assert dump(real) == before


@needs_ceph
@pytest.mark.slow
def test_a_real_clusters_balancer_and_autoscaler_are_off_meanwhile(real: dict[str, Any]) -> None:
    def moves() -> tuple[bool, str]:
        active = json.loads(asked(real, "balancer", "status"))["active"]
        return active, asked(real, "osd", "pool", "get", "load", "pg_autoscale_mode").split()[-1]

    asked(real, "osd", "pool", "set", "load", "pg_autoscale_mode", "on")
    asked(real, "balancer", "on")
    until(lambda: "HEALTH_OK" in asked(real, "health"))
    try:
        with target_of(real) as target:
            assert moves() == (False, "off")
            apply_checked(target, trial(target))
        assert moves() == (True, "on")
    finally:
        asked(real, "osd", "pool", "set", "load", "pg_autoscale_mode", "off")
        asked(real, "balancer", "off")


@needs_ceph
@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the OSDs run as another account")
def test_osds_of_a_real_cluster_are_started_anew_while_clients_go_on(
    real: dict[str, Any], tmp_path: Path
) -> None:
    script, before = tmp_path / "restart.py", dump(real)
    script.write_text(RESTART)
    command = [sys.executable, "-I", "-S", str(script), real["conf"], "{id}"]
    options = {**real, "restarts": "allowed", "restart_command": command}
    shards = {"osd_op_num_shards": 3}

    def running() -> set[str]:
        told = [
            json.loads(asked(real, "tell", f"osd.{n}", "config", "get", "osd_op_num_shards"))
            for n in range(3)
        ]
        return {one["osd_op_num_shards"] for one in told}

    def starts() -> dict[int, int]:
        return {
            one["osd"]: one["up_from"]
            for one in json.loads(asked(real, "osd", "dump", "--format", "json"))["osds"]
        }

    first, begun = running(), starts()
    words = ["rados", "--conf", real["conf"], "-p", "load", "bench", "600", "write", "-b", "4096", "-t", "2"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as clients:
        try:
            with target_of(options) as target:
                target.adopt(target.space)
                apply_checked(target, target.space.validate({**target.space.default(), **shards}))
                assert running() == {"3"}
                started = starts()
                assert not set(started.items()) & set(begun.items())
                # What OSDs show at once, and take only when they start.
                depth = {**shards, "bdev_aio_max_queue_depth": 512}
                apply_checked(target, target.space.validate({**target.space.default(), **depth}))
                assert not set(starts().items()) & set(started.items())
            assert running() == first
            assert clients.poll() is None, "no client noticed more than a pause"
        finally:
            clients.kill()
    assert dump(real) == before
    until(lambda: "HEALTH_OK" in asked(real, "health"))


@needs_ceph
@pytest.mark.slow
def test_clients_of_a_real_cluster_are_the_load(real: dict[str, Any]) -> None:
    words = ["rados", "--conf", real["conf"], "-p", "load", "bench", "40", "write", "-b", "4096", "-t", "1"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as clients:
        try:
            with target_of(real) as target:
                pace = LoadTiming(12.0, 20.0, 1.0, lambda series: False)
                found = target.run(target.workspace, pace)
                assert found.metrics["throughput_ops_per_s"] > 1
        finally:
            clients.kill()


@needs_ceph
@pytest.mark.slow
def test_a_flag_of_a_real_cluster_stops_trials_and_a_kill_leaves_nothing(real: dict[str, Any]) -> None:
    before = dump(real)
    words = [sys.executable, "-c", CHILD, json.dumps(real), json.dumps(TRIAL)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"set\n"
        assert dump(real) != before
        child.kill()
    until(lambda: dump(real) == before)
    with target_of(real) as target:
        asked(real, "osd", "set", "noout")
        try:
            with pytest.raises((StageFailed, WorkError), match="OSDMAP_FLAGS"):
                target.apply(trial(target))
        finally:
            asked(real, "osd", "unset", "noout")
    assert dump(real) == before


@needs_ceph
@pytest.mark.slow
def test_a_real_cluster_lets_in_who_has_a_key_and_each_may_what_its_capabilities_say(
    real: dict[str, Any], tmp_path: Path
) -> None:
    before = dump(real)
    assert Path(real["conf"]).with_name("keyring").stat().st_mode & 0o777 == 0o600
    nobody = target_of(real, user="client.nobody", keyring=None)
    not_let_in = "the cluster does not let it in .*ceph auth get-or-create"
    with pytest.raises(Refused, match=f"client.nobody: {not_let_in}"), nobody:
        pass
    (tmp_path / "other").write_text(keyring_text([USER]))
    other = target_of(real, keyring=str(tmp_path / "other"))
    with pytest.raises(Refused, match=f"client.ascar: {not_let_in}"), other:
        pass
    made = with_rights(real, tmp_path / "reader", "ceph auth get-or-create client.reader mon 'allow r'")
    with (
        pytest.raises(Refused, match=r"client.reader: lacks rights .*ceph auth caps client.reader"),
        target_of(real, user="client.reader", keyring=made) as target,
    ):
        target.apply(trial(target))
    assert dump(real) == before


@needs_ceph
@pytest.mark.slow
def test_osds_tell_what_they_have_put_off_only_to_who_may_do_anything(
    real: dict[str, Any], tmp_path: Path
) -> None:
    """Which is why it is not charged to trials."""
    for osd, is_told in (("allow rwx", False), ("allow *", True)):
        name = "client.all" if is_told else "client.some"
        rights = f"ceph auth get-or-create {name} mon 'allow r' mgr 'allow r' osd '{osd}'"
        made = with_rights(real, tmp_path / name, rights)
        words = ["ceph", "--conf", real["conf"], "--name", name, "--keyring", made, "tell", "osd.0", "perf"]
        done = subprocess.run([*words, "dump"], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode == 0) == is_told, done.stderr
        assert ("EACCES" in done.stderr or "EPERM" in done.stderr) != is_told, done.stderr
