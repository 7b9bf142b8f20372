"""A study tried out: every parameter once, the load once, and everything put back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.results.machine import Need
from ascar.systems.simulated import SimulatedSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ascar.space import Value

STUDY = """
[study]
name = "tried"
objective = "maximize throughput_ops_per_s"
budget = "1 min"
[target]
"""
SIMULATED = """
kind = "simulated"
metrics = { throughput_ops_per_s = "100 + depth" }
[space.parameters.depth]
kind = "integer"
low = 1
high = 64
default = 8
cost = "dyn-app"
[space.parameters.compress]
kind = "boolean"
default = false
cost = "dyn-app"
when = "depth > 8"
"""
SMALL_FILE_SYSTEM = """
kind = "localfs"
file_systems = ["ext4"]
size = "512 MiB"
[workload]
kind = "filebench"
personality = "mailserver"
scale = 0.1
[space]
allow_cost = ["dyn-kernel", "remount"]
"""


@pytest.fixture
def check(ascar: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    def run(text: str, *words: str) -> Any:
        path = tmp_path / "study.toml"
        path.write_text(text)
        return ascar("check", path, *words)

    return run


def test_every_parameter_is_set_and_read_back(check: Callable[..., Any]) -> None:
    done = check(STUDY + 'kind = "sqlite"', "--json")
    assert done.status == 0, done.err
    found = {one["parameter"]: one for one in done.document["parameters"]}
    assert done.document["works"]
    assert found["locking_mode"]["tried"] is None, "the study leaves no other value"
    tried = [one for one in found.values() if one["tried"] is not None]
    assert len(tried) == 9
    assert all(one["tried"] == one["read_back"] != one["before"] for one in tried)
    assert found["synchronous"]["commands"] == ["PRAGMA synchronous = EXTRA;"], "a weaker value is not tried"
    assert done.document["load_metrics"]["throughput_ops_per_s"] > 0
    assert done.document["sample"]["cpu_busy_s"] > 0


def test_people_read_what_was_tried(check: Callable[..., Any]) -> None:
    done = check(STUDY + SIMULATED)
    assert done.status == 0, done.err
    assert re.search(r"load: throughput_ops_per_s 1\d\d", done.out)
    assert "everything works, and everything was put back" in done.out


def test_a_parameter_that_does_not_apply_by_default_is_tried_where_it_does(check: Callable[..., Any]) -> None:
    found = {one["parameter"]: one for one in check(STUDY + SIMULATED, "--json").document["parameters"]}
    assert found["compress"]["before"] is None
    assert found["compress"]["tried"] is not None


def test_a_metric_that_the_load_does_not_report_is_found(check: Callable[..., Any]) -> None:
    done = check(STUDY.replace("throughput_ops_per_s", "latency_ms_p99") + SIMULATED, "--json")
    assert done.status == 2
    assert "latency_ms_p99" in done.document["error"]["message"]


def test_a_system_that_lies_is_named_by_parameter(
    check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(self: SimulatedSystem, names: Collection[str]) -> Mapping[str, Value]:
        return {"depth": 8} if "depth" in names else {}

    monkeypatch.setattr(SimulatedSystem, "read", lie)
    done = check(STUDY + SIMULATED)
    assert done.status == 1
    assert "problem: depth: change: depth = " in done.out
    assert "the system reads back 8" in done.out
    assert "everything was put back" not in done.out


def test_what_is_missing_is_said_before_anything_is_touched(
    check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = Need("simd", "compute", None, ("simulated",), "simd-tools", "simd")
    monkeypatch.setattr(SimulatedSystem, "needs", classmethod(lambda _: (lacks,)))
    monkeypatch.setattr(SimulatedSystem, "__enter__", lambda _: pytest.fail("nothing is entered"))
    done = check(STUDY + SIMULATED)
    assert done.status == 1
    assert "missing: simd (compute): package simd-tools" in done.out


@pytest.mark.root
@pytest.mark.machine
def test_the_machine_is_as_before(check: Callable[..., Any]) -> None:
    knobs = [Path("/proc/sys/vm", name) for name in ("dirty_ratio", "vfs_cache_pressure")]
    before = [path.read_text() for path in knobs]
    study = (
        STUDY + 'kind = "localfs"\nfile_systems = ["ext4"]\nsize = "512 MiB"\n[workload]\nkind = "filebench"'
    )
    study += '\npersonality = "mailserver"\nscale = 0.1\n[space]\nallow_cost = ["dyn-kernel", "remount"]\n'
    done = check(study, "--json")
    assert done.status == 0, done.err or done.document["problems"]
    tried = {
        one["parameter"]: one["read_back"] for one in done.document["parameters"] if one["tried"] is not None
    }
    assert tried["vm_dirty_ratio"] not in (None, int(before[0]))
    assert [path.read_text() for path in knobs] == before
