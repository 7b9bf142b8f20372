"""`ascar compare`: which command, or which recording, is better."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.goals import Confidence
from ascar.cli.options import Json, Quiet, examples
from ascar.cli.outputs import Outputs, Readings, RoundLimit
from ascar.cli.sheets import Export

if TYPE_CHECKING:
    from ascar.cli.contestants import Contestants, Recordings
    from ascar.pilot import ContestPlan, Terms

EXAMPLES = examples(
    "ascar compare -- 'gzip -kf big.tar' 'zstd -kf big.tar'",
    "ascar compare --name ext4 --name xfs --metric mb_per_s='([0-9.]+) MB/s' -- './w.sh /e' './w.sh /x'",
    "ascar compare --margin 5% -- dd if=a of=/dev/null bs=4k --- dd if=a of=/dev/null bs=1M",
    "ascar compare before.csv after.csv --column latency_ms",
    "ascar compare hyperfine.json",
)


def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...|FILE...",
            help="After --: commands, each quoted as one argument; or word by word with --- between them. No "
            "shell reads them. Without --: files of readings, as `ascar analyze` reads them.",
        ),
    ],
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="What to call a command or file; once for each, in their order."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=REGEX|NAME=json:PATH",
            help="The number in the commands' output that is compared. The default is how long they run, "
            "duration_s.",
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column or key with the readings, of files.")
    ] = None,
    lower_is_better: Annotated[
        bool | None,
        typer.Option(
            "--lower-is-better/--higher-is-better",
            help="Which way is better; told from the metric's name by default: lower for durations and "
            "latencies.",
        ),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="quick (margin 5%, 6 rounds of each at least), normal (1%, 10) or strict (0.5%, 20).",
        ),
    ] = "normal",
    margin: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="A difference that does not matter, instead of the preset's: 2%."),
    ] = None,
    p: Annotated[
        float,
        typer.Option(metavar="LEVEL", help="Probability of any wrong verdict, over all pairs and looks."),
    ] = 0.01,
    confidence: Confidence = None,
    limit: Annotated[
        str,
        typer.Option(metavar="DURATION", help="It ends then with what there is, and exit status 3."),
    ] = "1 h",
    round_limit: RoundLimit = None,
    rounds_max: Annotated[int, typer.Option(min=1, metavar="N", help="No more rounds of each.")] = 10_000,
    warm_up: Annotated[
        int, typer.Option(min=0, metavar="N", help="First rounds of each that are run and not used.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the order of the commands.")] = 0,
    export: Export = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw means with their intervals: .svg or .png.")
    ] = None,
    readings: Readings = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Say which is better, or that the difference is below a margin.

    Commands run in turns, in an order that favours none, until all neighbours in the ranking are told apart
    or shown not to differ by more than the margin; the test stays valid however often it is looked at. Exit
    status 3 when a limit ended it first: what was measured is kept, and marked. Recorded readings are
    compared once, on their stable phases.
    """
    from ascar.cli.contestants import Recordings, contestants_of

    outputs = Outputs(export, plot, readings, quiet, json)
    wanted = _Wanted(preset, p, _share(margin), lower_is_better, 0.95 if confidence is None else confidence)
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

    def __post_init__(self) -> None:
        from ascar.errors import InputError

        if not 0 < self.confidence < 1:
            raise InputError(f"--confidence = {self.confidence!r}: must be between 0 and 1, e.g. 0.95")
        self.terms("")

    def terms(self, metric: str) -> Terms:
        from ascar.pilot import Terms, lower_is_better

        lower = lower_is_better(metric) if self.lower_is_better is None else self.lower_is_better
        return Terms.of(self.preset, p=self.p, margin=self.margin, lower_is_better=lower)


def _share(text: str | None) -> float | None:
    """A share from "2%" or "0.02".

    Raises:
        InputError: it is neither.
    """
    from ascar.errors import InputError

    if text is None:
        return None
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise InputError(f"--margin = {text!r}: must be a share, e.g. 1% or 0.01") from error


def _plan(metric: str, wanted: _Wanted, limits: tuple[str, int], order: tuple[int, int]) -> ContestPlan:
    from ascar.pilot import ContestPlan, Limits
    from ascar.study import duration

    session_s = duration("--limit", limits[0])
    return ContestPlan(metric, wanted.terms(metric), Limits(session_s, limits[1]), *order)


def _run(found: Contestants, plan: ContestPlan, wanted: _Wanted, outputs: Outputs) -> int:
    from functools import partial

    from ascar.cli.compare_result import live
    from ascar.cli.interrupts import Interrupted
    from ascar.cli.measure_progress import contest_line, showing
    from ascar.errors import AscarError, WorkError
    from ascar.pilot import Sampler, run_contest

    sampler = Sampler()
    with showing(partial(contest_line, plan, found.labels), quiet=outputs.quiet) as told:
        try:
            with sampler:
                session = run_contest(found.runners, plan, told.take)
        except (KeyboardInterrupt, AscarError) as error:
            # With --json there is one document, the error's; people see what was measured until then.
            if told.last is not None and told.last.blocks and not outputs.json:
                told.close()
                live(found, plan, told.last, wanted.confidence, sampler.used).show()
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted("interrupted; nothing of the commands is left running") from None
            raise
    if not session.blocks:
        raise WorkError(
            f"not one round of each that counts has ended: {session.ended}; raise --limit, or lower --warm-up"
        )
    result = live(found, plan, session, wanted.confidence, sampler.used)
    outputs.deliver(result)
    return 0 if session.reached else 3


def _rank(found: Recordings, wanted: _Wanted, outputs: Outputs) -> int:
    from ascar.cli.compare_result import recorded
    from ascar.pilot import rank

    terms = wanted.terms(found.metric)
    ranking = rank([one.values for one in found.series], terms, wanted.confidence)
    result = recorded(found, terms, ranking)
    outputs.deliver(result)
    return 0
