"""The file sets that a signature workload works on, within bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.features.trace import TraceOperation

if TYPE_CHECKING:
    from ascar.features.signature import Burst, Flow, Signature

FILES_MIN = 64
FILES_MAX = 10_000
NAMES_MAX = 1_000_000
GROWTH = 8
"""Runs for which a file has room at its end, before it is cut back to its size."""
LOGS_BYTES = 64 * 2**20
"""Room at the ends of files that are held open: cutting one back is a jump, which the trace does not have."""
WORDS = {TraceOperation.READ: "read", TraceOperation.WRITE: "write"}


@dataclass(frozen=True, slots=True)
class FileSets:
    """What a signature's loop finds.

    - `files`: for runs that begin in another file;
    - `readjumps`, `writejumps`: for runs that begin by a jump inside their file;
    - `readheld1`, `readheld2`, `writeheld1`, `writeheld2`: files that are open all the time;
    - `names`: files that are made, removed, and asked about.

    Attributes:
        signature: the signature that uses the file sets.
        seconds: the run time of the signature.
        bytes_max: no set gets larger.
    """

    signature: Signature
    seconds: int
    bytes_max: int

    @property
    def synced(self) -> TraceOperation | None:
        """Whose runs flushing goes with: writes where there are any."""
        flows = self.signature.flows
        return TraceOperation.WRITE if TraceOperation.WRITE in flows else next(iter(flows), None)

    def lines(self) -> list[str]:
        """Their definitions."""
        lines = [self._files()] if self.switch_bytes else []
        lines += [self._jumps(kind) for kind, flow in self.signature.flows.items() if flow.some(jumps=True)]
        lines += [self._held(kind, number) for kind in flows_held(self.signature) for number in (1, 2)]
        named = {
            TraceOperation.CREATE,
            TraceOperation.DELETE,
            TraceOperation.STAT,
        } & self.signature.counts.keys()
        if named or (TraceOperation.SYNC in self.signature.counts and self.synced is None):
            lines.append(self._names())
        return lines

    @property
    def switch_bytes(self) -> int:
        """What a file must hold for the runs that open it, and for those that go on in it."""
        opening = self.signature.opening
        longest = {
            kind: max((run.largest_bytes for run in _opening_runs(self.signature, kind)), default=0.0)
            for kind in self.signature.flows
        }
        both = sum(longest.values()) if opening.shared else max(longest.values(), default=0.0)
        return math.ceil(both)

    def log_bytes(self, size_bytes: int) -> int:
        """How large a file of this size grows; its size where nothing is written at ends."""
        writes = self.signature.flows.get(TraceOperation.WRITE)
        longest = max((run.largest_bytes for run in writes.runs if run.grows), default=0.0) if writes else 0.0
        return size_bytes + min(GROWTH * math.ceil(longest), self.bytes_max)

    def held_log_bytes(self, kind: TraceOperation) -> int:
        """How large a file that is held open grows."""
        size = self.held_bytes(kind)
        return max(self.log_bytes(size), size + self._room_bytes(self._held_files(kind)))

    def _room_bytes(self, files: int) -> int:
        return min(LOGS_BYTES, self.bytes_max) // files

    def _held_files(self, kind: TraceOperation) -> int:
        most = self.bytes_max // self.log_bytes(self.held_bytes(kind))
        return max(1, min(self.signature.files // 2, self.signature.threads, most))

    def _jumps_files(self, kind: TraceOperation) -> int:
        most = self.bytes_max // self.log_bytes(self.jumps_bytes(kind))
        return max(1, min(self.signature.files, self.signature.threads, most))

    def held_bytes(self, kind: TraceOperation) -> int:
        """Size of a file that is held open."""
        longest = math.ceil(max(run.largest_bytes for run in self.signature.flows[kind].some(jumps=False)))
        return self.held_span_bytes(kind) + longest

    def entry(self, kind: TraceOperation) -> Burst | None:
        """The run that leads to the file in which those after it jump: the last one in a file held open.

        Without it the first run that is to jump would begin in another file.
        """
        flow = self.signature.flows[kind]
        switching = flow.some(jumps=False)
        held = self.signature.opening.held.get(kind, 0) > 0
        return switching[-1] if held and flow.some(jumps=True) and not switching[-1].grows else None

    def jumps_bytes(self, kind: TraceOperation) -> int:
        """Size of a file for runs that begin by a jump."""
        flow, entry = self.signature.flows[kind], self.entry(kind)
        longest = max(run.largest_bytes for run in flow.runs if run.jumps or run is entry)
        return jump_span_bytes(flow, self.bytes_max) + math.ceil(longest)

    def held_span_bytes(self, kind: TraceOperation) -> int:
        """How far into a file that is held open runs begin: as far as the trace goes, within bounds."""
        longest = math.ceil(max(run.largest_bytes for run in self.signature.flows[kind].some(jumps=False)))
        return max(1, min(round(self.signature.file_bytes), self.bytes_max) - longest)

    def _held(self, kind: TraceOperation, number: int) -> str:
        """One of the two sets that runs of a type go to in turns, so that each begins in another file."""
        size, files = self.held_bytes(kind), self._held_files(kind)
        return f"define fileset name={WORDS[kind]}held{number},path=$dir,size={size},entries={files},prealloc"

    def _files(self) -> str:
        """As many bytes as the trace touched, but so many files that a run hardly meets the same again."""
        size = self.switch_bytes
        touched = round(self.signature.files * self.signature.file_bytes / size)
        files = max(FILES_MIN, min(touched, self.signature.files, FILES_MAX))
        files = max(2, min(files, self.bytes_max // self.log_bytes(size)))
        return f"define fileset name=files,path=$dir,size={size},entries={files},dirwidth=100,prealloc"

    def _jumps(self, kind: TraceOperation) -> str:
        size, files = self.jumps_bytes(kind), self._jumps_files(kind)
        return f"define fileset name={WORDS[kind]}jumps,path=$dir,size={size},entries={files},prealloc"

    def _names(self) -> str:
        """A set that neither runs full nor empty within twice the run."""
        signature = self.signature
        creates = signature.counts.get(TraceOperation.CREATE, 0)
        deletes = signature.counts.get(TraceOperation.DELETE, 0)
        loops = 2 * self.seconds * signature.operations_per_s / signature.length
        drift = math.ceil(abs(creates - deletes) * loops)
        spare = 4 * signature.threads * (creates + deletes + 1) + 100
        absent = spare + (drift if creates > deletes else 0)
        present = spare + (drift if deletes > creates else 0)
        size = max(round(signature.file_bytes), self.switch_bytes) if signature.opening.created else 0
        entries = max(2 * spare, min(absent + present, NAMES_MAX, self.bytes_max // max(size, 1)))
        percent = 100 * present / (absent + present)
        attributes = f"size={size},entries={entries},dirwidth=1000,prealloc={percent:.3f}"
        return f"define fileset name=names,path=$dir,{attributes}"


def flows_held(signature: Signature) -> list[TraceOperation]:
    """Types of operation some of whose runs go to files that are held open."""
    return [kind for kind in signature.flows if signature.opening.held.get(kind, 0) > 0]


def _opening_runs(signature: Signature, kind: TraceOperation) -> tuple[Burst, ...]:
    """The runs of a type that open a file, or go on with one that another has opened: the first ones."""
    runs = signature.flows[kind].some(jumps=False)
    return runs[: len(runs) - signature.opening.held.get(kind, 0)]


def jump_span_bytes(flow: Flow, bytes_max: int) -> int:
    """How far into a file random jumps go, so that they have the mean size asked for; at most `bytes_max`.

    With begins uniform in [0, W] and runs of R bytes between them, a jump is |X - Y - R|, whose mean is
    W/3 + R^2/W - R^3/(3 W^2) for R <= W. It is hardly smaller than 0.6 R, near W = 1.3 R.
    """
    jumping = flow.some(jumps=True)
    run = sum(run.operations * run.size.mean_bytes for run in jumping) / len(jumping)

    def mean(span: float) -> float:
        return span / 3 + run**2 / span - run**3 / (3 * span**2)

    low, high = 1.3 * run, max(4 * flow.jump_bytes, 4 * run)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < flow.jump_bytes else (low, middle)
    return min(math.ceil(high), bytes_max)
