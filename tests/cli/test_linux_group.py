"""An application's control group by the commands: tuned from a bad start, killed; everything is put back."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from control_groups import real_group
from killed_studies import comes_back, killed_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from control_groups import Group

pytestmark = [pytest.mark.root, pytest.mark.machine, pytest.mark.slow]

QUOTA_US = 10_000
TEXT = """
[study]
name = "quota"
objective = "maximize work_per_s"
budget = "60 s"
[target]
kind = "linux"
cgroup = "GROUP"
settings = ["cgroup.cpu.cfs_quota_us", "cgroup.cpu.shares", "cgroup.memory.swappiness"]
[workload]
kind = "command"
argv = ["./count.sh", "PID"]
[workload.metrics]
work_per_s = 'regex:^rate ([0-9]+)'
[verify]
p_value = 0.05
"""
COUNT = """#!/bin/sh
# How much an application that works all the time gets done: its processor time, in ticks a second.
for turn in 1 2 3 4; do
    before=$(awk '{ print $14 + $15 }' "/proc/$1/stat")
    sleep 0.5
    echo "rate $(($(awk '{ print $14 + $15 }' "/proc/$1/stat") * 2 - before * 2 + 1))"
done
"""


@pytest.fixture
def group() -> Iterator[Group]:
    """A group that may use a tenth of a processor, and needs it all."""
    with real_group(["sh", "-c", "while :; do :; done"]) as made:
        made.file("cpu/cpu.cfs_quota_us").write_text(str(QUOTA_US))
        yield made


@pytest.fixture
def study(tmp_path: Path, group: Group, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    load = tmp_path / "count.sh"
    load.write_text(COUNT)
    load.chmod(0o755)
    path = tmp_path / "quota.toml"
    path.write_text(TEXT.replace("GROUP", group.name).replace("PID", str(group.process.pid)))
    return path


def test_what_a_bad_quota_costs_is_won_back(ascar: Callable[..., Any], study: Path, group: Group) -> None:
    before = group.state()
    checked = ascar("check", study, "--json")
    assert checked.status == 0, checked.err
    assert [one["problem"] for one in checked.document["parameters"]] == [None] * 3
    assert group.state() == before
    tuned = ascar("tune", study, "--json")
    assert tuned.status == 0, tuned.err
    assert tuned.document["verdict"]["kind"] == "improved"
    found = tuned.document["recommended"]["cgroup_cpu_cfs_quota_us"]
    assert found == -1 or found > 4 * QUOTA_US
    assert group.state() == before


def test_killed_at_any_moment_the_group_is_as_before(study: Path, group: Group, seed: int) -> None:
    draw, before, seen = random.Random(seed), group.state(), set[str]()
    for _ in range(4):
        seen |= killed_study(study, draw.uniform(2.0, 12.0), group.file("cpu/cpu.cfs_quota_us").read_text)
        assert comes_back(group.state, before) == before
    assert len(seen) > 1, "the study has changed it"
