"""What a signature workload reproduces of a trace (Li, sections 3.1.6, 3.1.7): one loop of operations.

A loop holds a hundred or so operations in the proportion of the trace. Reads and writes come in runs without
a gap; a run begins by a jump in the file or in another file, as often as in the trace. What a loop takes
longer in the trace than its operations do is time to think, spread over the loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import InputError
from ascar.features.gaps import positional_gaps
from ascar.features.signature_growth import growing_share
from ascar.features.signature_opening import opening_of
from ascar.features.trace import DATA, MIX, TraceOperation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.features.gaps import PositionalGaps
    from ascar.features.signature_opening import Opening
    from ascar.features.trace import Trace

OPERATIONS_MIN = 50
LOOPS = (20, 40, 60, 100, 150, 200, 300, 500, 1000, 2000, 5000, 10_000, 30_000, 100_000)
"""Lengths of a loop that are tried, in operations."""
LOOP_S_MAX = 1.0
"""Loops are gone round many times in a signature's half minute."""
PIECES_MAX = 300
"""Runs and single operations of a loop."""
SHARE_MIN = 0.005
"""Types that make up less are left out."""
THREADS_MAX = 256
HISTOGRAMS_MAX = 20_000
"""Threads times steps of the loop: each holds a histogram of some 5 KB."""


@dataclass(frozen=True, slots=True)
class Size:
    """Sizes of the requests of some runs: constant, or a gamma distribution.

    Attributes:
        mean_bytes: the mean size.
        deviation_bytes: the standard deviation of the sizes; 0: all sizes are equal.
        round_bytes: all are multiples of this.
    """

    mean_bytes: float
    deviation_bytes: float
    round_bytes: int

    @property
    def largest_bytes(self) -> float:
        """Hardly any request is larger."""
        return self.mean_bytes + 6 * self.deviation_bytes


@dataclass(frozen=True, slots=True)
class Burst:
    """Operations without a gap.

    Attributes:
        operations: the number of operations.
        jumps: whether the run begins by a jump inside the file; otherwise it begins in another file.
        size: the sizes of its requests.
        grows: whether the run begins at its file's end, which is not where a file just made is filled.
    """

    operations: int
    jumps: bool
    size: Size
    grows: bool = False

    @property
    def largest_bytes(self) -> float:
        """Hardly ever is it longer."""
        spread = 6 * math.sqrt(self.operations) * self.size.deviation_bytes
        return self.operations * self.size.mean_bytes + spread


@dataclass(frozen=True, slots=True)
class Flow:
    """The reads, or the writes, of a loop.

    Attributes:
        runs: the runs; those that begin in another file come first.
        jump_bytes: mean size of a jump.
    """

    runs: tuple[Burst, ...]
    jump_bytes: float

    def some(self, *, jumps: bool) -> tuple[Burst, ...]:
        """The runs that begin by a jump, or those that do not."""
        return tuple(run for run in self.runs if run.jumps is jumps)


@dataclass(frozen=True, slots=True)
class Signature:
    """A loop that each of some threads goes round.

    Attributes:
        threads: the number of threads.
        counts: operations of each type in a loop.
        flows: the flows of reads and of writes, where there are any.
        opening: the way in which runs come to their files.
        files: different files that are read or written.
        file_bytes: mean extent of these files, as far as they were touched.
        think_s: time in a loop in which nothing is asked for; None where latencies are not known.
        operations_per_s: the rate of all threads together.
    """

    threads: int
    counts: Mapping[TraceOperation, int]
    flows: Mapping[TraceOperation, Flow]
    opening: Opening
    files: int
    file_bytes: float
    think_s: float | None
    operations_per_s: float

    @property
    def length(self) -> int:
        """Operations of a loop."""
        return sum(self.counts.values())


def signature_of(trace: Trace) -> Signature:
    """The signature of a trace.

    Raises:
        InputError: it holds too few operations.
    """
    mixed = trace.only(*MIX)
    if len(mixed) < OPERATIONS_MIN or mixed.duration_s <= 0:
        raise InputError(
            f"the trace holds {len(mixed)} operations in {mixed.duration_s:.3g} s; a signature needs at "
            f"least {OPERATIONS_MIN}: record for longer"
        )
    totals = {operation: int(np.sum(mixed.operation == operation)) for operation in MIX}
    kept = {operation: n for operation, n in totals.items() if n >= SHARE_MIN * len(mixed)}
    threads = min(len(np.unique(mixed.thread)), THREADS_MAX)
    rate = sum(kept.values()) / mixed.duration_s
    gaps = {operation: positional_gaps(mixed.only(operation)) for operation in DATA if operation in kept}
    runs = {operation: len(found.run_bytes) for operation, found in gaps.items()}
    pieces_max = min(PIECES_MAX, HISTOGRAMS_MAX // threads)
    loop = _loop(kept, runs, round(LOOP_S_MAX * rate / threads), pieces_max)
    counts = loop.counts
    flows = {o: _flow(mixed.only(o), found, counts[o], loop.runs[o]) for o, found in gaps.items()}
    busy_s = sum(count * _latency_s(trace.only(operation)) for operation, count in counts.items())
    loop_s = threads * sum(counts.values()) / rate
    opens = int(np.sum(np.isin(trace.operation, (TraceOperation.OPEN, TraceOperation.CREATE))))
    opening = opening_of(
        {operation: len(flow.some(jumps=False)) for operation, flow in flows.items()},
        counts.get(TraceOperation.CREATE, 0),
        round(opens * sum(counts.values()) / sum(kept.values())),
    )
    data = mixed.only(*DATA)
    if opening.created:
        flows[TraceOperation.WRITE] = _filling(
            flows[TraceOperation.WRITE], opening.created, _first_sizes(trace)
        )
    if TraceOperation.WRITE in flows:
        share = growing_share(trace, gaps[TraceOperation.WRITE])
        flows[TraceOperation.WRITE] = _growing(flows[TraceOperation.WRITE], opening.created, share)
    return Signature(
        threads=threads,
        counts=counts,
        flows=flows,
        opening=opening,
        files=max(1, len(np.unique(data.file))),
        file_bytes=_extent_bytes(data),
        think_s=None if math.isnan(busy_s) else max(0.0, loop_s - busy_s - _opening_s(trace, opening)),
        operations_per_s=rate,
    )


@dataclass(frozen=True, slots=True)
class _Loop:
    """A length of the loop that is tried.

    Attributes:
        counts: operations of each type.
        runs: runs of the types that come in runs.
        error: the greatest relative deviation of shares and run lengths from the trace's.
    """

    counts: dict[TraceOperation, int]
    runs: dict[TraceOperation, int]
    error: float

    @property
    def pieces(self) -> int:
        """Steps that the loop comes to, roughly."""
        return sum(self.runs.get(operation, count) for operation, count in self.counts.items())


def _loop(
    totals: Mapping[TraceOperation, int], runs: Mapping[TraceOperation, int], longest: int, pieces_max: int
) -> _Loop:
    """The shortest loop that gives shares and lengths of runs within 3%, else the closest within bounds."""
    tried: list[_Loop] = []
    for length in LOOPS:
        loop = _tried(totals, runs, length)
        if tried and (length > longest or loop.pieces > pieces_max):
            break
        tried.append(loop)
        if loop.error <= 0.03:
            return loop
    return min(tried, key=lambda one: one.error)


def _tried(totals: Mapping[TraceOperation, int], runs: Mapping[TraceOperation, int], length: int) -> _Loop:
    whole = sum(totals.values())
    counts = {operation: max(1, round(length * n / whole)) for operation, n in totals.items()}
    made = {
        operation: max(1, round(counts[operation] * n / totals[operation])) for operation, n in runs.items()
    }
    scale = sum(counts.values()) / whole
    errors = [abs(counts[operation] / (n * scale) - 1) for operation, n in totals.items()]
    errors += [
        abs(made[operation] / counts[operation] * totals[operation] / n - 1) for operation, n in runs.items()
    ]
    return _Loop(counts, made, max(errors))


def _flow(part: Trace, gaps: PositionalGaps, count: int, number: int) -> Flow:
    jumping = round(number * float(np.mean(gaps.jumps)))
    sizes = _sizes(part.size_bytes, number)
    # Sizes and lengths of runs ascend in different orders, so that neither goes with the other.
    runs = [
        Burst(count // number + (place < count % number), place >= number - jumping, sizes[order])
        for place, order in enumerate(_scattered(number))
    ]
    jump_bytes = float(np.mean(gaps.jump_bytes)) if len(gaps.jump_bytes) else 0.0
    return Flow(tuple(runs), jump_bytes)


def _filling(flow: Flow, created: int, wanted: NDArray[np.int64]) -> Flow:
    """The flow with sizes like those wanted in the first runs, which fill files just made.

    Sizes change places only. What fills files takes room, and what is written in others may not.
    """
    if len(wanted) == 0:
        return flow
    switching = flow.some(jumps=False)
    left = sorted((run.size for run in switching), key=lambda size: size.mean_bytes)
    quantiles = np.quantile(wanted, (np.arange(created) + 0.5) / created)
    sizes = [left.pop(int(np.argmin([abs(size.mean_bytes - one) for size in left]))) for one in quantiles]
    sizes += [left[place] for place in _scattered(len(left))]
    runs = [replace(run, size=size) for run, size in zip(switching, sizes, strict=True)]
    return Flow((*runs, *flow.some(jumps=True)), flow.jump_bytes)


def _growing(flow: Flow, created: int, share: float) -> Flow:
    """The flow with as many runs at their file's end as in the trace; the first ones fill files just made."""
    switching = flow.some(jumps=False)
    runs = (*switching[:created], *_some_grow(switching[created:], share), *flow.some(jumps=True))
    return Flow(runs, flow.jump_bytes)


def _some_grow(runs: tuple[Burst, ...], share: float) -> list[Burst]:
    number = round(share * len(runs))
    grow = [(place + 1) * number // len(runs) > place * number // len(runs) for place in range(len(runs))]
    return [replace(run, grows=grows) for run, grows in zip(runs, grow, strict=True)]


def _first_sizes(trace: Trace) -> NDArray[np.int64]:
    """Sizes of the writes to files that were made, and not opened again since."""
    order = np.lexsort((np.arange(len(trace)), trace.file))
    operation, file = trace.operation[order], trace.file[order]
    begins = np.isin(operation, (TraceOperation.CREATE, TraceOperation.OPEN))
    begins[1:] |= file[1:] != file[:-1]
    latest = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    made = operation[latest] == TraceOperation.CREATE
    return trace.size_bytes[order][made & (operation == TraceOperation.WRITE)]


def _sizes(sizes: NDArray[np.int64], number: int) -> list[Size]:
    """Sizes cut into so many equal parts in ascending order, each told by its mean and deviation."""
    rounded = 512 if bool(np.all(sizes % 512 == 0)) else 1
    found: list[Size] = []
    for part in np.array_split(np.sort(sizes).astype(np.float64), number):
        mean, deviation = float(np.mean(part)), float(np.std(part))
        found.append(Size(mean, deviation if deviation > 0.05 * mean else 0.0, rounded))
    return found


def _scattered(number: int) -> list[int]:
    """0, ..., number - 1 in an order without trend: steps of the golden section."""
    keys = [(place * 0.6180339887498949) % 1.0 for place in range(number)]
    return sorted(range(number), key=keys.__getitem__)


def _extent_bytes(data: Trace) -> float:
    """How far into a file the furthest operation on it reaches, on average over the files."""
    if len(data) == 0:
        return 0.0
    _, place = np.unique(data.file, return_inverse=True)
    extent = np.zeros(int(place.max()) + 1)
    np.maximum.at(extent, place, (data.offset_bytes + data.size_bytes).astype(np.float64))
    return float(np.mean(extent))


def _latency_s(part: Trace) -> float:
    """Mean latency; nan where none is known."""
    return float(np.mean(part.latency_s)) if len(part) else 0.0


def _opening_s(trace: Trace, opening: Opening) -> float:
    """Time that opening and closing files takes in a loop; the making of files is counted elsewhere."""
    times = {
        TraceOperation.OPEN: opening.opened - opening.created,
        TraceOperation.CLOSE: opening.opened + opening.lone,
    }
    known = [(number, _latency_s(trace.only(operation))) for operation, number in times.items()]
    return sum(number * latency for number, latency in known if not math.isnan(latency))
