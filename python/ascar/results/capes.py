"""Results of `ascar capes`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ascar.results.measurement import Count
from ascar.results.session import Proof, SessionOutcome, SessionStatus


class GamePlayed(msgspec.Struct, frozen=True, kw_only=True):
    """One game.

    Attributes:
        seed: the seed of the game.
        ticks: the number of ticks until convergence; null without convergence.
        near_share: the share of all ticks within 10% of the ideal, without noise.
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
        noise: the standard deviation of a measurement as a share of the throughput.
        delay: the number of ticks until a change of the window has its effect.
        algorithm: the algorithm.
        game: the game, which includes the criterion of convergence.
        runs: the number of runs.
        success_rate: the share of the runs that converged.
        ticks_median: the median number of ticks until convergence, over the runs that converged.
        ticks_max: the largest number of ticks until convergence.
        ticks_limit: the number of ticks of a run.
        played: the games.
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
        at: the number of ticks, or of training steps for the classic learner.
        prediction_error: the relative prediction error at that point.
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
        session: the name of the session.
        algorithm: the algorithm.
        objective: the objective.
        only_history: whether the learner only learned from stored ticks.
        ticks: the number of stored ticks that it learned from; 0 without --only-history.
        steps: the number of the classic learner's training steps on stored ticks.
        errors: the prediction errors during the training on stored ticks.
        report: the last report on P.learner; null if the learner never started.
        state: the file of the learned state; null if there is none.
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
        session: the name of the session.
        operation: the operation.
        asked: the keys of the request, see capes-protocol.
        answer: the answer of the interface, see capes-protocol.
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
        session: the name of the session.
        pid: the process that ran the session.
        keep: whether the best setting was to stay.
    """

    session: str
    pid: Count
    keep: bool


class CapesUpResult(SessionOutcome, frozen=True, kw_only=True, tag_field="schema", tag="ascar/capes-up/1"):
    """The outcome of a session that `ascar capes up` ran."""
