"""One line for what is worth one, where there is no terminal to draw on."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from ascar import typed
from ascar.render import count, duration, p_value, percentage, score, seconds
from ascar.results.trial import TrialState

if TYPE_CHECKING:
    from ascar.events import Event
    from ascar.progress.state import StudyProgress
    from ascar.results.trial import Trial

# More names are not told on one line.
_NAMES_SHOWN = 6


def line_of(progress: StudyProgress, event: Event) -> str:
    """The line for an event that `progress` has already taken; empty for what is not worth one."""
    line = ""
    match event.kind:
        case "study-started":
            line = _started(progress, event)
        case "trial-finished" if event.trial is not None:
            line = _finished(progress, event.trial)
        case "waiting":
            line = f"waiting until {event.data['until']}: [guard] window allows no change before"
        case "budget-short":
            line = _budget_short(progress, event)
        case "verifying":
            line = "verifying: best and default in turns, until it is decided or the budget is spent"
        case "compared":
            line = _compared(progress, event)
        case "reducing":
            line = _reducing(event)
        case "reduced":
            line = f"reduced: {event.data['note']}"
        case "not-remembered":
            line = f"the gain is not kept in the library: {event.data['reason']}"
        case _:
            pass
    return line


def _started(progress: StudyProgress, event: Event) -> str:
    parts = [f"study {progress.study}, run {progress.run_id}"]
    if progress.valid_configurations is not None:
        parts.append(f"{progress.valid_configurations:,} valid configurations")
    if progress.budget_s:
        parts.append(f"budget {duration(progress.budget_s)}")
    recalled = event.data.get("trials_recalled")
    if recalled:
        parts.append(f"{count(cast('int', recalled), 'trial')} recalled")
    return ", ".join(parts)


def _budget_short(progress: StudyProgress, event: Event) -> str:
    needed_s = cast("float", event.data["least_s"])
    return (
        f"the budget of {duration(progress.budget_s)} is short: a run takes "
        f"{seconds(cast('float', event.data['trial_s']))}, and runs differ by "
        f"{percentage(cast('float', event.data['run_scatter']))}, so that a decision takes about "
        f"{duration(needed_s)} if the gain is small; go on later with `ascar tune STUDY --resume --budget "
        f"'{duration(needed_s)}'`"
    )


def _reducing(event: Event) -> str:
    names = cast("tuple[str, ...]", event.data["left_out"])
    shown = ", ".join(names[:_NAMES_SHOWN]) + (" ..." if len(names) > _NAMES_SHOWN else "")
    return f"without {count(len(names), 'parameter')} ({shown}): against the best, in turns"


def _compared(progress: StudyProgress, event: Event) -> str:
    known = typed.convert(event.data, _Compared)
    gain, limits = progress.objective.gained(known), progress.objective.gained_between(known)
    if not gain:
        return ""
    line = f"after {count(known.pairs, 'pair')}: {gain} {progress.objective.unit} than the default"
    if limits:
        line += f" ({limits})"
    return f"{line}, {p_value(known.p_value)}"


class _Compared(msgspec.Struct, frozen=True):
    """What a pair of the verification has shown."""

    pairs: int
    gain_relative: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p_value: float | None = None


def _finished(progress: StudyProgress, trial: Trial) -> str:
    unit = progress.objective.unit
    parts = [f"trial {trial.number} ({trial.purpose.value})"]
    if trial.state is TrialState.COMPLETE:
        parts.append(score(trial, unit))
        if trial.unmet:
            parts.append(f"breaks {'; '.join(trial.unmet)}")
    elif trial.abandonment is not None:
        parts += [score(trial, unit), trial.abandonment.line]
    else:
        stage = f" in {trial.failure.stage}: {trial.failure.message}" if trial.failure else ""
        parts.append(f"{trial.state.value}{stage}")
    parts.append(seconds(sum(trial.stage_s.values())))
    if progress.best is not None:
        parts.append("best so far" if progress.best is trial else f"best {score(progress.best, '')}")
    if progress.budget_s:
        parts.append(f"{duration(progress.left_s)} left")
    return ", ".join(parts)
