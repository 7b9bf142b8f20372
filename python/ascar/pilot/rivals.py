"""One against several others, run by run: what its scores gain over those of each."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.pilot.turns import ESTIMATES, Gain, mean_at_any_time
from ascar.results.contest import ContestEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.objective import Direction
    from ascar.results.contest import Verdict

RUNS_MIN = 2
_VERDICTS: dict[str, Verdict] = {"better": "better", "worse": "worse"}


def check_contest(runs: int, confidence: float, contenders: int) -> None:
    """Refuse what cannot be told apart, before any run.

    Raises:
        InputError: there are too few runs or contenders, or the confidence is none.
    """
    if runs < RUNS_MIN:
        raise InputError(f"--runs = {runs}: must be at least {RUNS_MIN}; one run has no interval")
    if not 0.5 <= confidence < 1:
        raise InputError(f"--confidence = {confidence!r}: must be from 0.5 to below 1, e.g. 0.95")
    if contenders < 2:
        raise InputError(f"{contenders} to compare: name at least two")


def against_each(
    scores: Mapping[str, Sequence[float]], direction: Direction, confidence: float
) -> tuple[ContestEntry, ...]:
    """How the first stands against each of the others; the i-th runs of all meet the same random numbers.

    The level of each comparison is divided by their number, so that all intervals hold together (Bonferroni).

    Args:
        scores: the scores of each contestant's runs by name, the first contestant's first; all have equally
            many runs.
        direction: the direction of the objective.
        confidence: the confidence of each mean's interval, and of all gains' intervals together.

    Raises:
        InputError: a score is not finite, or there are too few.
    """
    (first, ours), *rivals = scores.items()
    level = (1 - confidence) / max(len(rivals), 1)
    itself = _contender(first, ours, None, 1 - confidence)
    gains = [(name, theirs, Gain.of(theirs, ours, direction, level)) for name, theirs in rivals]
    return (itself, *(_contender(name, theirs, gain, 1 - confidence) for name, theirs, gain in gains))


def _contender(name: str, scores: Sequence[float], gain: Gain | None, level: float) -> ContestEntry:
    low, high = mean_at_any_time(scores, level) or (None, None)
    estimates = dict.fromkeys(ESTIMATES) if gain is None else gain.estimates()
    return ContestEntry(
        name=name,
        scores=tuple(scores),
        mean=fmean(scores),
        ci_low=low,
        ci_high=high,
        **estimates,
        p_value=None if gain is None else gain.p_value,
        verdict="itself" if gain is None else _VERDICTS.get(gain.decision, "open"),
    )
