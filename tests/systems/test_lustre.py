"""A Lustre client on a stand-in of `lctl`: couplings, roll-back, states of imports, output of versions."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lctl_stand_in as stand_in
from ascar.catalogues.lustre import lustre
from ascar.errors import EnvironmentLacks, Refused, SpaceError, StageFailed, StudyError, WorkError
from ascar.space import ChangeCost, Guarantee, Range, identifier
from ascar.systems.keeper import restore_all
from ascar.systems.lustre.client import LustreClient
from ascar.systems.lustre.layout import Layout, layout_of
from ascar.systems.lustre.lctl import setting_of, told
from ascar.systems.mount_table import KernelMount
from ascar.testing import TargetContract
from lctl_stand_in import LustreStandIn
from waiting import until

if TYPE_CHECKING:
    from pathlib import Path

SEQUENCES = 10
VERSIONS = ("2.10", "2.15", "2.17")
DIRTY = f"{stand_in.OSC[0]}.max_dirty_mb"
# A process that sets what it is told, says so, and waits to be killed.
CHILD = """
import json, sys
from ascar.systems.lustre.client import LustreClient
with LustreClient(json.loads(sys.argv[1])) as target:
    for changes in json.loads(sys.argv[2]):
        print("set", flush=True)
        target.apply(target.space.validate({**target.space.default(), **changes}))
    print("done", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper's journal is the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def client(tmp_path: Path) -> LustreStandIn:
    return LustreStandIn(tmp_path)


def apply(target: LustreClient, **changes: int | str) -> None:
    target.apply(target.space.validate({**target.space.default(), **changes}))


class TestLustreContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _client(self, client: LustreStandIn) -> None:
        self.client = client

    def make(self) -> LustreClient:
        return LustreClient({**self.client.options, "settings": ["llite.statahead_max"]})

    def options(self) -> dict[str, Any]:
        return {**self.client.options, "settings": ["llite.statahead_max"]}


@pytest.mark.parametrize("name", list(lustre()))
def test_each_setting_and_what_changes_with_it_is_put_back(client: LustreStandIn, name: str) -> None:
    before = client.values
    setting = lustre()[name]
    with LustreClient({**client.options, "settings": [name]}) as target:
        assert {identifier(one) for one in setting.changes} <= set(target.space.names)
        target.space = target.space.permit_weaker(Guarantee)
        value = {"osc.max_rpcs_in_flight": 32, "osc.checksums": 0}.get(name, setting.range[0] or 1)
        if identifier("mdc.max_rpcs_in_flight") in target.space.names:
            apply(target, mdc_max_rpcs_in_flight=4, mdc_max_mod_rpcs_in_flight=3)
        else:
            apply(target, **{identifier(name): value})
        assert client.values != before
    assert client.values == before


def test_what_lustre_raises_without_a_word_stays_where_the_study_has_it(client: LustreStandIn) -> None:
    with LustreClient({**client.options, "settings": ["osc.max_rpcs_in_flight"]}) as target:
        apply(target, osc_max_rpcs_in_flight=64)
        assert client.values[DIRTY] == 32
    raw = ["set_param", f"{stand_in.OSC[0]}.max_rpcs_in_flight=64"]
    assert subprocess.run([client.options["lctl"], *raw], check=True).returncode == 0
    assert client.values[DIRTY] == 256, "the stand-in raises it by itself"


@pytest.mark.parametrize("state", ["EVICTED", "RECOVER", "CONNECTING", "DISCONN"])
def test_nothing_is_set_while_a_target_is_not_connected(client: LustreStandIn, state: str) -> None:
    with LustreClient(client.options) as target:
        client.change(states={stand_in.OSC[1]: state}, sets=0)
        with pytest.raises(StageFailed, match=f"OST0001.*the state is {state}; must be FULL or IDLE"):
            apply(target, osc_max_rpcs_in_flight=16)
        assert json.loads(client.file.read_text())["sets"] == 0
        client.change(states={})


def test_a_trial_in_which_the_client_was_evicted_fails_by_name(client: LustreStandIn) -> None:
    with LustreClient(client.options) as target:
        apply(target, osc_max_rpcs_in_flight=16)
        assert target.sample().counters["osc_wait_s"] == pytest.approx(15)
        client.change(history={stand_in.OSC[2]: [[200, "EVICTED"], [201, "FULL"]]})
        with pytest.raises(StageFailed, match=r"OST0002.*the client was evicted at 200"):
            target.sample()
        apply(target, osc_max_rpcs_in_flight=8)
        target.sample()


@pytest.mark.parametrize(
    ("kind", "source", "said"),
    [
        ("lustre", "10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch", None),
        ("lustre", "mgs:/scratch/projects", None),
        (
            "lustre",
            "mgs:/home/scratch",
            "is on mgs:/home/scratch, not on 'scratch'; name a directory of that",
        ),
        ("ext4", "/dev/vda1", "is on ext4, not on Lustre"),
    ],
)
def test_a_load_that_would_use_another_file_system_is_told(
    client: LustreStandIn,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    source: str,
    said: str | None,
) -> None:
    mount = KernelMount("1", "0", "0:1", "/", kind, source, ())
    monkeypatch.setattr("ascar.systems.lustre.client.mount_around", lambda path: mount)
    if said is not None and kind == "lustre":
        with pytest.raises(StudyError, match=f"target.path = .*: {said}"), LustreClient(client.options):
            pass
        return
    with LustreClient(client.options):
        assert (said is not None) == ("is on ext4, not on Lustre" in caplog.text)


@pytest.mark.parametrize("state", ["DISCONN", "REPLAY", "REPLAY_LOCKS", "RECOVER"])
def test_a_trial_in_which_a_target_recovered_fails_although_it_is_over(
    client: LustreStandIn, state: str
) -> None:
    with LustreClient(client.options) as target:
        apply(target, osc_max_rpcs_in_flight=16)
        client.change(history={stand_in.OSC[2]: [[100, "IDLE"], [101, "CONNECTING"], [102, "FULL"]]})
        target.sample()
        client.change(history={stand_in.OSC[2]: [[200, state], [201, "CONNECTING"], [202, "FULL"]]})
        with pytest.raises(StageFailed, match=rf"OST0002.*lost the target, and recovered at 200 \({state}\)"):
            target.sample()
        client.change(history={stand_in.OSC[2]: [[200, "DISCONN"], [201, "EVICTED"], [202, "FULL"]]})
        with pytest.raises(StageFailed, match=r"the client was evicted at 201"):
            target.sample()


def test_a_trial_whose_values_did_not_last_fails(client: LustreStandIn) -> None:
    """A target that was idle connects anew under the load, and Lustre raises its dirty data again."""
    with LustreClient(client.options) as target:
        apply(target, osc_max_rpcs_in_flight=64, osc_max_dirty_mb=8)
        target.sample()
        client.change(values={**client.values, DIRTY: 256})
        with pytest.raises(
            StageFailed, match=r"OST0000.*max_dirty_mb = 256: is not 8 any more.*idle_timeout"
        ):
            target.sample()
        apply(target, osc_max_dirty_mb=8)
        target.sample()


AHEAD = f"{stand_in.LLITE}.statahead_max"


def test_what_somebody_else_sets_in_mid_study_ends_it_and_stays(client: LustreStandIn) -> None:
    before = client.values
    target = LustreClient({**client.options, "settings": ["llite.statahead_max", "osc.max_rpcs_in_flight"]})
    with (
        pytest.raises(WorkError, match=r"left alone: llite.*statahead_max: is 100, not 64 as ascar left"),
        target,
    ):
        apply(target, llite_statahead_max=64, osc_max_rpcs_in_flight=16)
        client.change(values={**client.values, AHEAD: 100})
        with pytest.raises(WorkError, match=r"statahead_max: is 100.*somebody else changed it in mid-study"):
            apply(target, llite_statahead_max=128)
    assert client.values == {**before, AHEAD: 100}


def test_a_second_study_of_the_file_system_is_refused(client: LustreStandIn) -> None:
    before = client.values
    with LustreClient(client.options) as target:
        apply(target, osc_max_rpcs_in_flight=16)
        with pytest.raises(Refused, match=r"lustre:scratch"):
            LustreClient(client.options).__enter__()
        assert client.values != before
    assert client.values == before


def test_a_file_system_whose_name_begins_alike_is_left_alone(client: LustreStandIn) -> None:
    theirs = {full.replace("scratch-", "scratch-2-"): value * 2 for full, value in client.values.items()}
    client.change(values={**client.values, **theirs})
    client.change(states={f"osc.scratch-2-OST0000-osc-{stand_in.MOUNT}": "RECOVER"})
    with LustreClient({**client.options, "osts": 3}) as target:
        assert target.space.default()["osc_max_dirty_mb"] == 32
        apply(
            target, osc_max_rpcs_in_flight=16, llite_max_read_ahead_mb=32, llite_max_read_ahead_per_file_mb=32
        )
        assert {full: client.values[full] for full in theirs} == theirs
    with pytest.raises(StudyError, match="must be at most 3"):
        LustreClient({**client.options, "osts": 4}).__enter__()


def test_a_target_that_an_administrator_has_deactivated_is_no_part_of_a_study(client: LustreStandIn) -> None:
    gone = stand_in.OSC[2]
    before = {**client.values, f"{gone}.max_dirty_mb": 500}
    client.change(inactive=[gone], states={gone: "DISCONN"}, values=before)
    with LustreClient(client.options) as target:
        apply(target, osc_max_dirty_mb=64)
        assert [client.values[f"{one}.max_dirty_mb"] for one in stand_in.OSC] == [64, 64, 500]
        assert target.sample().counters["osc_requests"] > 0
        client.change(inactive=[], states={})
        with pytest.raises(StageFailed, match="OST0002.*was activated since the study began; begin anew"):
            apply(target, osc_max_dirty_mb=32)
        client.change(inactive=[gone, stand_in.OSC[1]])
        with pytest.raises(StageFailed, match="OST0001.*was deactivated since the study began; begin anew"):
            apply(target, osc_max_dirty_mb=32)
    assert client.values == before
    client.change(inactive=[gone])
    with pytest.raises(StudyError, match="target.osts = 3: must be at most 2"):
        LustreClient({**client.options, "osts": 3}).__enter__()


def test_a_target_that_comes_or_goes_in_mid_study_is_named(client: LustreStandIn) -> None:
    before = client.values
    fresh = {full.replace("OST0002", "OST0003"): value for full, value in before.items() if "OST0002" in full}
    with LustreClient(client.options) as target:
        apply(target, osc_max_dirty_mb=64)
        client.change(values={**client.values, **fresh})
        with pytest.raises(StageFailed, match="OST0003.*has come since the study began; begin anew"):
            target.sample()
        with pytest.raises(StageFailed, match="OST0003.*has come since the study began; begin anew"):
            apply(target, osc_max_dirty_mb=128)
    assert client.values == {**before, **fresh}
    with LustreClient(client.options) as target:
        apply(target, osc_max_dirty_mb=64)
        client.change(values={full: value for full, value in client.values.items() if full not in fresh})
        with pytest.raises(StageFailed, match="OST0003.*is gone since the study began; begin anew"):
            apply(target, osc_max_dirty_mb=128)
    assert client.values == before


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("quirk", ["", "fractions"])
def test_output_of_other_versions_is_read(client: LustreStandIn, version: str, quirk: str) -> None:
    client.save({**stand_in.fresh(version), "quirk": quirk})
    with LustreClient({**client.options, "parameters": "wide"}) as target:
        assert target.read(["osc_max_dirty_mb", "llite_max_cached_mb"]) == {
            "osc_max_dirty_mb": 32,
            "llite_max_cached_mb": 12064,
        }
        assert ("osc_short_io_bytes" in target.space) == (version != "2.10"), "2.10 does not have it"
        assert target.sample().counters["mdc_requests"] == 20


def test_a_setting_that_a_study_names_must_be_there(client: LustreStandIn) -> None:
    client.save(stand_in.fresh("2.10"))
    options = {**client.options, "settings": ["osc.short_io_bytes"]}
    with (
        pytest.raises(StageFailed, match=r"no setting|osc\.short_io_bytes: no device"),
        LustreClient(options),
    ):
        pass


def domain(target: LustreClient, name: str) -> Range:
    found = target.space.domain(name)
    assert isinstance(found, Range)
    return found


def test_what_the_targets_and_the_memory_allow_bounds_the_search(client: LustreStandIn) -> None:
    client.change(brw_bytes=4 << 20, grant_block_bytes=1 << 20, mod_rpcs=24)
    with LustreClient({**client.options, "parameters": "wide"}) as target:
        pages = domain(target, "osc_max_pages_per_rpc")
        assert (pages.low, pages.high, pages.step) == (256, 1024, 256)
        assert domain(target, "mdc_max_mod_rpcs_in_flight").high == 24
        memory_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
        assert domain(target, "llite_max_cached_mb").high == memory_mb
        assert domain(target, "llite_max_read_ahead_mb").high == memory_mb // 2
        for value in pages.each():
            apply(target, osc_max_pages_per_rpc=int(value))


def test_an_old_value_between_the_steps_of_the_search_is_the_default(client: LustreStandIn) -> None:
    values = {**client.values, **{f"{one}.max_pages_per_rpc": 1000 for one in stand_in.OSC}}
    client.change(grant_block_bytes=4096, values=values)
    with LustreClient(client.options) as target:
        assert target.space.default()["osc_max_pages_per_rpc"] == 1000
        apply(target, osc_max_pages_per_rpc=1008)
    assert client.values == values


def test_where_targets_leave_no_value_the_old_one_stays(client: LustreStandIn) -> None:
    client.change(brw_bytes=4 << 20, grant_block_bytes=1 << 40)
    with LustreClient(client.options) as target:
        assert [*domain(target, "osc_max_pages_per_rpc").each()] == [1024]


def test_without_what_the_targets_allow_the_range_is_that_of_lustre(client: LustreStandIn) -> None:
    client.change(connected=False)
    with LustreClient(client.options) as target:
        assert domain(target, "osc_max_pages_per_rpc").high == 16384


def test_dirty_data_of_a_part_of_a_mebibyte_is_set_again(client: LustreStandIn) -> None:
    """An eighth of the memory, at which an older client stops raising it, is not whole."""
    client.save({**stand_in.fresh("2.10"), "memory_mb": 12247})
    before = client.values
    with LustreClient(client.options) as target:
        raw = [client.options["lctl"], "set_param", f"{stand_in.OSC[0]}.max_rpcs_in_flight=256"]
        subprocess.run([*raw, f"{stand_in.OSC[0]}.max_pages_per_rpc=4096"], check=True)
        assert client.values[DIRTY] == 12247 / 8
        client.change(
            values={**before, DIRTY: 12247 / 8}
        )  # nobody has set more RPCs, but Lustre the dirty data
        apply(target, osc_max_rpcs_in_flight=256, osc_max_pages_per_rpc=4096, osc_max_dirty_mb=100)
        assert client.values[DIRTY] == 100
    assert client.values == before


def test_a_value_that_is_not_whole_before_a_study_is_named(client: LustreStandIn) -> None:
    client.change(values={**client.values, DIRTY: 31.62}, sets=0)
    with (
        pytest.raises(StageFailed, match=r"max_dirty_mb = 31\.62: set it to a whole"),
        LustreClient(client.options),
    ):
        pass
    assert json.loads(client.file.read_text())["sets"] == 0


def test_a_value_beyond_the_range_before_a_study_is_the_default(client: LustreStandIn) -> None:
    fresh = stand_in.fresh("2.10")
    full = f"{stand_in.LLITE}.statahead_max"
    client.save({**fresh, "values": {**fresh["values"], full: 8192}})
    with LustreClient({**client.options, "settings": ["llite.statahead_max"]}) as target:
        assert dict(target.space.default()) == {"llite_statahead_max": 8192}
        apply(target, llite_statahead_max=64)
    assert client.values[full] == 8192


def test_data_without_checksums_has_to_be_permitted(client: LustreStandIn) -> None:
    options = {**client.options, "settings": ["osc.checksums"]}
    with LustreClient(options) as target, pytest.raises(SpaceError, match="integrity"):
        target.space.validate({"osc_checksums": 0})
    client.change(values={**client.values, **{f"{one}.checksums": 0 for one in stand_in.OSC}})
    with LustreClient(options) as target:
        apply(target, osc_checksums=1)
        apply(target, osc_checksums=0)


@pytest.mark.parametrize(
    ("quirk", "words"),
    [
        ("words", "= 'unlimited': must be a number"),
        ("no state", "must have one line with its state, has 0"),
    ],
)
def test_what_cannot_be_read_is_named(client: LustreStandIn, quirk: str, words: str) -> None:
    client.change(quirk=quirk)
    with pytest.raises(StageFailed, match=words), LustreClient(client.options):
        pass


def test_devices_that_differ_are_named(client: LustreStandIn) -> None:
    client.change(values={**client.values, DIRTY: 64})
    with pytest.raises(StageFailed, match="as on other devices"), LustreClient(client.options):
        pass


def test_a_value_that_the_server_does_not_allow_fails_the_trial(client: LustreStandIn) -> None:
    before = client.values
    client.change(connected=False)
    with LustreClient(client.options) as target:
        with pytest.raises(StageFailed, match="max_pages_per_rpc = 16384: is 1024 after set_param") as failed:
            apply(target, osc_max_pages_per_rpc=16384)
        assert "out of range" in failed.value.stderr
    assert client.values == before


def test_lines_before_the_first_parameter_are_none() -> None:
    assert [one.text for one in told("hello\nosc.a-1.stats=\n\x00x=1\n\nosc.b-2.stats=5\n")] == [
        "\x00x=1",
        "5",
    ]


def laid_out(target: LustreClient) -> list[list[Any]] | None:
    """The layout that the load's directory has of its own."""
    with suppress(OSError):
        found: list[list[Any]] = json.loads(os.getxattr(target.workspace.directory, "user.lov"))
        return found
    return None


PROGRESSIVE = {"layout": "progressive", "stripe_count": 3, "stripe_size": 1 << 22, "first_extent": 1 << 26}
PLAIN = {"layout": "plain", "stripe_count": 2, "stripe_size": 65536}


def test_a_layout_is_that_of_a_new_directory(client: LustreStandIn, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    with LustreClient({**client.options, "settings": ["llite.statahead_max"], "osts": 3}) as target:
        apply(target)
        (target.workspace.directory / "data").write_text("of the fill")
        assert laid_out(target) is None, "it is that of the directory above"
        apply(target, llite_statahead_max=64)
        assert (target.workspace.directory / "data").exists(), "the layout is the same"
        for changes, components in (
            (PLAIN, [[None, 2, 65536]]),
            (PROGRESSIVE, [[1 << 26, 1, 1 << 22], [-1, 3, 1 << 22]]),
        ):
            configuration = target.space.validate({**target.space.default(), **changes})
            change = target.apply(configuration)
            assert change.category == ChangeCost.REFORMAT_RESTORE.category
            assert not change.filled
            assert laid_out(target) == components
            assert list(target.workspace.directory.iterdir()) == []
            assert target.read(list(changes)) == changes
        apply(target)
        assert laid_out(target) is None
    assert set(tmp_path.iterdir()) <= before | {tmp_path / "state", tmp_path / "state.json.lock"}


def test_a_file_system_layout_of_2_10_is_read(client: LustreStandIn) -> None:
    client.change(quirk="2.10")
    with LustreClient({**client.options, "osts": 3}) as target:
        apply(target, **PROGRESSIVE)
        assert laid_out(target) is not None


def test_a_client_without_progressive_layouts_is_asked_for_none(client: LustreStandIn) -> None:
    for version, kinds in (("2.9", ("inherited", "plain")), ("new", ("inherited", "plain", "progressive"))):
        client.save({**stand_in.fresh("2.10"), "version": version})
        with LustreClient({**client.options, "osts": 3}) as target:
            assert tuple(target.space.domain("layout").each()) == kinds
            assert ("first_extent" in target.space) == ("progressive" in kinds)
            apply(target, **PLAIN)


@pytest.mark.parametrize(
    ("quirk", "words"),
    [
        ("fewer stripes", "setstripe -c 2 -S 65536: getstripe says .*stripe_count: 1"),
        ("no layout", "getstripe says .*nothing"),
        ("no space", "setstripe -c 2 -S 65536: exit status 22"),
    ],
)
def test_a_layout_that_is_refused_fails_the_trial_and_the_next_goes_on(
    client: LustreStandIn, quirk: str, words: str
) -> None:
    with LustreClient({**client.options, "osts": 3}) as target:
        client.change(quirk=quirk)
        with pytest.raises(StageFailed, match=words) as failed:
            apply(target, **PLAIN)
        assert quirk != "no space" or "No space left" in failed.value.stderr
        client.change(quirk="")
        apply(target)
        assert laid_out(target) is None
        apply(target, **PLAIN)
        assert laid_out(target) == [[None, 2, 65536]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stripe_count:  1",
        "stripe_count: 1 stripe_size: 9 stripe_count: 2 stripe_size: 9",
        "lcme_extent.e_end: x stripe_count: 1 stripe_size: 9",
        "lcme_extent.e_end: EOF lcme_extent.e_end: EOF stripe_count: 1 stripe_size: 9",
        f"stripe_count: {'9' * 5000} stripe_size: 9",
    ],
)
def test_what_is_no_layout_is_none(text: str) -> None:
    assert Layout.told(text) is None


def test_a_layout_stays_in_the_space_that_lustre_allows() -> None:
    space = LustreClient({"file_system": "scratch", "path": "/scratch", "osts": 12}).space
    for configuration in space.sample(np.random.default_rng(3), 200):
        layout = layout_of(configuration)
        assert layout is None or Layout.told(said := told_by_lfs(layout)) == layout, said
        ends = () if layout is None else [one for one in layout.components if one.end_bytes is not None]
        assert all(one.end_bytes % one.stripe_bytes == 0 for one in ends)
    assert "layout" not in LustreClient({"file_system": "scratch", "path": "/scratch"}).space


def told_by_lfs(layout: Layout) -> str:
    several = len(layout.components) > 1
    return "\n".join(
        (f"lcme_extent.e_end: {one.end_bytes or 'EOF'} " if several else "")
        + f"stripe_count: {one.stripe_count} stripe_size: {one.stripe_bytes}"
        for one in layout.components
    )


def test_a_study_with_more_osts_than_there_are_is_refused(client: LustreStandIn) -> None:
    wanted = {**client.options, "osts": 4}
    with pytest.raises(StudyError, match="target.osts = 4: must be at most 3"), LustreClient(wanted):
        pass
    with pytest.raises(EnvironmentLacks, match="no such program"), LustreClient({**wanted, "lfs": "no-lfs"}):
        pass


def test_a_layout_is_exported_for_new_files(client: LustreStandIn) -> None:
    target = LustreClient({**client.options, "path": "/scratch/a b", "osts": 8})
    configuration = target.space.validate({**target.space.default(), **PROGRESSIVE})
    lines = target.commands(configuration, ("layout", "stripe_count"))
    wanted = "lfs setstripe -E 67108864 -c 1 -S 4194304 -E -1 -c 3 -S 4194304 '/scratch/a b'"
    assert lines["shell"][0] == wanted
    assert "lfs migrate" in lines["shell"][1]
    assert "setstripe" in str(lines["ansible"])
    assert target.commands(target.space.default(), ())["shell"] == []


def test_exports_set_and_say_what_makes_them_stay(client: LustreStandIn) -> None:
    target = LustreClient(client.options)
    lines = target.commands(target.space.default(), ("osc_max_dirty_mb",))["shell"]
    assert lines[0] == "lctl set_param 'osc.scratch-OST*.max_dirty_mb=32'"
    assert lines[1].startswith("# to stay, on the MGS: lctl set_param -P ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"file_system": "a b"}, "target.file_system = 'a b': must be"),
        ({"path": "here"}, "target.path = 'here': must be the absolute path"),
        ({"settings": []}, "must name at least one"),
        ({"settings": ["osc.none"]}, "target.settings: 'osc.none': must be one of"),
        ({"osts": 0}, "target.osts = 0: must be"),
        ({"osts": 10**9}, "target.osts = 1000000000: must be"),
    ],
)
def test_mistakes_are_named(client: LustreStandIn, options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        LustreClient({**client.options, **options})
    assert words in caught.value.message


def sequence(seed: int) -> list[dict[str, int]]:
    """Random valid changes of all settings."""
    draw, found = random.Random(seed), []
    for _ in range(draw.randint(1, 3)):
        ahead, rpcs = draw.randint(0, 512), draw.randint(2, 64)
        found.append(
            {
                "osc_max_rpcs_in_flight": draw.randint(1, 256),
                "osc_max_pages_per_rpc": 256 * draw.randint(1, 16),
                "osc_max_dirty_mb": draw.randint(1, 2047),
                "mdc_max_rpcs_in_flight": rpcs,
                "mdc_max_mod_rpcs_in_flight": draw.randint(1, min(rpcs - 1, 8)),
                "llite_max_read_ahead_mb": ahead,
                "llite_max_read_ahead_per_file_mb": draw.randint(0, ahead),
            }
        )
    return found


@pytest.mark.slow
def test_random_sequences_that_are_killed_leave_nothing(client: LustreStandIn, seed: int) -> None:
    for turn in range(SEQUENCES):
        one_that_is_killed(client, SEQUENCES * seed + turn)


def one_that_is_killed(client: LustreStandIn, seed: int) -> None:
    version, block = VERSIONS[seed % len(VERSIONS)], (4096, 65536, 1 << 20)[seed % 5 % 3]
    client.save({**stand_in.fresh(version), "grant_block_bytes": block, "memory_mb": 12247})
    before, draw = client.values, random.Random(seed)
    words = [sys.executable, "-c", CHILD, json.dumps(client.options)]
    words.append(json.dumps(sequence(seed)))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"set\n"
        time.sleep(draw.random())
        child.send_signal(draw.choice([signal.SIGKILL, signal.SIGINT]))
    deadline_s, same_s = time.monotonic() + 30, 0.0
    while same_s < 1.5 and time.monotonic() < deadline_s:
        same_s = same_s + 0.1 if client.values == before else 0.0
        time.sleep(0.1)
    assert client.values == before


OSTS = 2000
# A process that sets what it is told, says whose process its keeper is, and waits to be killed.
WATCHED = """
import json, sys
from ascar.systems.lustre.client import LustreClient
with LustreClient(json.loads(sys.argv[1])) as target:
    print(target._keeper.pid, flush=True)
    target.apply(target.space.validate({**target.space.default(), **json.loads(sys.argv[2])}))
    sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_keeper_killed", [False, True])
def test_a_client_of_two_thousand_osts_is_put_back(
    client: LustreStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_keeper_killed: bool
) -> None:
    monkeypatch.setattr("ascar.systems.keeper.ROOTS_STATE", tmp_path / "of-root")
    client.save(stand_in.fresh(osts=OSTS))
    before, last = client.values, f"{stand_in.osc_of(OSTS - 1)}.max_rpcs_in_flight"
    changes = {"osc_max_rpcs_in_flight": 64, "osc_max_dirty_mb": 8}
    words = [sys.executable, "-c", WATCHED, json.dumps(client.options), json.dumps(changes)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        keeper = int(child.stdout.readline())
        until(lambda: client.values[last] == 64, what="the last OST has the value")
        (journal,) = (tmp_path / "state").rglob("*.jsonl")
        assert journal.stat().st_size > 128 << 10, "more than an argument of a program may hold"
        if is_keeper_killed:
            os.kill(keeper, signal.SIGKILL)
        child.kill()
    if is_keeper_killed:
        assert client.values != before
        assert restore_all().failed == ()
    until(lambda: not [*(tmp_path / "state").rglob("*.jsonl")], what="the keeper has put all back")
    assert client.values == before


def test_the_order_of_writing_knows_every_setting() -> None:
    for full in stand_in.fresh()["values"]:
        assert setting_of(full) in lustre()
