"""Results of `ascar capes`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ascar.results.measurement import Count
from ascar.results.session import Proof, SessionOutcome, SessionStatus


class GamePlayed(msgspec.Struct, frozen=True, kw_only=True):
    """One game.

    Attributes:
        ticks: until convergence; null where it did not converge.
        near_share: of all ticks, those within 10% of the ideal, noise aside.
    """

    seed: Count
    ticks: Count | None
    near_share: float


class CapesGameResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-game/1",
):
    """How often and how soon a learner converges at StorageGameSim.

    Attributes:
        noise: standard deviation of a measurement, a share of the throughput.
        delay: ticks after which a change of the window shows.
        game: and the criterion by which it is won.
        success_rate: share of the runs that converged.
        ticks_median: until convergence, of the runs that converged.
        ticks_limit: ticks of a run.
    """

    noise: float
    delay: Count
    algorithm: Literal["modern", "classic", "sweep", "random"]
    game: Literal["thesis", "hard"]
    runs: Count
    success_rate: float
    ticks_median: float | None
    ticks_max: Count | None
    ticks_limit: Count
    played: tuple[GamePlayed, ...]


class PredictionError(msgspec.Struct, frozen=True, kw_only=True):
    """The prediction error on the way.

    Attributes:
        at: ticks, of the classic learner steps.
    """

    at: Count
    prediction_error: float


class CapesTrainResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-train/1",
):
    """What a learner has done: until it was told to stop, or once through stored ticks.

    Attributes:
        only_history: whether it only learnt from stored ticks.
        ticks: stored ones that it learnt from; 0 where it did not only do that.
        steps: of the classic learner's training on stored ticks.
        errors: on the way, where it only learnt from stored ticks.
        report: its last one on P.learner; null: it never began.
        state: file with what it has learnt.
    """

    session: str
    algorithm: Literal["modern", "classic"]
    objective: str
    only_history: bool
    ticks: Count
    steps: Count
    errors: tuple[PredictionError, ...]
    report: dict[str, Any] | None
    state: str | None


class CapesControlResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-control/1",
):
    """What was asked of a session, and its answer.

    Attributes:
        asked: the request's keys, see capes-protocol.
        answer: the interface's, see capes-protocol.
    """

    session: str
    operation: str
    asked: dict[str, Any]
    answer: dict[str, Any]


class CapesProveResult(Proof, frozen=True, kw_only=True, tag_field="schema", tag="ascar/capes-prove/1"):
    """The gain of a running session: tuned and untuned phases in turns."""


class CapesStatusResult(
    SessionStatus, frozen=True, kw_only=True, tag_field="schema", tag="ascar/capes-status/1"
):
    """The status of a session; with --follow one document a line after each tick.

    Attributes:
        lower_is_better: whether lower values of the objective are better.
        gain: the gain of the last minute over the baseline, which is not tested; above zero is better. It is
            null if some means are not above 0.
    """

    lower_is_better: bool
    gain: float | None


class CapesDownResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-down/1",
):
    """A session that was ended.

    Attributes:
        keep: whether the learnt setting was to stay.
    """

    session: str
    pid: Count
    keep: bool


class CapesUpResult(SessionOutcome, frozen=True, kw_only=True, tag_field="schema", tag="ascar/capes-up/1"):
    """The outcome of a session that `ascar capes up` ran."""
