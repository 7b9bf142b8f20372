"""`ascar tune`: the offline loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import AllowLive, BudgetOrNone, FormatDevices, Json, Quiet, Resume, StudyFile

if TYPE_CHECKING:
    from ascar.history import History
    from ascar.results.outcome import Outcome

EXAMPLES = examples(
    "ascar tune study.toml",
    "ascar tune study.toml --budget '30 min'",
    "ascar tune study.toml --resume          go on after an interruption",
    "ascar tune study.toml --json > outcome.json",
)


def tune(
    study: StudyFile,
    resume: Resume = False,
    budget: BudgetOrNone = None,
    format_device: FormatDevices = None,
    allow_live: AllowLive = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Search for the best configuration of a study, and verify it against the default.

    Exit status: 0 done ("the default is fine" is a result too), 1 the work failed, 2 something in the study
    is wrong and nothing was touched, 3 undecided, nothing could be compared, or interrupted after an
    improvement was proven, which is then reported (scripts read verdict.kind), 130 interrupted before; then
    everything was put back, and --resume goes on.
    """
    from ascar.cli.studies import Confirmed, read_study

    wanted = read_study(study, budget, Confirmed(format_device, allow_live))
    from ascar.cli.interrupts import resumable
    from ascar.cli.output import say
    from ascar.cli.process_age import start_s
    from ascar.cli.progress import showing
    from ascar.cli.statuses import NO_DECISION, decided
    from ascar.history import History
    from ascar.library import default_path
    from ascar.loops.offline import tune as run_loop
    from ascar.results.outcome import StoppedEarly

    with History() as history:
        try:
            with resumable(f"tune {study} --resume"), showing(wanted.objective, quiet=quiet) as listener:
                outcome = run_loop(
                    wanted,
                    history,
                    library=default_path(),
                    resume=resume,
                    listener=listener,
                    spent_s=start_s(),
                )
        except StoppedEarly as stopped:
            say(
                "interrupted; everything was put back, and what is proven is kept; "
                f"go on with `ascar tune {study} --resume`"
            )
            show_outcome(stopped.outcome, history, "tune", as_json=json)
            return NO_DECISION
        show_outcome(outcome, history, "tune", as_json=json)
    return decided(outcome.verdict.is_decided)


def show_outcome(outcome: Outcome, history: History, document: str, *, as_json: bool) -> None:
    """Print what a study came to: for people, or as the JSON document of that name."""
    from ascar.cli.compromise import front_of
    from ascar.cli.output import emit, people
    from ascar.cli.summary import print_outcome
    from ascar.results.documents import struct_of
    from ascar.results.encode import extended

    run = history.run(outcome.run_id)
    if not as_json:
        print_outcome(people(), outcome, run)
        return
    several = run.objectives
    chosen = front_of(run, several).chosen if len(several) > 1 else ()
    emit(document, extended(struct_of(document), outcome, pareto=tuple(chosen)))
