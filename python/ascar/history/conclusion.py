"""What a run came to, as text in the history and back; and what an unfinished one came to so far."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import HistoryError, InputError
from ascar.history import codec
from ascar.results.outcome import Outcome, saved_s
from ascar.results.parsimony import Parsimony  # noqa: TC001  # msgspec reads the annotation
from ascar.results.rule_search import SharpSearchResult
from ascar.results.rule_sets import SharpLearnResult
from ascar.results.session import SessionOutcome
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.results.verdict import Verdict, VerdictKind
from ascar.space import Configuration

if TYPE_CHECKING:
    from ascar.history.run import Run
    from ascar.space import Space


Conclusion = SessionOutcome | SharpSearchResult | SharpLearnResult
"""What a run came to that is not a study's."""

_CONCLUSIONS: dict[str, type[Conclusion]] = {
    "session": SessionOutcome,
    "search": SharpSearchResult,
    "learning": SharpLearnResult,
}


class _Record(msgspec.Struct, frozen=True):
    best: int | None
    default: int | None
    recommended: dict[str, Any]
    verdict: Verdict
    stage_s: dict[str, float]
    counts: dict[TrialState, int]
    stopped: str
    saved_s: float = 0.0
    parsimony: Parsimony | None = None


def outcome_text(outcome: Outcome) -> str:
    """An outcome as JSON text; its trials by number, as they have rows of their own."""
    record: dict[str, object] = {
        "best": outcome.best and outcome.best.number,
        "default": outcome.default and outcome.default.number,
        "recommended": dict(outcome.recommended),
        "verdict": outcome.verdict,
        "stage_s": outcome.stage_s,
        "counts": outcome.counts,
        "stopped": outcome.stopped,
        "saved_s": outcome.saved_s,
        "parsimony": outcome.parsimony,
    }
    return codec.dump(record)


def conclusion_text(conclusion: Conclusion) -> str:
    """What a run came to that is not a study's, as JSON text."""
    return codec.dump(conclusion)


def conclusion_of(kind: str, text: str, where: str) -> Conclusion | None:
    """What `conclusion_text` wrote; None for a study.

    Raises:
        HistoryError: the text is of another shape.
    """
    shape = _CONCLUSIONS.get(kind)
    return None if shape is None else codec.decode(codec.load(text, where), shape, where)


def check_conclusion(kind: str, table: dict[str, Any], where: str) -> None:
    """Refuse what `conclusion_of` could not read.

    Raises:
        InputError: it is of another shape.
    """
    try:
        codec.decode(table, _CONCLUSIONS[kind], where)
    except HistoryError as error:
        raise InputError(error.message) from error


def check_outcome(table: dict[str, Any], space: Space, where: str) -> None:
    """Refuse what `outcome_of` could not read.

    Raises:
        InputError: it is of another shape, or recommends what the space does not have.
    """
    try:
        record: _Record = codec.decode(table, _Record, where)
    except HistoryError as error:
        raise InputError(error.message) from error
    space.validate(record.recommended)


def outcome_of(run: Run, text: str, trials: list[Trial], where: str) -> Outcome:
    """The outcome that `outcome_text` wrote.

    Raises:
        HistoryError: the text is of another shape.
    """
    record: _Record = codec.decode(codec.load(text, where), _Record, where)
    by_number = {trial.number: trial for trial in trials}
    return Outcome(
        run_id=run.id,
        study=run.name,
        best=None if record.best is None else by_number.get(record.best),
        default=None if record.default is None else by_number.get(record.default),
        recommended=Configuration(record.recommended),
        verdict=record.verdict,
        stage_s=record.stage_s,
        counts=record.counts,
        stopped=record.stopped,
        machine=run.machine,
        saved_s=record.saved_s,
        parsimony=record.parsimony,
    )


def verdict_of(kind: str, text: str | None, where: str) -> Verdict | None:
    """The verdict in a conclusion of any kind; None where there is none, or none that can be read."""
    if text is None:
        return None
    try:
        found = conclusion_of(kind, text, where)
        if found is None:
            record: _Record = codec.decode(codec.load(text, where), _Record, where)
            return record.verdict
    except HistoryError:
        return None
    if isinstance(found, SharpSearchResult):
        shown = found.verification
        return Verdict(shown.kind, gain_relative=shown.gain_relative, difference=shown.difference)
    return _of_learning(found) if isinstance(found, SharpLearnResult) else _of_session(found)


def _of_learning(found: SharpLearnResult) -> Verdict:
    if found.pairs == 0:
        return Verdict("not-verified")
    if found.broken:  # they were better, and were not kept
        return Verdict("not-verified", note=found.broken)
    is_worse = found.difference_high is not None and found.difference_high < 0
    kind: VerdictKind = "improved" if found.improved else "default-is-fine" if is_worse else "undecided"
    return Verdict(kind, gain_relative=found.gain_relative, difference=found.difference)


def _of_session(found: SessionOutcome) -> Verdict | None:
    proof = found.proof
    if proof is None:
        return None
    kinds: dict[str, VerdictKind] = {"gain": "improved", "loss": "default-is-fine", "none": "undecided"}
    return Verdict(kinds[proof.claim], gain_relative=proof.gain, difference=proof.difference)


def outcome_so_far(run: Run, trials: list[Trial]) -> Outcome:
    """The outcome of a run that has not ended: nothing is verified, so the default is recommended."""
    defaults = [trial for trial in trials if trial.purpose is Purpose.DEFAULT and trial.usable]
    candidates = [trial for trial in trials if not trial.purpose.of_comparison and trial.usable]
    sign = run.objective.sign
    default = defaults[0] if defaults else None
    stage_s: Counter[str] = Counter()
    for trial in trials:
        stage_s.update(trial.stage_s)
    return Outcome(
        run_id=run.id,
        study=run.name,
        best=max(candidates, key=lambda trial: sign * (trial.score or 0.0), default=None),
        default=default,
        recommended=default.configuration if default else run.space.default(),
        verdict=Verdict("not-verified", note="the run has not ended; go on with `ascar tune --resume`"),
        stage_s=dict(stage_s),
        counts=Counter(trial.state for trial in trials),
        stopped="",
        machine=run.machine,
        saved_s=saved_s(trials),
    )
