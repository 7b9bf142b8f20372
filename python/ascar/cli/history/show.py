"""`ascar history show`: one run, or one trial of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import Json, StudyOrRun, Top, TrialNumber

if TYPE_CHECKING:
    from rich.console import Console

    from ascar.history import Run
    from ascar.results.history import HistoryShowResult
    from ascar.results.trial import Trial

EXAMPLES = examples(
    "ascar history show mailserver",
    "ascar history show 3 --top 50",
    "ascar history show 3 --trial 17       its metrics, its configuration, why it failed",
)


def show(
    run: StudyOrRun,
    trial: TrialNumber = None,
    top: Top = 10,
    json: Json = False,
) -> int:
    """Show what a run came to: a study with its best trials, a session, a search for rules or learning.

    With --json all trials are printed.
    """
    from ascar.cli.output import emit, people
    from ascar.cli.studies import find_run
    from ascar.cli.summary import print_outcome
    from ascar.errors import InputError
    from ascar.history import History, RunKind

    with History.existing() as history:
        found = find_run(history, run, of_any_kind=True)
        if found.imported is not None and not json:
            people().print(f"imported from {found.imported!r}", soft_wrap=True, markup=False)
        if found.kind is not RunKind.STUDY and not json:
            _print_conclusion(people(), found)
            return 0
        if trial is not None:
            one = found.trial(trial)
            if one is None:
                known = len(found.trials(readings=False))
                raise InputError(f"--trial = {trial}: run {found.id} has no such trial; it has {known}")
            trials = [one]
        else:
            trials = found.trials(readings=False)
        if json:
            emit("history-show", _result(found, trials))
        elif trial is not None:
            _print_trial(people(), trials[0], found)
        else:
            print_outcome(people(), found.outcome(), found)
            _print_trials(people(), _best(trials, found, top), found)
    return 0


def _result(run: Run, trials: list[Trial]) -> HistoryShowResult:
    from ascar.history import RunKind
    from ascar.results.history import HistoryShowResult
    from ascar.results.rule_search import SharpSearchResult
    from ascar.results.rule_sets import SharpLearnResult
    from ascar.results.session import SessionOutcome

    conclusion = run.conclusion()
    return HistoryShowResult(
        run_id=run.id,
        kind=run.kind.value,
        study=run.name,
        state=run.state.value,
        objective=run.objective_text,
        started_at=run.started_at,
        versions=dict(run.versions),
        machine=dict(run.machine),
        outcome=run.outcome() if run.kind is RunKind.STUDY else None,
        session=conclusion if isinstance(conclusion, SessionOutcome) else None,
        search=conclusion if isinstance(conclusion, SharpSearchResult) else None,
        learning=conclusion if isinstance(conclusion, SharpLearnResult) else None,
        trials=tuple(trials),
        imported=run.imported,
    )


def _print_conclusion(console: Console, run: Run) -> None:
    """What a run came to that is not a study's."""
    from ascar.cli.capes.up_result import print_session
    from ascar.cli.sharp.found import print_search
    from ascar.results.rule_search import SharpSearchResult
    from ascar.results.session import SessionOutcome

    conclusion = run.conclusion()
    if conclusion is None:
        console.print(f"{run.kind.value} {run.name} (run {run.id}): {run.state.value}; it has no result")
    elif isinstance(conclusion, SessionOutcome):
        print_session(console, conclusion)
        folder = run.machine.get("folder", "")
        if conclusion.last_tick is not None:
            console.print(f"ticks up to {conclusion.last_tick}: replay.sqlite in {folder}", soft_wrap=True)
    elif isinstance(conclusion, SharpSearchResult):
        print_search(console, conclusion)
    else:
        shown = "improved" if conclusion.improved else "the rules of the beginning are in force"
        console.print(
            f"{conclusion.ticks} ticks, {conclusion.settings} settings, {conclusion.pairs} pairs in turns; "
            f"{shown}: rules {conclusion.before} -> {conclusion.rules}",
            soft_wrap=True,
        )


def _best(trials: list[Trial], run: Run, top: int) -> list[Trial]:
    usable = [trial for trial in trials if trial.usable]
    return sorted(usable, key=lambda trial: -run.objective.sign * (trial.score or 0.0))[:top]


def _print_trials(console: Console, trials: list[Trial], run: Run) -> None:
    from rich.table import Table

    from ascar.cli.summary import changes
    from ascar.render import plain, score, seconds

    if not trials:
        return
    table = Table(box=None, pad_edge=False, title="best trials", title_justify="left", title_style="")
    for heading in ("trial", "for", "from", "score", "took", "differs from the default in"):
        table.add_column(heading, justify="right" if heading in {"trial", "took"} else "left")
    for trial in trials:
        # What no longer applies follows from the rest: that the format is xfs says it of ext4's parameters.
        differs = " ".join(
            f"{name}={plain(after)}"
            for name, _, after, *_ in changes(run.space, trial.configuration)
            if after is not None
        )
        table.add_row(
            str(trial.number),
            trial.purpose.value,
            "" if trial.origin is None else trial.origin.value,
            score(trial, ""),
            seconds(sum(trial.stage_s.values())),
            differs,
        )
    console.print()
    console.print(table)


def _print_trial(console: Console, trial: Trial, run: Run) -> None:
    from ascar.render import number, plain, score, seconds

    console.print(
        f"trial {trial.number} of {run.name} (run {run.id}): {trial.purpose.value}, {trial.state.value}"
    )
    if trial.origin is not None:
        reason = f": {trial.reason}" if trial.reason else ""
        console.print(f"proposed by: {trial.origin.value}{reason}", soft_wrap=True, markup=False)
    if trial.score is not None:
        console.print(f"score: {score(trial, run.objective.unit)}", soft_wrap=True)
    if trial.abandonment is not None:
        console.print(trial.abandonment.line, soft_wrap=True)
    if trial.failure is not None:
        console.print(
            f"failed in {trial.failure.stage}: {trial.failure.message}", soft_wrap=True, markup=False
        )
        if trial.failure.stderr:
            console.print(trial.failure.stderr, soft_wrap=True, markup=False, style="dim")
    for title, facts in (
        ("configuration", {name: plain(setting) for name, setting in trial.configuration.items()}),
        ("metrics", {name: number(metric) for name, metric in trial.metrics.items()}),
        ("stages", {name: seconds(spent_s) for name, spent_s in trial.stage_s.items()}),
    ):
        console.print(f"\n{title}:")
        for name, text in facts.items():
            console.print(f"  {name}: {text}", soft_wrap=True, markup=False)
