"""`ascar.tune`: the offline loop from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.errors import InputError
from ascar.results.encode import extended
from ascar.results.outcome import Outcome
from ascar.study import Study
from ascar.threads import compute_on_one_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from ascar.history import History
    from ascar.objective import Objective
    from ascar.results.trial import Trial
    from ascar.space import Configuration, Space


class TuneOutcome(Outcome, frozen=True, kw_only=True):
    """What a study came to; in a notebook it shows its verdict, its configuration and its plots.

    Attributes:
        objective: the objective of the search.
        trials: every trial, in order.
        space: the space that was searched.
    """

    objective: Objective
    trials: tuple[Trial, ...]
    space: Space

    def _repr_html_(self) -> str:
        from ascar.api.pages import outcome_page

        return outcome_page(self)


def tune(
    what: Study | Mapping[str, Any] | str | PathLike[str] | Callable[[Configuration], Any],
    space: Space | None = None,
    objective: str | Sequence[str] = "maximize value",
    *,
    budget: str | None = None,
    history: History | None = None,
    resume: bool = False,
    progress: bool | None = None,
    **tables: Mapping[str, Any],
) -> TuneOutcome:
    """Search for the best configuration, and verify it against the default before a gain is claimed.

    Args:
        what: a study, its file or its tables; or a function that is called with a configuration and returns a
            number (the metric `value`) or numbers by metric, or yields them.
        space: the configurations that a function can be called with; a study has its own.
        objective: "maximize FORMULA" or "minimize FORMULA" over a function's metrics; a study has its own.
        budget: time for all of it, e.g. "30 min", instead of the study's; a minute for a function.
        history: the history that keeps every trial. None uses the user's own history, and
            the user's own library.
        resume: go on with the latest unfinished run of this study.
        progress: whether progress is shown; None: in a notebook and on a terminal.
        tables: further keys of the study file by table, e.g. `stop={"trials": 50}`, `study={"seed": 1}`.

    Returns:
        What the study came to. "The default is fine" is a result too.

    Raises:
        InputError: the study, or the machine, does not allow it; nothing was touched.
        Refused: a safety rule said no.
        WorkError: the default configuration cannot be measured, or everything fails.
        KeyboardInterrupt: interrupted; completed trials are kept, the machine is put back.
    """
    study = _study_of(what, space, objective, budget, tables)
    # A mistake in the study is told before the numeric libraries are loaded, which takes longest.
    compute_on_one_thread()
    from ascar.api.showing import study_listener
    from ascar.history import History
    from ascar.library import default_path
    from ascar.loops import offline

    listener = study_listener(study.objective, progress)
    if history is not None:
        outcome = offline.tune(study, history, resume=resume, listener=listener)
        return _with_trials(outcome, history)
    with History() as own:
        outcome = offline.tune(study, own, library=default_path(), resume=resume, listener=listener)
        return _with_trials(outcome, own)


def _study_of(
    what: Study | Mapping[str, Any] | str | PathLike[str] | Callable[[Configuration], Any],
    space: Space | None,
    objective: str | Sequence[str],
    budget: str | None,
    tables: Mapping[str, Mapping[str, Any]],
) -> Study:
    if callable(what):
        if space is None:
            raise InputError("space: missing; give the configurations that the function can be called with")
        return Study.of_function(what, space, objective, budget or "1 min", **tables)
    if space is not None or objective != "maximize value":
        raise InputError("space and objective: only a function needs them; a study has its own")
    given = dict(tables)
    if budget is not None:
        given["study"] = {**given.get("study", {}), "budget": budget}
    return Study.of(what, **given)


def _with_trials(outcome: Outcome, history: History) -> TuneOutcome:
    run = history.run(outcome.run_id)
    return extended(
        TuneOutcome, outcome, objective=run.objective, trials=tuple(run.trials()), space=run.space
    )
