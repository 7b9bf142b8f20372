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
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks, Refused, StageFailed, StudyError, WorkError
from ascar.space import ChangeCost
from ascar.study import GuardSection
from ascar.systems import open_target
from ascar.systems.asking import apply_checked
from ascar.systems.ceph import Ceph
from ascar.systems.ceph.existing import ExistingCeph, live_ceph_space
from ascar.systems.ceph.keyring import keyring_text
from ascar.workloads import LoadTiming, open_workload
from ascar.workloads.fio_ceph import CephJobs
from ascar.workloads.fio_job import FioJob
from ceph_stand_in import FSID, CephStandIn
from own_servers import ceph_account, ceph_installed, server_place

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
    space = live_ceph_space("wide", None)
    assert {one.cost for one in space.parameters} == {ChangeCost.DYN_APP}
    assert len(space.parameters) > len(live_ceph_space("expert", None).parameters) >= 5


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
        wait_until(lambda: cluster.held == before)


def wait_until(condition: Any, limit_s: float = 60.0) -> None:
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.1)


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


@pytest.mark.parametrize(
    ("change", "said"),
    [({"groups": 65}, "65 placement groups, and had 33"), ({"osds": 4}, "4 OSDs, and had 3")],
)
def test_a_cluster_that_grows_ends_the_study(cluster: CephStandIn, change: dict[str, int], said: str) -> None:
    with unchanged(cluster), target_of(cluster.options) as target:
        target.apply(trial(target))
        cluster.change(**change)
        with pytest.raises((WorkError, StageFailed), match=said):
            target.apply(target.space.default())
        cluster.change(groups=33, osds=3)


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


@needs_ceph
def test_a_load_finds_the_pool_and_the_user(cluster: CephStandIn) -> None:
    with target_of(cluster.options, pool="bench") as target:
        job = FioJob({"ioengine": "rados", "size": "1m"}, {"objects": {}})
        jobs = CephJobs.of(job)
        assert jobs is not None
        placed = jobs.place(target.workspace)
        assert placed == {"clientname": "ascar", "pool": "bench", "conf": cluster.options["conf"]}
        assert target.workspace.environment["CEPH_ARGS"] == "--name client.ascar"


def test_what_may_be_issued_is_announced(cluster: CephStandIn) -> None:
    told = target_of(cluster.options).announced(("osd_client_message_cap",))
    assert told.statements[:2] == (
        "ceph config set osd osd_client_message_cap ...",
        "ceph config rm osd osd_client_message_cap",
    )
    assert told.rights == (
        'ceph auth get-or-create client.ascar mon \'allow r, allow command "config set", allow command '
        "\"config rm\"' mgr 'allow r'",
    )
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
    ],
)
def test_wrong_options_are_refused_in_one_line(cluster: CephStandIn, key: str, value: Any, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        target_of(cluster.options, **{key: value})
    assert said in caught.value.message
    assert "\n" not in caught.value.message


# On a real cluster.


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
        options["confirmed_server"] = asked(options, "fsid").strip()
        wait_until(lambda: "HEALTH_OK" in asked(options, "health"))
        yield options


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
    wait_until(lambda: dump(real) == before)
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
