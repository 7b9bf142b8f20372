"""When memory runs out, what ascar has started for trials is killed before all others (oom_score_adj)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ascar.errors import EnvironmentLacks
from ascar.program.running import Program, run_program
from ascar.systems import open_target
from own_servers import server_place

OURS = Path("/proc/self/oom_score_adj")


def adjustments(program: int) -> dict[str, int]:
    """The adjustments of a process and of those that it has started, by process and name."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            before, _, after = (entry / "stat").read_text("utf-8", "replace").rpartition(")")
            if str(program) in (entry.name, after.split()[1]):
                found[before] = int((entry / "oom_score_adj").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("kind", "processes"), [("mariadb", 1), ("postgresql", 4), ("redis", 1), ("ceph", 1)]
)
def test_a_server_and_what_it_starts_go_first(kind: str, processes: int) -> None:
    before = OURS.read_text()
    try:
        target: Any = open_target({"kind": kind})
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
    with server_place(target._account, "ascar-oom-") as folder:
        target = open_target({"kind": kind, "directory": folder})
        with target:
            target.apply(target.space.default())
            for program in target._entered()._processes:
                found = adjustments(program.pid)
                assert len(found) >= processes
                assert set(found.values()) == {1000}, found
    assert OURS.read_text() == before


def test_db_bench_goes_first() -> None:
    try:
        target: Any = open_target({"kind": "rocksdb"})
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
    with server_place(target._account, "ascar-oom-") as folder:
        target = open_target({"kind": "rocksdb", "directory": folder})
        with target:
            target.apply(target.space.default())
            target.workspace.directory.mkdir(exist_ok=True)
            words = ["sh", "-c", "cat /proc/self/oom_score_adj >&2"]
            assert run_program(Program("load", words, 10.0), target.workspace).stderr.strip() == "1000"
