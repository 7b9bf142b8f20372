"""Signature workloads: their replay has the features of the original within 10%."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ascar.errors import EnvironmentLacks, InputError
from ascar.features import (
    Trace,
    TraceOperation,
    features_of,
    parse_load_record,
    relative_differences,
    signature_of,
    signature_workload,
)
from ascar.program.node_binary import find_ascard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCAN = "".join(
    f"flowop read name=jump{n},filesetname=table,fd=2,iosize=8k,random\n"
    f"flowop read name=on{n},filesetname=table,fd=2,iosize=8k,iters=3\n"
    for n in range(8)  # so many jumps that their mean is known within a few percent
)

USERS = (
    """
set $size=cvar(type=cvar-gamma,parameters=mean:24k;gamma:2)
define fileset name=mail,path=$dir,size=$size,entries=400,dirwidth=100,prealloc=80
define fileset name=table,path=$dir,size=40m,entries=3,prealloc
define process name=p {
  thread name=user,instances=3 {
    flowop deletefile name=delete,filesetname=mail
    flowop createfile name=create,filesetname=mail,fd=1
    flowop appendfilerand name=append,fd=1,iosize=16k
    flowop fsync name=flush,fd=1
    flowop closefile name=close1,fd=1
    flowop delay name=type,value=0.02
    flowop openfile name=open,filesetname=mail,fd=1
    flowop readwholefile name=read,fd=1,iosize=1m
    flowop closefile name=close2,fd=1
    flowop statfile name=stat,filesetname=mail,iters=3
    flowop delay name=think,value=0.03
  }
  thread name=scan {
"""
    + SCAN
    + """
    flowop write name=update,filesetname=table,fd=3,iosize=4k,random,iters=8
    flowop delay name=rest,value=0.05
  }
}
"""
)

STREAM = """
define fileset name=f,size=300m,prealloc
define process name=p { thread name=t {
  flowop write name=random,filesetname=f,iosize=64k,random
  flowop write name=sequential,filesetname=f,iosize=64k,iters=24
  flowop delay name=compute,value=0.05
} }
"""

HELD = """
define fileset name=log,size=8m,prealloc
define fileset name=data,size=40m,prealloc
define fileset name=index,size=20m,prealloc
define process name=p { thread name=t,instances=2 {
  flowop read name=look,filesetname=index,fd=1,iosize=4k,random,iters=2
  flowop read name=fetch,filesetname=data,fd=2,iosize=8k,random
  flowop read name=more,filesetname=data,fd=2,iosize=8k,iters=3
  flowop write name=log,filesetname=log,fd=3,iosize=4k,iters=2
  flowop write name=update,filesetname=data,fd=2,iosize=8k,random
  flowop delay name=rest,value=0.01
} }
"""


@pytest.fixture
def replay(in_memory: Path | None) -> Iterator[Callable[[str, float], Trace]]:
    """Runs a workload file and gives back its record."""
    try:
        ascard = find_ascard()
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
    with TemporaryDirectory(prefix="ascar-", dir=in_memory) as directory:
        place = Path(directory)

        def run(text: str, seconds: float) -> Trace:
            (place / "load.f").write_text(text)
            words = ["--wml", place / "load.f", "--dir", place, "--seconds", str(seconds)]
            command = [ascard, "load", *words, "--record", place / "record.csv", "--clean"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
            return parse_load_record((place / "record.csv").read_bytes())

        yield run


def far(original: Trace, other: Trace, limit: float = 0.1) -> dict[str, float]:
    """Features further apart than a limit, but for gaps in time, which a busy machine makes longer."""
    differences = relative_differences(features_of(original), features_of(other), share_min=0.02)
    return {
        name: difference
        for name, difference in differences.items()
        if difference > limit and "_gap_s_" not in name
    }


@pytest.mark.slow
@pytest.mark.parametrize("text", [USERS, STREAM, HELD], ids=["users", "stream", "held open"])
def test_the_replay_of_a_load_has_its_features(replay: Callable[[str, float], Trace], text: str) -> None:
    original = replay(text, 5.0)
    assert len(features_of(original)) > 20
    assert far(original, replay(signature_workload(original), 5.0)) == {}


def block_trace(n: int, seed: int) -> Trace:
    """Reads in runs of four 16 KiB requests, random writes of 4 and 8 KiB; 3,000 requests a second."""
    chance = np.random.default_rng(seed)
    is_read = chance.random(n) < 0.7
    sizes = np.where(is_read, 16384, chance.choice([4096, 8192], n))
    run_begins = chance.integers(0, 10_000, n) * 16384
    offsets = np.zeros(n, np.int64)
    offsets[~is_read] = chance.integers(0, 40_000, int((~is_read).sum())) * 4096
    places = np.flatnonzero(is_read)
    in_run = np.arange(len(places)) % 4
    offsets[places] = run_begins[places[np.arange(len(places)) - in_run]] + in_run * 16384
    return Trace.of(
        {
            "seconds": np.cumsum(chance.exponential(1 / 3000, n)),
            "operation": np.where(is_read, TraceOperation.READ, TraceOperation.WRITE),
            "offset_bytes": offsets,
            "size_bytes": sizes,
        }
    )


def test_the_replay_of_a_block_trace_has_its_features(replay: Callable[[str, float], Trace]) -> None:
    original = block_trace(20_000, seed=3)
    assert far(original, replay(signature_workload(original), 4.0)) == {}


def test_a_signature_lasts_half_a_minute_and_says_what_it_is(replay: Callable[[str, float], Trace]) -> None:
    text = signature_workload(block_trace(1000, seed=1))
    assert text.startswith("# A signature")
    assert text.rstrip().endswith("run 25")
    assert replay(text, 0.2).duration_s < 10


def test_file_sets_stay_within_bounds() -> None:
    trace = block_trace(2000, seed=2)
    wide = Trace.of(
        {
            "seconds": trace.seconds,
            "operation": trace.operation,
            "offset_bytes": trace.offset_bytes * 100_000,
            "size_bytes": trace.size_bytes,
        }
    )
    text = signature_workload(wide, file_bytes_max=2**20)
    sizes = [
        int(part.split("size=")[1].split(",")[0]) for part in text.splitlines() if "fileset name" in part
    ]
    assert max(sizes) < 3 * 2**20


def test_the_loop_keeps_the_mix() -> None:
    signature = signature_of(block_trace(5000, seed=4))
    reads = signature.counts[TraceOperation.READ] / signature.length
    assert reads == pytest.approx(0.7, abs=0.02)
    runs = signature.flows[TraceOperation.READ].runs
    assert np.mean([run.operations for run in runs]) == pytest.approx(4, rel=0.15)
    assert sum(run.operations for run in runs) == signature.counts[TraceOperation.READ]


def test_too_short_a_trace_is_refused() -> None:
    with pytest.raises(InputError, match="record for longer"):
        signature_workload(block_trace(20, seed=1))


def test_metadata_alone_has_a_signature(replay: Callable[[str, float], Trace]) -> None:
    kinds = np.tile(
        [TraceOperation.CREATE, TraceOperation.STAT, TraceOperation.DELETE, TraceOperation.SYNC], 100
    )
    seconds = np.arange(400) * 0.002
    original = Trace.of({"seconds": seconds, "operation": kinds, "latency_s": np.full(400, 1e-5)})
    assert far(original, replay(signature_workload(original), 1.5)) == {}
