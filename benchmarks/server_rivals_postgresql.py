"""PostgreSQL among rivals: pgbench's short transactions and sorts, pgtune's formula, a profile of TuneD.

pgtune: https://github.com/le0pard/pgtune, `src/features/configuration/configurationSlice.js`, as of 2026.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ascar.systems.postgresql import PostgreSQL

from .server_rivals_testbed import CLIENTS, FillKept, RivalServer
from .server_rivals_tuned import TUNED, left_out
from .server_rivals_turns import Contender

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Space, Value

    from .server_rivals_testbed import Scale

GIB_KIB, MIB_KIB = 2**20, 2**10
CONNECTIONS = 20
PGTUNE, TUNED_PROFILE = "pgtune", "TuneD"
SORT = Path(__file__).with_name("server_rivals_sort.sql")
_MIB_PER_SCALE = 15
_SORTED = 40_000
_PER_SCALE = 100_000


class FilledPostgreSQL(FillKept, PostgreSQL):
    """PostgreSQL whose fill is kept for the next study."""

    kind = "postgresql-filled"


class RivalPostgreSQL(RivalServer):
    """PostgreSQL under short transactions like TPC-B, and under sorts."""

    name, kind, filled = "PostgreSQL", "postgresql", FilledPostgreSQL
    loads = ("tpcb", "sort")
    options: ClassVar[Mapping[str, Any]] = {"max_connections": CONNECTIONS}

    def workload(self, load: str, scale: Scale, directory: Path) -> dict[str, Any]:
        """Pgbench with its own script, or with one that sorts."""
        script = "tpcb-like" if load == "tpcb" else str(directory / "sort.sql")
        return {"kind": "pgbench", "scale": _accounts(scale), "clients": CLIENTS, "script": script}

    def make_files(self, scale: Scale, directory: Path) -> None:
        """The script that sorts."""
        last = str(_accounts(scale) * _PER_SCALE - _SORTED)
        (directory / "sort.sql").write_text(SORT.read_text().replace("LAST", last))

    def advised(
        self,
        space: Space,
        scale: Scale,
        load: str,
        told: Mapping[str, Any] | None,  # noqa: ARG002
    ) -> list[Contender]:
        """Pgtune's formula, and TuneD's profile with the server as it is."""
        processors = os.cpu_count() or 1
        advice = pgtune(scale.memory_mib * 1024, CONNECTIONS, processors, warehouse=load == "sort")
        missing = ", ".join(left_out())
        note = f"in force: {', '.join((*TUNED, 'read-ahead'))}" + (f"; not: {missing}" if missing else "")
        return [
            Contender.advised(PGTUNE, space, advice),
            Contender(TUNED_PROFILE, space.default(), is_tuned=True, note=note),
        ]


def _accounts(scale: Scale) -> int:
    """Pgbench's scale."""
    return scale.data_mib // _MIB_PER_SCALE


def pgtune(memory_kib: int, connections: int, processors: int, *, warehouse: bool) -> dict[str, Value]:
    """The advice of pgtune for PostgreSQL 15 to 17 on Linux and an SSD, for data larger than the memory.

    Settings that it leaves at the server's defaults are left out, and so is `max_connections`, a given.

    Args:
        memory_kib: the memory of the machine.
        connections: the connections of the server.
        processors: the processors of the machine; below four it says nothing of parallel workers.
        warehouse: whether the type is "Data warehouse"; else it is "Online transaction processing".
    """
    shared = memory_kib // 4
    workers = processors if processors >= 4 else 8
    per_sort = (memory_kib - shared) / ((connections + workers) * 3)
    sort = int(int(per_sort / 2 if warehouse else per_sort) * 0.9)
    wal_buffers = min(3 * shared // 100, 16 * MIB_KIB)
    if 14 * MIB_KIB < wal_buffers < 16 * MIB_KIB:
        wal_buffers = 16 * MIB_KIB
    advice: dict[str, Value] = {
        "shared_buffers": shared,
        "effective_cache_size": memory_kib * 3 // 4,
        "maintenance_work_mem": min(memory_kib // (8 if warehouse else 16), 8 * GIB_KIB),
        "checkpoint_completion_target": 0.9,
        "wal_buffers": max(wal_buffers, 32),
        "random_page_cost": 4.0 if warehouse else 1.1,
        "effective_io_concurrency": 200,
        "work_mem": max(sort, 4 * MIB_KIB),
        "huge_pages": "try" if shared >= 2 * GIB_KIB else "off",
        "max_wal_size": 16384 if warehouse else 8192,
        "min_wal_size": 4096 if warehouse else 2048,
        "wal_compression": "lz4",
    }
    if warehouse:
        advice["default_statistics_target"] = 500
    else:
        advice["jit"] = False
    if processors >= 4:
        half = (processors + 1) // 2
        advice |= {
            "max_worker_processes": processors,
            "max_parallel_workers": processors,
            "max_parallel_workers_per_gather": half if warehouse else min(half, 4),
            "max_parallel_maintenance_workers": min(half, 4),
        }
    return advice
