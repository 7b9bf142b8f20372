"""Rounds of a command: any program, run without a shell; what it prints becomes readings."""

from __future__ import annotations

import math
import shutil
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, InputError, StageFailed
from ascar.nodes.watched import READY, ran_s, watched
from ascar.pilot.round import Round, WorkUnits
from ascar.program import Extractor, Harvest, Program, check, parse_extractor, run_program
from ascar.program.gate import Unstarted
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.nodes import Node
    from ascar.program import ProgramExit
    from ascar.program.gate import StartingGate

DURATION = "duration_s"
"""The reading that every round of a command has: how long it ran."""
WORK_AMOUNT = "%WORK_AMOUNT%"
"""Stands for the work amount in a command's arguments."""

_OUTPUT_BYTES_MAX = 2**40
_GRACE_S = 5.0
_ARGUMENTS_MAX = 10_000
_UNREACHABLE, _NOT_FOUND = 255, 127


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs a command, one round at a time.

    A metric that the command tells more than once in a round gives unit readings; one that it tells once, a
    reading. How long it ran is always a reading, `duration_s`.

    Attributes:
        argv: the program and its arguments; "%WORK_AMOUNT%" in them stands for the round's work amount.
        metrics: the place of each metric by name: "json:PATH", or a regular expression whose group named
            "value", else first group, else whole match is the number.
        round_limit_s: a round that runs longer has failed and is killed; None: the session's limit holds.
        node: the node that it runs on; None: this machine.
    """

    argv: Sequence[str]
    metrics: Mapping[str, str] = field(default_factory=dict[str, str])
    round_limit_s: float | None = None
    node: Node | None = None
    _extractors: Mapping[str, Extractor] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check what can be checked before the first round.

        Raises:
            InputError: the command or a metric is wrong.
            EnvironmentLacks: the program is not there.
        """
        _check(self.argv, here=self.node is None)
        extractors: dict[str, Extractor] = {}
        for name, text in self.metrics.items():
            if not name.isidentifier() or name == DURATION:
                raise InputError(
                    f"--metric {name}: must be letters, digits and '_', the unit last, e.g. "
                    f"throughput_mb_per_s; {DURATION} is measured anyway"
                )
            wanted = text if text.startswith("json:") else f"regex:{text.removeprefix('regex:')}"
            extractors[name] = parse_extractor(f"--metric {name}", wanted)
        object.__setattr__(self, "_extractors", extractors)

    @property
    def adjustable(self) -> bool:
        """Whether the command takes a work amount."""
        return any(WORK_AMOUNT in argument for argument in self.argv)

    def __call__(self, work_amount: float | None, left_s: float) -> Round | None:
        """Run one round; None where it was cut off because the session's time was over.

        Raises:
            StageFailed: the command failed, ran longer than a round may, or told no reading of a metric.
            EnvironmentLacks: its node cannot be reached.
        """
        return self.run(work_amount, left_s)

    def run(
        self,
        work_amount: float | None,
        left_s: float,
        end_on: int | None = None,
        gate: StartingGate | None = None,
    ) -> Round | None:
        """The same, beside others.

        Args:
            work_amount: as in `__call__`.
            left_s: as in `__call__`.
            end_on: a descriptor; once it can be read, the round is cut off.
            gate: where the command waits for the others, on its node and with its connection standing.
        """
        harvest = Harvest(self._extractors)

        def hear(chunk: bytes, seconds: float) -> bool:
            harvest.feed(chunk, seconds)
            return False

        # What nobody wants to know is not looked at: that would slow down a program that prints a lot.
        heard = hear if self._extractors else None
        program = Program(
            "round",
            self._words(
                [argument.replace(WORK_AMOUNT, _shown(work_amount)) for argument in self.argv],
                held=gate is not None,
            ),
            time_limit_s=math.inf if self.round_limit_s is None else self.round_limit_s,
            interrupt_after_s=left_s,
            grace_s=_GRACE_S,
            output_bytes_max=_OUTPUT_BYTES_MAX,
            keep_stdin=self.node is not None,
            end_on=end_on,
            gate=gate,
            ready=b"" if self.node is None else READY,
        )
        start_s = time.monotonic()
        try:
            ended = run_program(program, Workspace(Path.cwd()), heard)
        except Unstarted:
            return None
        except StageFailed:
            if time.monotonic() - start_s >= left_s:
                # It did not end when asked, and was killed.
                return self._cut_off(harvest, left_s, work_amount)
            raise
        if ended.interrupted:
            return self._cut_off(harvest, left_s, work_amount)
        ended = self._there(ended)
        check(replace(program, argv=self.argv), ended)
        readings = {DURATION: ended.seconds, **harvest.metrics()}
        self._check_told(readings, harvest)
        return Round(ended.seconds, work_amount, readings, *_units_of(harvest))

    def _words(self, argv: list[str], *, held: bool) -> list[str]:
        """The program to run here."""
        return argv if self.node is None else self.node.words(watched(argv, held=held))

    def _there(self, ended: ProgramExit) -> ProgramExit:
        """How a program ended on its node, as far as the connection tells.

        Raises:
            EnvironmentLacks: the node cannot be reached, or lacks the program.
        """
        if self.node is None:
            return ended
        seconds, words = ran_s(ended.stderr)
        if ended.status == _UNREACHABLE and seconds is None:
            last = (words.strip().splitlines() or ["no message"])[-1]
            raise EnvironmentLacks(f"node {self.node.name}: cannot be reached: {last[:300]}")
        if ended.status == _NOT_FOUND:
            raise EnvironmentLacks(f"node {self.node.name}: {self.argv[0]} is not installed there")
        return replace(ended, stderr=words, seconds=ended.seconds if seconds is None else seconds)

    def _cut_off(self, harvest: Harvest, left_s: float, work_amount: float | None) -> Round | None:
        """What is kept of a round that had to end early: unit readings, which tell of no whole round.

        Nothing where the work can be adjusted, for how long the work would have taken is not known.
        """
        values, units = _units_of(harvest)
        return Round(left_s, None, {}, values, units) if values and work_amount is None else None

    def _check_told(self, readings: Mapping[str, float], harvest: Harvest) -> None:
        missing = [name for name in self._extractors if name not in readings]
        if missing:
            name, last = missing[0], harvest.tail()[-1:]
            raise StageFailed(
                "round",
                f"--metric {name} = {self.metrics[name]!r} found nothing in the {harvest.lines} lines that "
                f"{Path(self.argv[0]).name} printed; the last: {last[0] if last else '(none)'}",
                "\n".join(harvest.tail()),
            )


def _units_of(harvest: Harvest) -> tuple[dict[str, Sequence[float]], dict[str, WorkUnits]]:
    """Unit readings, and what their units are where the expression tells it."""
    values: dict[str, Sequence[float]] = {
        name: series.values.tolist() for name, series in harvest.series().items()
    }
    units = {
        name: WorkUnits(
            [kind for kind, _ in told if kind is not None], [work for _, work in told if work is not None]
        )
        for name, told in harvest.units().items()
        if name in values
    }
    return values, units


def _check(argv: Sequence[str], *, here: bool) -> None:
    if not argv or not argv[0]:
        raise InputError(
            "COMMAND is missing: give a program and its arguments after --, e.g. -- gzip -k file"
        )
    if len(argv) > _ARGUMENTS_MAX or any("\0" in argument for argument in argv):
        raise InputError(f"COMMAND: must have at most {_ARGUMENTS_MAX} arguments, none with a zero byte")
    if here and shutil.which(argv[0]) is None:
        raise EnvironmentLacks(
            f"COMMAND {argv[0]!r}: is not a program that can be run here; install it, or give its full path. "
            "No shell reads the command: for pipes and the like write -- sh -c '...'"
        )


def _shown(work_amount: float | None) -> str:
    """A work amount as a command reads it: whole numbers without a fraction."""
    if work_amount is None:
        return WORK_AMOUNT
    return str(int(work_amount)) if work_amount == int(work_amount) else repr(work_amount)


def start_cost_s(runs: int = 5) -> float | None:
    """Seconds that starting and ending a program adds to a round: the median of one that does nothing.

    None where there is no such program.
    """
    nothing = shutil.which("true")
    if nothing is None:
        return None
    runner = CommandRunner((nothing,))
    taken = sorted(done.seconds for done in (runner(None, 60.0) for _ in range(runs)) if done is not None)
    return taken[len(taken) // 2] if taken else None
