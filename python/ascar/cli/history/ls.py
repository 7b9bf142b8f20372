"""`ascar history ls`: every run, the latest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ascar.history import DamagedRun, RunSummary
    from ascar.results.history import RunListed

EXAMPLES = examples("ascar history ls", "ascar history ls mailserver")


def ls(
    study: Annotated[
        str | None,
        typer.Argument(metavar="[STUDY]", help="List only runs of this study, session or file of rules."),
    ] = None,
    json: Json = False,
) -> int:
    """List every run of a study, a session or a search for rules, the latest first.

    A run that is not as it was written is listed as damaged, with its damaged trials and columns.
    """
    from ascar.cli.output import emit, people
    from ascar.errors import InputError
    from ascar.history import History
    from ascar.results.history import HistoryLsResult

    with History.existing() as history:
        runs = history.listed(study)
        if study is not None and not runs:
            history.run(study, None)  # says which there are
            raise InputError(
                f"study {study!r}: is the number of a run; `ascar history show {study}` shows it"
            )
    if json:
        emit("history-ls", HistoryLsResult(runs=tuple(_listed(run) for run in runs)))
    elif runs:
        people().print(_table(runs))
    else:
        people().print("no runs yet; `ascar init` and `ascar tune` make one")
    return 0


def _listed(run: RunSummary | DamagedRun) -> RunListed:
    from ascar.history import DamagedRun
    from ascar.results.history import RunListed

    if isinstance(run, DamagedRun):
        return RunListed(
            run_id=run.id,
            kind=None,
            study=run.name,
            state="damaged",
            pid=None,
            objective="",
            started_at="",
            finished_at=None,
            counts={},
            best_score=None,
            verdict=None,
            gain_relative=None,
            difference=None,
            damage=run.damage,
        )
    return RunListed(
        run_id=run.id,
        kind=run.kind.value,
        study=run.name,
        state=run.state.value,
        pid=run.pid,
        objective=run.objective,
        started_at=run.started_at,
        finished_at=run.finished_at or None,
        counts=run.counts,
        best_score=run.best_score,
        verdict=None if run.verdict is None else run.verdict.kind,
        gain_relative=None if run.verdict is None else run.verdict.gain_relative,
        difference=None if run.verdict is None else run.verdict.difference,
    )


def _table(runs: Sequence[RunSummary | DamagedRun]) -> Table:
    from rich.table import Table

    from ascar.history import DamagedRun
    from ascar.render import number
    from ascar.results.trial import TrialState

    table = Table(box=None, pad_edge=False)
    right = {"run", "trials", "failed", "best trial"}
    for heading in (
        *("run", "kind", "name", "state", "started (UTC)", "trials", "failed", "best trial", "verdict"),
        "objective",
    ):
        table.add_column(heading, justify="right" if heading in right else "left")
    for run in runs:
        if isinstance(run, DamagedRun):
            table.add_row(str(run.id), "", run.name, "damaged", *[""] * 5, _in_short(run))
            continue
        failed = run.counts.get(TrialState.FAILED, 0) + run.counts.get(TrialState.QUARANTINED, 0)
        state = run.state.value if run.pid is None else f"{run.state.value} (process {run.pid})"
        started = run.started_at[:19].replace("T", " ")
        trials = sum(run.counts.values())
        table.add_row(
            str(run.id),
            run.kind.value,
            run.name,
            state,
            started,
            str(trials),
            str(failed),
            number(run.best_score),
            _verdict(run),
            run.objective,
        )
    return table


def _in_short(run: DamagedRun) -> str:
    """The first damage, and how many more there are."""
    more = len(run.damage) - 1
    return run.damage[0] if not more else f"{run.damage[0]}, and {more} more (`ascar history check`)"


def _verdict(run: RunSummary) -> str:
    """What the last comparison came to, in a few words."""
    verdict = run.verdict
    if verdict is None:
        return "-"
    if verdict.kind == "improved":
        from ascar.objective import Objective

        return Objective.parse(run.objective).gained(verdict) or "improved"
    from ascar.render import VERDICTS

    return VERDICTS[verdict.kind]
