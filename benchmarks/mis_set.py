"""Servers that begin with one wrong setting: how much of what it costs a study wins back.

    python -m benchmarks.mis_set --budget 45min        (root, for a memory limit)

Each server starts with a setting that is wrong for its load, and a study of a few minutes searches
that setting among others. Then the wrong configuration, the right one and the recommended one run in turns,
each for the length of a trial and charged for what it leaves undone (`ascar.charging`). Won back is what the
recommended configuration has over the wrong one, of what the right one has: from the means of all turns,
with a 95% interval by the delta method. The goal is 90%.

sorts        PostgreSQL, sorts of 100,000 numbers: `work_mem` of 256 kB; 64 MB is right
full pages   PostgreSQL, updates of random rows soon after a checkpoint, on a volume of 1,000 reads and
             writes a second of at most 16 KiB each: `wal_compression` off; lz4 is right
buffers      PostgreSQL in 256 MiB of memory, look-ups in data of 640 MB: `shared_buffers` of 16 MB; 128 MB
lists        Redis, hashes of 1,000 fields: `hash-max-listpack-entries` of 65,536, so that each is a list; 128
threads      Redis, strings on processors that are busy as it is: `io-threads` of 2; 1
pool         MariaDB, `oltp_read_write` on tables of 100 MB: `innodb_buffer_pool_size` of 16 MB; 256 MB
memtables    RocksDB, random writes over 400 MB: `write_buffer_size` of 1 MB; 64 MB
read-ahead   Linux, streams by reads of 4 KiB on a volume of 1,000 reads a second: `read_ahead_kb` of 4; 1,024
logging      Ceph, 4 KiB objects written: `debug_osd` of 20/20; 0/0
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Benchmark, Piece, mean, number, percent, share_of, table
from benchmarks.volumes import READ_LIMIT, ext4_volume

import ascar
from ascar.campaign import take_up
from ascar.events import ignore
from ascar.history import History
from ascar.optimizers.proposals import Proposal
from ascar.prepared_study import PreparedStudy
from ascar.results.trial import Origin, Purpose
from ascar.study import Study
from ascar.systems.kernel_parameters import Devices
from ascar.systems.localfs import LocalFileSystem

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

HERE = Path(__file__).parent
TURNS, ATTEMPTS = 8, 3
_FOLDER = os.environ.get("TMPDIR", "/var/tmp")


@dataclass(frozen=True, slots=True)
class MisSet:
    """A server with a wrong setting.

    Attributes:
        parameter: the setting.
        wrong: its value at the start.
        right: the value that is known to be right for the load.
        tuned: the settings that are searched with it.
        target: the `[target]` table.
        workload: the `[workload]` table.
        iops: the reads and the writes a second, each of at most 16 KiB, of a volume for PostgreSQL's data; or
            the reads a second of the application's volume. 0: no volume.
        load_s: the length of each load.
        budget_s: the budget of the study.
    """

    parameter: str
    wrong: int | str
    right: int | str
    tuned: tuple[str, ...]
    target: Mapping[str, Any]
    workload: Mapping[str, Any]
    iops: int = 0
    load_s: int = 4
    budget_s: int = 240

    @property
    def place(self) -> str:
        """The key of `[target]` that names the directory: of the server, or of an application."""
        return "path" if self.target["kind"] == "linux" else "directory"

    def study(self, directory: str) -> Study:
        """The study, whose server or whose application lies below a directory."""
        tables: dict[str, Any] = {
            "study": {
                "name": "mis-set",
                "objective": "maximize throughput_ops_per_s",
                "budget": f"{self.budget_s} s",
                "seed": 1,
            },
            "target": {**self.target, self.place: directory},
            "workload": dict(self.workload),
            "space": {
                "tuned": [self.parameter, *self.tuned],
                "parameters": {self.parameter: {"default": self.wrong}},
            },
            "measurement": {"load_min": f"{max(2, self.load_s // 2)} s", "load_max": f"{self.load_s} s"},
        }
        return Study.of(tables)


def _postgresql(script: str, scale: int, clients: int) -> dict[str, Any]:
    path = str(HERE / script) if script.endswith(".sql") else script
    return {"kind": "pgbench", "script": path, "scale": scale, "clients": clients}


CASES = {
    "sorts": MisSet(
        "work_mem",
        256,
        65536,
        ("random_page_cost", "effective_io_concurrency", "jit"),
        {"kind": "postgresql", "memory": "8 GiB"},
        _postgresql("mis_set_sorts.sql", 5, 2),
        load_s=6,
    ),
    "full pages": MisSet(
        "wal_compression",
        "off",
        "lz4",
        ("wal_writer_delay", "commit_delay", "bgwriter_lru_maxpages"),
        {"kind": "postgresql", "memory": "1 GiB"},
        _postgresql("simple-update", 10, 8),
        iops=1000,
        load_s=8,
        budget_s=480,
    ),
    "buffers": MisSet(
        "shared_buffers",
        16384,
        131072,
        ("work_mem", "effective_io_concurrency", "backend_flush_after"),
        {"kind": "postgresql", "memory_limit": "256 MiB", "max_connections": 10},
        _postgresql("mis_set_buffers.sql", 40, 4),
        load_s=8,
        budget_s=480,
    ),
    "lists": MisSet(
        "hash_max_listpack_entries",
        65536,
        128,
        ("hz", "activerehashing", "latency_tracking"),
        {"kind": "redis", "memory": "1 GiB", "settings": {"save": ""}},
        {"kind": "redis-benchmark", "mix": "hashes", "keys": 1_000_000, "value_bytes": 20, "pipeline": 8},
        load_s=3,
        budget_s=180,
    ),
    "threads": MisSet(
        "io_threads",
        2,
        1,
        ("hz", "activerehashing", "latency_tracking"),
        {"kind": "redis", "memory": "1 GiB", "settings": {"save": ""}},
        {"kind": "redis-benchmark", "keys": 100_000, "pipeline": 1},
        load_s=3,
        budget_s=180,
    ),
    "pool": MisSet(
        "innodb_buffer_pool_size",
        16 << 20,
        256 << 20,
        ("innodb_io_capacity", "innodb_flush_neighbors", "table_open_cache", "sort_buffer_size"),
        {"kind": "mariadb", "memory": "1 GiB", "max_connections": 50},
        {"kind": "sysbench", "tables": 4, "rows": 100_000, "clients": 8},
        load_s=5,
        budget_s=300,
    ),
    "memtables": MisSet(
        "write_buffer_size",
        1 << 20,
        64 << 20,
        ("max_background_jobs", "target_file_size_base", "max_subcompactions", "bytes_per_sync"),
        {"kind": "rocksdb", "memory": "1 GiB"},
        {"kind": "db_bench", "benchmark": "overwrite", "keys": 1_000_000, "value_bytes": 400, "threads": 2},
        load_s=5,
        budget_s=240,
    ),
    "read-ahead": MisSet(
        "block_read_ahead_kb",
        4,
        1024,
        ("block_nomerges", "block_rq_affinity", "ext4_mb_stream_req"),
        {"kind": "linux"},
        {
            "kind": "command",
            "argv": [sys.executable, str(HERE / "mis_set_streams.py"), "{directory}", "{seconds}"],
            "prepare": [sys.executable, str(HERE / "mis_set_streams.py"), "{directory}", "fill"],
            "metrics": {"throughput_ops_per_s": "json:throughput_ops_per_s"},
        },
        iops=1000,
        load_s=6,
        budget_s=240,
    ),
    "logging": MisSet(
        "debug_osd",
        "20/20",
        "0/0",
        ("debug_bluestore", "debug_bdev", "osd_op_num_shards", "bluestore_throttle_bytes"),
        {"kind": "ceph", "memory": "3 GiB", "replicas": 1, "settings": {"debug_osd": "20/20"}},
        {"kind": "rados-bench", "objects": 2000},
        load_s=5,
        budget_s=480,
    ),
}


@contextmanager
def below(case: MisSet) -> Generator[str]:
    """A directory that the server's account can reach, with a path short enough for a socket; or a volume."""
    with tempfile.TemporaryDirectory(prefix="mis-", dir=_FOLDER) as folder:
        Path(folder).chmod(0o1777)
        if case.place == "path":
            with ext4_volume(Path(folder), 300 << 20, {READ_LIMIT: case.iops}) as place:
                disk = Devices.below(place).disk
                Path(f"/sys/block/{disk}/queue/read_ahead_kb").write_text(str(case.wrong))
                yield str(place)
            return
        if not case.iops:
            yield folder
            return
        volume: dict[str, Any] = {"image": f"{folder}/image", "iops": case.iops, "file_systems": ["xfs"]}
        with LocalFileSystem({**volume, "user": "postgres", "machine_wide": False, "memory": "none"}) as held:
            held.apply(held.space.default())
            Path(f"/sys/block/{held.device}/queue/max_sectors_kb").write_text("16")
            held.settle()
            yield str(held.workspace.directory)


def tuned(case: MisSet) -> dict[str, Any]:
    """What the study comes to.

    Raises:
        RuntimeError: it recommends nothing.
    """
    begun_s = time.monotonic()
    with below(case) as folder, History(Path(folder) / "history.sqlite") as history:
        outcome = ascar.tune(case.study(folder), history=history, progress=False)
    if outcome.recommended is None:
        raise RuntimeError(f"the study recommends nothing: {outcome.verdict}")
    return {
        "recommended": dict(outcome.recommended),
        "verdict": outcome.verdict.kind,
        "gain": outcome.verdict.gain_relative,
        "trials": len(outcome.trials),
        "seconds": time.monotonic() - begun_s,
    }


def in_turns(case: MisSet, recommended: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of the three configurations, turn by turn; a run that failed is made again.

    Raises:
        RuntimeError: a run failed each time.
    """
    scores: dict[str, list[float]] = {}
    with below(case) as folder:
        prepared = PreparedStudy.open(case.study(folder))
        with (
            History(Path(folder) / "history.sqlite") as history,
            take_up(prepared, history, resume=False, listener=ignore) as campaign,
        ):
            space = campaign.prepared.space
            wrong = space.default()
            sides = {
                "wrong": wrong,
                "right": space.nearest({**wrong, case.parameter: case.right}),
                "recommended": space.nearest(recommended),
            }
            for turn in range(TURNS):
                names = list(sides) if turn % 2 == 0 else list(reversed(sides))
                for name in names:
                    proposal = Proposal(sides[name], Origin.VERIFICATION)
                    for _ in range(ATTEMPTS):
                        trial = campaign.attempt(proposal, Purpose.VERIFY)
                        if trial.score is not None:
                            break
                    else:
                        raise RuntimeError(trial.failure.message if trial.failure else trial.state.value)
                    scores.setdefault(name, []).append(trial.score)
    return {"scores": scores}


def row(name: str, case: MisSet, study: Mapping[str, Any], scores: Mapping[str, list[float]]) -> list[str]:
    """A line of the table."""
    wrong, right, found = (scores[side] for side in ("wrong", "right", "recommended"))
    won = [a - b for a, b in zip(found, wrong, strict=True)]
    lost = [a - b for a, b in zip(right, wrong, strict=True)]
    said = f"`{case.parameter}` {case.wrong}, {case.right}, {study['recommended'][case.parameter]}"
    return [
        name,
        said,
        *(number(mean(side)) for side in (wrong, right, found)),
        percent(share_of(won, lost), 0),
        f"{study['verdict']}, {study['seconds'] / 60:.1f} min, {study['trials']} trials",
    ]


def main() -> None:
    """Carry out what is missing, and print the table."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "45min")
    if os.geteuid() != 0:
        sys.exit("needs root, to limit the memory of a server")
    end_s = time.monotonic() + benchmark.budget_s
    rows: list[list[str]] = []
    for name, case in CASES.items():
        benchmark.budget_s = end_s - time.monotonic()
        key = f"{name}/study"
        study = benchmark.run([Piece(key, partial(tuned, case))]).get(key)
        if study is None:
            continue
        benchmark.budget_s = end_s - time.monotonic()
        key = f"{name}/turns"
        turns = benchmark.run([Piece(key, partial(in_turns, case, study["recommended"]))]).get(key)
        if turns is not None:
            rows.append(row(name, case, study, turns["scores"]))
    heads = ["case", "wrong, right, recommended", "wrong, per s", "right", "recommended", "won back", "study"]
    table(heads, rows)


if __name__ == "__main__":
    main()
