"""Work that is put off: what trials that do not charge for it report, and what trials that do.

    python -m benchmarks.deferred_work --budget 30min        (root)

Pairs of runs of a default and of a configuration that puts work off longer, in turns, on a loop device of so
many reads and writes a second (ext4, or XFS). "Naive" rates are those while the load runs; "charged" ones are
over the time of the load and of the work that it left (`ascar.charging`), of the very same runs. Both are
judged as the last comparison of a study judges them: an always-valid test of the pairs at the level of 1%,
margin 3%.

write-back   transactions that change four pages of a file of 1 GiB and make a record of a log durable;
             `vm.dirty_expire_centisecs` of 3 s against 10 min
dirty limits  a file is written from its begin on, 300 MB a second at most; `vm.dirty_background_ratio` and
             `vm.dirty_ratio` of 10 and 20 against 40 and 60, the ends of what is searched. The load writes
             up to 6 GB: with 40 GB of memory and more it reaches neither limit
log          SQLite in WAL mode, a database of 200 MB; a checkpoint every 100 pages against every 4,000
commit       small files that are created and removed; ext4's `commit=` of 5 s against 60 s
checkpoints  PostgreSQL, pgbench's simple-update on 480 MB; `max_wal_size` of 256 MB and `checkpoint_timeout`
             of 30 s against 64 GB and an hour, the ends of what is searched; "small checkpoints" are those of
             256 MB and of 1 GB on a device twice as fast, whose cycle is short enough for runs of three
dirty pages  MariaDB, updates of indexed columns of 90 MB; dirty pages are flushed from 10% of the buffer pool
             on, against 90%, which the load does not reach
append-only log  Redis with a log, writes over 40 MB of values, which snapshots do not compress; the log is
             rewritten once it has doubled, against never
compaction   RocksDB, random writes over 400 MB with memtables of 4 MB; compactions by themselves against
             none until somebody asks for them, and no slower writes before 512 files of level 0
deferred writes  Ceph, three OSDs, writes of 16 KiB to an image; nothing is put off against writes up to 1 MiB
             that wait in the log of BlueStore for 60 s, or until 2 GiB of them do
... (long)   the same with runs that span three of the longer cycle: what is true, whoever charges
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Benchmark, Piece, called, mean, number, table

from ascar.campaign import take_up
from ascar.catalogues import linux
from ascar.charging import uncharged
from ascar.errors import Refused, StageFailed
from ascar.events import ignore
from ascar.history import History
from ascar.optimizers.proposals import Proposal
from ascar.pilot.turns import Gain, alternating
from ascar.prepared_study import PreparedStudy
from ascar.results.trial import Origin, Purpose
from ascar.study import Study
from ascar.systems.localfs import LocalFileSystem

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

HERE = Path(__file__).parent
LEVEL, MARGIN, PAIRS, LONG_PAIRS = 0.01, 0.03, 6, 3
_IMAGE = os.environ.get("TMPDIR", "/var/tmp")
_WAIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Trap:
    """Two configurations, of which one puts work off longer.

    Attributes:
        default: what they differ in, as the default has it.
        other: the same as the other one has it.
        load_s: length of each load.
        pairs: how many pairs of runs.
        space: the `[space]` table.
        workload: the `[workload]` table.
        iops: the volume's.
        server: the kind of the target whose data lies on that volume; None: the file system itself.
        account: whom the volume belongs to; None: whoever calls.
        fs: the volume's file system; on XFS a server's data is copied for each trial without reading it.
        size: the volume's.
        keys: further keys of the `[target]` table.
    """

    default: Mapping[str, float]
    other: Mapping[str, float]
    load_s: int
    pairs: int
    space: Mapping[str, Any]
    workload: Mapping[str, Any]
    iops: int = 300
    server: str | None = None
    account: str | None = None
    fs: str = "ext4"
    size: str = "2560 MiB"
    keys: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def study(self, target: Mapping[str, Any]) -> Study:
        """The study, whose budget is not used."""
        return Study.of(
            {
                "study": {
                    "name": "deferred",
                    "objective": "maximize throughput_ops_per_s",
                    "budget": "10 h",
                },
                "target": dict(target),
                "space": dict(self.space),
                "workload": dict(self.workload),
                "measurement": {"load_min": f"{self.load_s} s", "load_max": f"{self.load_s} s"},
            }
        )


def _pages(other: int, load_s: int, pairs: int) -> Trap:
    name = "vm_dirty_expire_centisecs"
    return Trap(
        {name: 300},
        {name: other},
        load_s,
        pairs,
        {
            "preset": "storage-v5",
            "allow_cost": ["dyn-kernel"],
            "allow_weaker": ["durability"],
            "parameters": {name: {"values": [300, 2000, 60000], "default": 300}},
        },
        {"kind": "filebench", "wml": str(HERE / "deferred_pages.f")},
        iops=500,
    )


def _dirty_limits(load_s: int, pairs: int) -> Trap:
    default = {"vm_dirty_background_ratio": 10, "vm_dirty_ratio": 20}
    most = {one: linux()[one.replace("_", ".", 1)].search[1] for one in default}
    return Trap(
        default,
        most,
        load_s,
        pairs,
        {
            "preset": "storage-v5",
            "allow_cost": ["dyn-kernel"],
            "parameters": {
                name: {"values": [value, most[name]], "default": value} for name, value in default.items()
            },
        },
        {
            "kind": "fio",
            "options": {"rw": "write", "bs": "1m", "size": "8g", "rate": "300m", "ioengine": "psync"},
        },
        iops=80,
        size="10 GiB",
        keys={"memory": "none"},
    )


def _log(load_s: int, pairs: int) -> Trap:
    return Trap(
        {"wal_autocheckpoint_pages": 100},
        {"wal_autocheckpoint_pages": 4000},
        load_s,
        pairs,
        {"parameters": {"journal_mode": {"default": "WAL"}}},
        {
            "kind": "command",
            "argv": [sys.executable, str(HERE / "deferred_log.py"), "{directory}", "{seconds}"],
            "prepare": [sys.executable, str(HERE / "deferred_log.py"), "{directory}", "fill"],
            "metrics": {"throughput_ops_per_s": "json:throughput_ops_per_s"},
        },
        server="sqlite",
    )


def _commit(load_s: int, pairs: int) -> Trap:
    name = "ext_commit_interval_s"
    return Trap(
        {name: 5},
        {name: 60},
        load_s,
        pairs,
        {"preset": "storage-v5", "allow_cost": ["remount"], "allow_weaker": ["durability"]},
        {"kind": "filebench", "wml": str(HERE / "deferred_files.f")},
        iops=1000,
    )


def _from(default: Mapping[str, float]) -> dict[str, Any]:
    """The `[space]` table of settings that may take a crashed server longer to start, with their defaults."""
    return {
        "allow_weaker": ["availability"],
        "tuned": list(default),
        "parameters": {name: {"default": value} for name, value in default.items()},
    }


def _checkpoints(load_s: int, pairs: int, *, most_mib: int = 65536, iops: int = 2000) -> Trap:
    default = {"max_wal_size": 256, "checkpoint_timeout": 30}
    most = {"max_wal_size": most_mib, "checkpoint_timeout": 3600}
    return Trap(
        default,
        most,
        load_s,
        pairs,
        _from(default),
        {"kind": "pgbench", "script": "simple-update", "scale": 30, "clients": 8},
        iops=iops,
        server="postgresql",
        account="postgres",
        fs="xfs",
    )


def _dirty_pages(load_s: int, pairs: int) -> Trap:
    name = "innodb_max_dirty_pages_pct"
    return Trap(
        {name: 10},
        {name: 90},
        load_s,
        pairs,
        {"tuned": [name, "innodb_io_capacity"], "parameters": {name: {"default": 10}}},
        {"kind": "sysbench", "test": "oltp_update_index", "tables": 4, "rows": 100_000, "clients": 8},
        iops=400,
        server="mariadb",
        account="mysql",
        fs="xfs",
    )


def _append_only_log(load_s: int, pairs: int) -> Trap:
    default = {"auto_aof_rewrite_percentage": 100}
    today = {"appendonly": "yes", "save": "", "auto-aof-rewrite-min-size": 1 << 20, "rdbcompression": "no"}
    return Trap(
        default,
        {"auto_aof_rewrite_percentage": 0},
        load_s,
        pairs,
        _from(default),
        {"kind": "redis-benchmark", "mix": "writes", "keys": 200_000, "pipeline": 16},
        iops=2000,
        server="redis",
        account="redis",
        fs="xfs",
        size="8 GiB",
        keys={"memory": "1 GiB", "settings": today},
    )


def _compaction(load_s: int, pairs: int) -> Trap:
    default = {
        "disable_auto_compactions": False,
        "level0_slowdown_writes_trigger": 20,
        "level0_stop_writes_trigger": 36,
    }
    most = dict(zip(default, (True, 512, 1024), strict=True))
    return Trap(
        default,
        most,
        load_s,
        pairs,
        {
            "tuned": [*default, "write_buffer_size"],
            "parameters": {"write_buffer_size": {"default": 4 << 20}},
        },
        {"kind": "db_bench", "benchmark": "overwrite", "keys": 1_000_000, "value_bytes": 400, "threads": 2},
        iops=2000,
        server="rocksdb",
        account="nobody",
        keys={"parameters": "wide"},
    )


def _deferred_writes(load_s: int, pairs: int) -> Trap:
    default = {
        "bluestore_prefer_deferred_size": 512,
        "bluestore_deferred_batch_ops": 16,
        "bluestore_throttle_deferred_bytes": 128 << 20,
        "bluestore_max_defer_interval": 3.0,
    }
    most = dict(zip(default, (1 << 20, 4096, 2 << 30, 60.0), strict=True))
    image = {"ioengine": "rbd", "rw": "randwrite", "bs": "16k", "size": "256m", "iodepth": 16}
    return Trap(
        default,
        most,
        load_s,
        pairs,
        _from(default),
        {"kind": "fio", "options": image},
        iops=2000,
        server="ceph",
        account="ceph",
        fs="xfs",
        size="8 GiB",
        keys={"parameters": "wide", "memory": "3 GiB"},
    )


TRAPS = {
    "write-back": _pages(60000, 8, PAIRS),
    "dirty limits": _dirty_limits(20, PAIRS),
    "log": _log(8, 2 * PAIRS),
    "commit": _commit(8, PAIRS),
    "checkpoints": _checkpoints(20, PAIRS),
    "dirty pages": _dirty_pages(20, PAIRS),
    "append-only log": _append_only_log(20, PAIRS),
    "compaction": _compaction(20, PAIRS),
    "deferred writes": _deferred_writes(20, PAIRS),
    "small checkpoints": _checkpoints(20, PAIRS, most_mib=1024, iops=4000),
    "log (long)": _log(55, LONG_PAIRS),
    "small checkpoints (long)": _checkpoints(180, LONG_PAIRS, most_mib=1024, iops=4000),
}


@contextmanager
def target_of(trap: Trap) -> Generator[dict[str, Any]]:
    """The `[target]` table: a volume, or a directory on one that is held meanwhile."""
    with tempfile.TemporaryDirectory(dir=_IMAGE) as directory:
        volume: dict[str, Any] = {
            "image": str(Path(directory) / "image"),
            "size": trap.size,
            "iops": trap.iops,
            "file_systems": [trap.fs],
            "user": trap.account,
        }
        if trap.server is None:
            yield {"kind": "localfs", "machine_wide": "settings", **volume, **trap.keys}
            return
        with LocalFileSystem({**volume, "machine_wide": False, "memory": "none"}) as held:
            held.apply(held.space.default())
            held.settle()
            yield {"kind": trap.server, "directory": str(held.workspace.directory), **trap.keys}


@contextmanager
def undisturbed() -> Generator[None]:
    """See that nobody calls sync(2), which writes all that is put off on the machine.

    Raises:
        Disturbed: somebody did.
    """
    with tempfile.TemporaryDirectory() as place:
        called("mount", "-t", "tracefs", "nodev", place)
        try:
            instance = Path(place, "instances", f"ascar-{os.getpid()}")
            instance.mkdir()
            try:
                (instance / "events/syscalls/sys_enter_sync/enable").write_text("1")
                yield
                seen = "sys_sync" in (instance / "trace").read_text()
                (instance / "events/syscalls/sys_enter_sync/enable").write_text("0")
            finally:
                instance.rmdir()
        finally:
            called("umount", place)
    if seen:
        raise Disturbed


class Disturbed(Exception):
    """Another program wrote everything back."""


def one_pair(trap: Trap, index: int) -> dict[str, Any]:
    """A run of each, in turns; a run beside which somebody called sync(2) is made again.

    Raises:
        RuntimeError: a run failed, or nearly all were disturbed, or another study holds `vm.*`.
    """
    again: dict[str, Any] = {"disturbed": 0, "failed": 0}
    found: dict[str, Any] = {}
    deadline_s = time.monotonic() + _WAIT_S
    for side in alternating(index):
        while side not in found:
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"not done within {_WAIT_S:g} s: {again}")
            try:
                found[side] = one_run(trap, trap.other if side == "candidate" else trap.default)
            except Refused as refused:
                if "is locked by" not in refused.message:
                    raise RuntimeError(refused.message) from refused
                time.sleep(1)
            except Disturbed:
                again["disturbed"] += 1
            except StageFailed as failure:
                again["failed"] += 1
                again["why"] = failure.message
    return {**found, **again}


def one_run(trap: Trap, values: Mapping[str, float]) -> dict[str, float]:
    """A run with values of the parameters.

    Raises:
        StageFailed: it failed.
        Refused: another study holds what it needs.
        Disturbed: somebody called sync(2).
    """
    with target_of(trap) as target, tempfile.TemporaryDirectory() as directory:
        prepared = PreparedStudy.open(trap.study(target))
        with (
            History(Path(directory) / "history.sqlite") as history,
            take_up(prepared, history, resume=False, listener=ignore) as campaign,
        ):
            wanted = campaign.prepared.space.default().replaced(**values)
            with undisturbed():
                trial = campaign.attempt(Proposal(wanted, Origin.VERIFICATION), Purpose.VERIFY)
    if trial.score is None:
        failure = trial.failure
        raise StageFailed("run", failure.message if failure else trial.state.value)
    left = {name: value for name, value in trial.metrics.items() if name.startswith("deferred_")}
    return {
        "charged": trial.score,
        "naive": trial.score / uncharged(trial.metrics),
        "load_s": trial.metrics["load_s"],
        **left,
    }


def row(name: str, trap: Trap, pairs: list[dict[str, Any]]) -> list[str]:
    """A line of the table."""
    naive, charged = (
        Gain.of(
            [pair["reference"][kind] for pair in pairs],
            [pair["candidate"][kind] for pair in pairs],
            "maximize",
            LEVEL,
            MARGIN,
        )
        for kind in ("naive", "charged")
    )
    left = [mean([pair[side]["deferred_s"] for pair in pairs]) for side in ("reference", "candidate")]
    return [
        name,
        f"{trap.load_s} s",
        *(number(one) for one in left),
        *(_gain(one) for one in (naive, charged)),
        str(len(pairs)),
    ]


def _gain(gain: Gain) -> str:
    if gain.gain_relative is None or gain.gain_low is None or gain.gain_high is None:
        return "-"
    ends = f"{gain.gain_low:+.1%} to {gain.gain_high:+.1%}"
    return f"{gain.gain_relative:+.1%} ({ends}), {gain.decision}"


def main() -> None:
    """Carry out the pairs that are missing, and print the table."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "30min")
    if os.geteuid() != 0:
        sys.exit("needs root, to format and mount a loop device")
    pieces = {
        (name, index): Piece(f"{name}/{index}", partial(one_pair, trap, index))
        for name, trap in TRAPS.items()
        for index in range(trap.pairs)
    }
    found = benchmark.run(pieces.values())
    pairs: dict[str, list[dict[str, Any]]] = {}
    for (name, _), piece in pieces.items():
        if piece.key in found:
            pairs.setdefault(name, []).append(found[piece.key])
    heads = ["work put off", "load", "left, default", "left, other", "naive gain", "charged gain", "pairs"]
    table(heads, [row(name, TRAPS[name], some) for name, some in pairs.items() if len(some) > 1])


if __name__ == "__main__":
    main()
