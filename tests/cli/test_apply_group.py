"""A configuration of a control group put in force by the commands, looked at, and put back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.study import Study
from ascar.systems.linux import Linux
from ascar.systems.machine import describe_machine
from control_groups import SETTINGS, real_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from control_groups import Group

pytestmark = [pytest.mark.root, pytest.mark.machine]
PRESSURE = Path("/proc/sys/vm/vfs_cache_pressure")
STUDY = """
[study]
name = "grouped"
objective = "maximize throughput_ops_per_s"
budget = "1 min"
[target]
kind = "linux"
cgroup = "GROUP"
settings = SETTINGS
"""


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_run: Callable[..., int]) -> Iterator[Group]:
    """A group, and a run that recommends settings of it and one of the kernel."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    names = [*SETTINGS, "vm.vfs_cache_pressure"]
    with real_group() as made:
        study = Study.parse(STUDY.replace("GROUP", made.name).replace("SETTINGS", str(names)))
        space = Linux({"cgroup": made.name, "settings": names}).space
        pressure = 1 + int(PRESSURE.read_text())
        best = space.default().replaced(
            cgroup_cpu_shares=2048, cgroup_cpu_cfs_quota_us=50000, vm_vfs_cache_pressure=pressure
        )
        keep_run(study, space, best, {"target": "linux", **describe_machine()})
        yield made


def test_it_is_in_force_until_it_is_restored(ascar: Callable[..., Any], group: Group) -> None:
    before, shares, pressure = group.state(), group.file("cpu/cpu.shares"), PRESSURE.read_text()
    planned = ascar("apply", "grouped", "--dry-run", "--json").document
    assert [one["command"] for one in planned["settings"]] == [
        f"sysctl -w vm.vfs_cache_pressure={int(pressure) + 1}",
        f"echo 2048 > {shares}",
        f"echo 50000 > {group.file('cpu/cpu.cfs_quota_us')}",
    ]
    assert ascar("export", "grouped", "--json").document["lines"] == [
        one["command"] for one in planned["settings"]
    ]
    assert group.state() == before
    done = ascar("apply", "grouped", "--json")
    assert (done.status, done.document["left_to_you"]) == (0, []), done.err
    assert shares.read_text() == "2048\n"
    assert ascar("drift", "grouped", "--json").document["in_force"]
    shares.write_text("3000")
    drifted = ascar("drift", "grouped", "--json").document
    assert [(one["parameter"], one["found"]) for one in drifted["settings"] if not one["in_force"]] == [
        ("cgroup_cpu_shares", "3000")
    ]
    shares.write_text("2048")
    restored = ascar("restore", "--json")
    assert restored.status == 0, restored.err
    assert (group.state(), PRESSURE.read_text()) == (before, pressure)


def test_it_is_put_back_unless_it_is_confirmed(ascar: Callable[..., Any], group: Group) -> None:
    before = group.state(), PRESSURE.read_text()
    done = ascar("apply", "grouped", "--confirm", "2 s")
    assert done.status == 0, done.err
    assert group.file("cpu/cpu.shares").read_text() == "2048\n"
    end_s = time.monotonic() + 30
    while (group.state(), PRESSURE.read_text()) != before:
        assert time.monotonic() < end_s
        time.sleep(0.1)


def test_what_is_applied_of_a_group_that_is_made_anew_is_not_put_back_there(
    ascar: Callable[..., Any], group: Group
) -> None:
    assert ascar("apply", "grouped").status == 0
    group.remove()
    group.make()
    group.start()
    group.file("cpu/cpu.shares").write_text("2048")
    assert ascar("restore").status == 0
    assert group.file("cpu/cpu.shares").read_text() == "2048\n"
