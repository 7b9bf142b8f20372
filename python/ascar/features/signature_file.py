"""A signature workload: a file in Filebench's language, of some 25 s, that reproduces a trace's features."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ascar.features.signature import signature_of
from ascar.features.signature_filesets import WORDS, FileSets, jump_span_bytes
from ascar.features.trace import TraceOperation

if TYPE_CHECKING:
    from ascar.features.signature import Burst, Flow, Signature, Size
    from ascar.features.trace import Trace

RUN_S = 25
FILE_BYTES_MAX = 8 * 2**30
PAUSE_S_MIN = 0.01
"""Shorter pauses are gathered into fewer: a sleep ends late by some 0.1 ms on a busy machine."""
_AIDS = ("flowop openfile", "flowop closefile")
"""Steps that the trace's mix does not count."""
NAMES = "filesetname=names"
_SLOTS = {TraceOperation.READ: 1, TraceOperation.WRITE: 2}
_HELD_SLOTS = {TraceOperation.READ: 6, TraceOperation.WRITE: 8}


def signature_workload(trace: Trace, *, seconds: int = RUN_S, file_bytes_max: int = FILE_BYTES_MAX) -> str:
    """The workload file that reproduces a trace's operation mix, sizes, positional and temporal gaps.

    Of positional and temporal gaps the means are reproduced, of sizes the deviation too.

    Args:
        trace: the trace of a block device, a record of `ascard load`, or a sampled process.
        seconds: the run time that the file states.
        file_bytes_max: no file set gets larger; jumps that need more room become shorter than in the trace.

    Raises:
        InputError: the trace holds too few operations.
    """
    return _Writer(signature_of(trace), seconds, file_bytes_max).text()


_FILESET = re.compile(r"^define fileset .*?size=(\d+),entries=(\d+).*?prealloc(?:=([0-9.]+))?$", re.MULTILINE)


def filled_bytes(wml: str) -> int:
    """The bytes of the files that a workload of `signature_workload` makes before it begins."""
    return sum(
        round(int(size) * int(entries) * float(percent or 100) / 100)
        for size, entries, percent in _FILESET.findall(wml)
    )


class _Writer:
    """Writes a signature down."""

    def __init__(self, signature: Signature, seconds: int, file_bytes_max: int) -> None:
        self.signature = signature
        self.seconds = seconds
        self.filesets = FileSets(signature, seconds, file_bytes_max)
        self._number = 0
        self._shared: list[list[str]] = []
        self._sizes: list[str] = []

    def text(self) -> str:
        """The file."""
        signature = self.signature
        pieces = self._pieces()
        lines = [
            "# A signature: one loop in the proportions of the trace it was made from.",
            f"# {signature.threads} threads, {signature.length} operations a loop, "
            f"{signature.operations_per_s:.6g} operations a second then.",
            *self._rate(pieces),
            *self._sizes,
            *self.filesets.lines(),
            "define process name=signature,instances=1",
            "{",
            f"  thread name=loop,instances={signature.threads}",
            "  {",
            *(f"    {line}" for line in self._loop(pieces)),
            "  }",
            "}",
            f"run {self.seconds}",
        ]
        return "\n".join(lines) + "\n"

    def _rate(self, pieces: list[list[str]]) -> list[str]:
        """Where latencies are not known, operations are held to the trace's rate; opens count too."""
        signature = self.signature
        if signature.think_s is not None:
            return []
        aids = sum(line.startswith(_AIDS) for piece in pieces for line in piece)
        rate = signature.operations_per_s * (signature.length + aids) / signature.length
        return [f"eventgen rate={rate:.6f}"]

    def _iosize(self, size: Size) -> str:
        """The attribute for a size, with a variable of its own where it varies."""
        if not size.deviation_bytes:
            return f"iosize={max(1, round(size.mean_bytes / size.round_bytes)) * size.round_bytes}"
        name = f"$size{len(self._sizes) + 1}"
        shape = (size.mean_bytes / size.deviation_bytes) ** 2
        parameters = f"type=cvar-gamma,parameters=mean:{size.mean_bytes:.3f};gamma:{shape:.6f}"
        limits = f"min={size.round_bytes},round={size.round_bytes}"
        self._sizes.append(f"set {name}=cvar({parameters},{limits})")
        return f"iosize={name}"

    def _name(self, kind: str) -> str:
        self._number += 1
        return f"{kind}{self._number}"

    def _flowop(self, kind: str, attributes: str) -> str:
        return f"flowop {kind} name={self._name(kind)}" + (f",{attributes}" if attributes else "")

    def _loop(self, pieces: list[list[str]]) -> list[str]:
        """The pieces, with pauses between them."""
        think_s = self.signature.think_s
        if think_s is None:
            return [line for piece in pieces for line in (*piece, self._flowop("opslimit", ""))]
        pauses = max(1, min(len(pieces), int(think_s / PAUSE_S_MIN)))
        if think_s < 1e-6 * len(pieces):
            return [line for piece in pieces for line in piece]
        lines: list[str] = []
        for place, piece in enumerate(pieces):
            lines += piece
            if (place + 1) * pauses // len(pieces) > place * pauses // len(pieces):
                lines.append(self._flowop("delay", f"value={think_s / pauses:.9f}"))
        return lines

    def _pieces(self) -> list[list[str]]:
        """The loop's operations: runs, and single ones, in turns; those of one flow in their own order."""
        signature = self.signature
        placed: list[tuple[float, list[str]]] = []
        for operation, flow in signature.flows.items():
            syncs = signature.counts.get(TraceOperation.SYNC, 0) if operation is self.filesets.synced else 0
            placed += _in_turns(self._runs(operation, flow, syncs))
        for pieces in self._others():
            placed += _in_turns(pieces)
        return [piece for _, piece in sorted(placed, key=lambda one: one[0])]

    def _runs(self, operation: TraceOperation, flow: Flow, syncs: int) -> list[list[str]]:
        """The runs of a flow, each with its part of the flushes; without those that others go on to."""
        pieces: list[list[str]] = []
        for place, run in enumerate(flow.runs):
            flushes = (place + 1) * syncs // len(flow.runs) - place * syncs // len(flow.runs)
            if run.jumps or run is self.filesets.entry(operation):
                pieces.append(self._jump_run(operation, flow, run, flushes))
            else:
                pieces += self._switch_run(operation, place, run, flushes)
        return pieces

    def _switch_run(self, operation: TraceOperation, place: int, run: Burst, flushes: int) -> list[list[str]]:
        """A run in another file.

        Of the runs of writes the first fill files just made, the next go on in files that runs of reads have
        opened; of both types the last are in files that are held open.
        """
        opening = self.signature.opening
        switches = len(self.signature.flows[operation].some(jumps=False))
        if place >= switches - opening.held.get(operation, 0):
            return [self._held_run(operation, place, run, flushes)]
        created = opening.created if operation is TraceOperation.WRITE else 0
        shares = created <= place < created + opening.shared
        fd = f"fd={_SLOTS[TraceOperation.READ if shares else operation]}"
        attributes = f"{fd},{self._iosize(run.size)}"
        if run.grows:
            moves = self._at_end(
                attributes, self.filesets.log_bytes(self.filesets.switch_bytes), run.operations
            )
        else:
            moves = [self._flowop(WORDS[operation], f"{attributes},iters={run.operations}")]
        moves += self._flushes(fd, flushes)
        if shares and operation is TraceOperation.WRITE:
            self._shared[place - created][-1:-1] = moves
            return []
        word, files = ("createfile", "names") if place < created else ("openfile", "files")
        piece = [self._flowop(word, f"filesetname={files},{fd}"), *moves, self._flowop("closefile", fd)]
        if shares:
            self._shared.append(piece)
        return [piece]

    def _held_run(self, operation: TraceOperation, place: int, run: Burst, flushes: int) -> list[str]:
        word, number = WORDS[operation], 1 + place % 2
        fd = f"fd={_HELD_SLOTS[operation] + number}"
        attributes = f"filesetname={word}held{number},{fd},{self._iosize(run.size)}"
        if run.grows:
            moves = self._at_end(attributes, self.filesets.held_log_bytes(operation), run.operations)
        else:
            span = self.filesets.held_span_bytes(operation)
            moves = self._from_anywhere(word, attributes, span, run.operations)
        return moves + self._flushes(fd, flushes)

    def _jump_run(self, operation: TraceOperation, flow: Flow, run: Burst, flushes: int) -> list[str]:
        word, fd = WORDS[operation], f"fd={_SLOTS[operation] + 2}"
        attributes = f"filesetname={word}jumps,{fd},{self._iosize(run.size)}"
        span = jump_span_bytes(flow, self.filesets.bytes_max)
        moves = self._from_anywhere(word, attributes, span, run.operations)
        return moves + self._flushes(fd, flushes)

    def _from_anywhere(self, word: str, attributes: str, span_bytes: int, operations: int) -> list[str]:
        """Operations without a gap from a place below the span on."""
        lines = [self._flowop(word, f"{attributes},random,workingset={span_bytes}")]
        if operations > 1:
            lines.append(self._flowop(word, f"{attributes},iters={operations - 1}"))
        return lines

    def _at_end(self, attributes: str, limit_bytes: int, operations: int) -> list[str]:
        """Operations at a file's end; before the first of them it is cut back to its size now and then."""
        lines = [self._flowop("appendfile", f"{attributes},workingset={limit_bytes}")]
        if operations > 1:
            lines.append(self._flowop("appendfile", f"{attributes},iters={operations - 1}"))
        return lines

    def _flushes(self, fd: str, number: int) -> list[str]:
        return [self._flowop("fsync", f"{fd},iters={number}")] if number else []

    def _others(self) -> list[list[list[str]]]:
        """Operations without a position, one a piece, by type."""
        counts = self.signature.counts
        deletes = [[self._flowop("deletefile", NAMES)] for _ in range(counts.get(TraceOperation.DELETE, 0))]
        creates = [
            [self._flowop("createfile", f"{NAMES},fd=5"), self._flowop("closefile", "fd=5")]
            for _ in range(self.signature.opening.lone)
        ]
        stats = [[self._flowop("statfile", NAMES)] for _ in range(counts.get(TraceOperation.STAT, 0))]
        return [deletes, creates, stats, self._lone_syncs()]

    def _lone_syncs(self) -> list[list[str]]:
        """Flushes where nothing is read or written."""
        syncs = self.signature.counts.get(TraceOperation.SYNC, 0) if self.filesets.synced is None else 0
        return [
            [
                self._flowop("openfile", f"{NAMES},fd=6"),
                self._flowop("fsync", "fd=6"),
                self._flowop("closefile", "fd=6"),
            ]
            for _ in range(syncs)
        ]


def _in_turns(pieces: list[list[str]]) -> list[tuple[float, list[str]]]:
    """Pieces with their place in a loop from 0 to 1."""
    return [((place + 0.5) / len(pieces), piece) for place, piece in enumerate(pieces)]
