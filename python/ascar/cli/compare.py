"""`ascar compare`: which command, or which recording, is better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Budget,
    Column,
    ConfidenceOrNone,
    Direction,
    Export,
    Force,
    Json,
    Labels,
    Margin,
    Metric,
    OutOrNone,
    Plot,
    Preset,
    Quiet,
    Readings,
    RoundLimit,
    RoundsMax,
    Seed,
    WarmUp,
)
from ascar.cli.outputs import Outputs

if TYPE_CHECKING:
    from ascar.cli.contestants import Contestants, Recordings
    from ascar.pilot import ComparisonTerms, ContestPlan
    from ascar.pilot.saved import SavedResult
    from ascar.pilot.sources import RecordedSeries
    from ascar.results.measurement import Measurement

EXAMPLES = examples(
    "ascar compare -- 'gzip -kf big.tar' 'zstd -kf big.tar'",
    "ascar compare --label ext4 --label xfs --metric mb_per_s='([0-9.]+) MB/s' -- './w.sh /e' './w.sh /x'",
    "ascar compare --margin 5% -- dd if=a of=/dev/null bs=4k --- dd if=a of=/dev/null bs=1M",
    "ascar compare before.csv after.csv --column latency_ms",
    "ascar compare hyperfine.json",
    "ascar compare monday.json tuesday.json --column mb_per_s",
)


def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...|FILE...",
            help="After --: commands, each quoted as one argument; or word by word with --- between them. No "
            "shell reads them. Without --: files of readings, as `ascar analyze` reads them, or results that "
            "--out wrote.",
        ),
    ],
    name: Labels = None,
    metric: Metric = None,
    column: Column = None,
    direction: Direction = None,
    preset: Preset = "normal",
    margin: Margin = None,
    confidence: ConfidenceOrNone = None,
    limit: Budget = "1 h",
    round_limit: RoundLimit = None,
    rounds_max: RoundsMax = 10_000,
    warm_up: WarmUp = 1,
    seed: Seed = 0,
    out: OutOrNone = None,
    force: Force = False,
    export: Export = None,
    plot: Plot = None,
    readings: Readings = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Say which is better, or that the difference is below a margin.

    Commands run in turns, in an order that favours none, until all neighbours in the ranking are told apart
    or shown not to differ by more than the margin; the test stays valid however often it is looked at. Exit
    status 3 when a limit ended it first: what was measured is kept, and marked. Recorded readings are
    compared once, on their stable phases; exit status 3 when they do not tell. Saved results of measure,
    compare and analyze are compared by their means, with a warning where their machines differ.

    --preset quick has a margin of 5% and needs 6 rounds of each; normal 1% and 10 rounds; strict 0.5% and 20
    rounds.
    """
    from ascar.cli.contestants import Recordings, contestants_of

    outputs = Outputs(export, plot, readings, quiet, json, out, force)
    wanted = _Wanted.of(preset, confidence, margin, direction)
    found = contestants_of(what, name or [], metric, column, round_limit)
    if isinstance(found, Recordings):
        return _rank(found, wanted, outputs)
    return _run(found, _plan(found.metric, wanted, (limit, rounds_max), (warm_up, seed)), wanted, outputs)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """How well contestants are to be told apart."""

    preset: str
    p: float
    margin: float | None
    lower_is_better: bool | None
    confidence: float

    @classmethod
    def of(cls, preset: str, confidence: float | None, margin: str | None, direction: str | None) -> _Wanted:
        """What options ask for: where no level is given, intervals are of 0.95 and verdicts of 0.99.

        Raises:
            InputError: one of them is wrong.
        """
        from ascar.errors import InputError

        if confidence is not None and not 0 < confidence < 1:
            raise InputError(f"--confidence = {confidence!r}: must be between 0 and 1, e.g. 0.95")
        if direction not in (None, "min", "max"):
            raise InputError(f"--direction = {direction!r}: must be min or max")
        wanted = cls(
            preset,
            0.01 if confidence is None else 1 - confidence,
            _share(margin),
            None if direction is None else direction == "min",
            0.95 if confidence is None else confidence,
        )
        wanted.terms("")
        return wanted

    def terms(self, metric: str) -> ComparisonTerms:
        from ascar.pilot import ComparisonTerms, lower_is_better

        lower = lower_is_better(metric) if self.lower_is_better is None else self.lower_is_better
        return ComparisonTerms.of(self.preset, p=self.p, margin=self.margin, lower_is_better=lower)


def _share(text: str | None) -> float | None:
    """A share from "2%" or "0.02".

    Raises:
        InputError: it is neither, or not between 0 and 1.
    """
    from ascar.cli.goals import share_of
    from ascar.errors import InputError

    if text is None:
        return None
    share = share_of("--margin", text)
    if not 0 < share < 1:
        raise InputError(f"--margin = {text!r:.40}: must be above 0 and below 1, e.g. 1% or 0.01")
    return share


def _plan(metric: str, wanted: _Wanted, limits: tuple[str, int], order: tuple[int, int]) -> ContestPlan:
    from ascar.pilot import ContestPlan, Limits
    from ascar.study import duration

    session_s = duration("--budget", limits[0])
    return ContestPlan(metric, wanted.terms(metric), Limits(session_s, limits[1]), *order)


def _run(found: Contestants, plan: ContestPlan, wanted: _Wanted, outputs: Outputs) -> int:
    from functools import partial

    from ascar.cli.compare_result import CompareOutput
    from ascar.cli.interrupts import Interrupted
    from ascar.cli.measure_progress import contest_line, showing
    from ascar.cli.statuses import decided
    from ascar.errors import AscarError, WorkError
    from ascar.pilot import Compared, Sampler, run_contest
    from ascar.pilot.machine import record_end, record_machine

    begun = record_machine()
    sampler, contestants = Sampler(), tuple(zip(found.labels, found.commands, strict=True))
    with showing(partial(contest_line, plan, found.labels), quiet=outputs.quiet) as told:
        try:
            with sampler:
                session = run_contest(found.runners, plan, told.take)
        except (KeyboardInterrupt, AscarError) as error:
            # With --json there is one document, the error's; people see what was measured until then.
            if told.last is not None and told.last.blocks and not outputs.json:
                told.close()
                partial_result = Compared.of(contestants, plan, told.last, wanted.confidence, sampler.used)
                CompareOutput(partial_result).show()
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted("interrupted; nothing of the commands is left running") from None
            raise
    if not session.blocks:
        raise WorkError(
            f"no counted round of each has ended: {session.ended}; raise --budget, or lower --warm-up"
        )
    compared = Compared.of(contestants, plan, session, wanted.confidence, sampler.used)
    compared = replace(compared, machine=record_end(begun))
    outputs.deliver(CompareOutput(compared))
    return decided(session.reached)


def _rank(found: Recordings, wanted: _Wanted, outputs: Outputs) -> int:
    from ascar.cli.compare_result import CompareOutput, recorded
    from ascar.cli.output import say
    from ascar.cli.statuses import decided
    from ascar.pilot import analyze
    from ascar.pilot.machine import warnings_of
    from ascar.pilot.ranking import rank_means
    from ascar.pilot.saved import SavedResult

    def mean_of(one: RecordedSeries | SavedResult, confidence: float) -> Measurement:
        if isinstance(one, SavedResult):
            return one.at(confidence)
        return analyze(one.values, confidence)

    terms = wanted.terms(found.metric)
    level = terms.level(len(found.series))
    strict = [mean_of(one, 1 - level) for one in found.series]
    ranking = rank_means(strict, tuple(mean_of(one, wanted.confidence) for one in found.series), terms)
    compared = recorded(found, terms, ranking)
    outputs.deliver(CompareOutput(compared))
    for line in warnings_of(compared.machine_differences):
        say(f"warning: {line}")
    return decided(ranking.standing.decided)
