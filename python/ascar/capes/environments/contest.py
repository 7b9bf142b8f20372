"""Contests on StorageGameSim: how often and when a learner converges."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from ascar.capes.axes import initial
from ascar.capes.classic.hyperparameters import SEARCHED
from ascar.capes.environments.convergence import converged_tick
from ascar.capes.environments.game import TICKS, Game, drawn
from ascar.capes.environments.open_loop import RandomPolicy, SweepPolicy
from ascar.capes.modern.learner import Modern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.capes.axes import Setting
    from ascar.capes.classic.hyperparameters import DeepQHyperparameters
    from ascar.capes.environments.game import GameKind
    from ascar.capes.policy import Policy, TickObservation

Algorithm = Literal["modern", "classic", "sweep", "random"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = ("modern", "classic", "sweep", "random")


@dataclass(frozen=True, slots=True)
class LearnerContest:
    """The learner, the game and the number of runs.

    Attributes:
        game: the game, which includes the criterion of convergence.
        algorithm: the learner or policy.
        noise: standard deviation as a share of the throughput.
        delay_ticks: the number of ticks until a change of the window has its effect.
        runs: the number of runs.
        seed: the seed of the first run; each run has its own.
        hyper: the hyperparameters of the classic learner.
        modern: the class of the modern one.
    """

    game: GameKind
    algorithm: Algorithm
    noise: float
    delay_ticks: int
    runs: int
    seed: int = 1
    hyper: DeepQHyperparameters = SEARCHED
    modern: type[Modern] = Modern


@dataclass(frozen=True, slots=True)
class ContestRun:
    """The result of one run.

    Attributes:
        seed: the seed of the run.
        ticks: the number of ticks until convergence; None without convergence.
        near_share: the share of all ticks that are near the ideal.
    """

    seed: int
    ticks: int | None
    near_share: float


@dataclass(frozen=True, slots=True)
class ContestProgress:
    """The progress of a contest.

    Attributes:
        share: the share of the ticks of all runs.
        done: runs, or others.
        wanted: runs, or others.
        left_s: about so long it goes on; None while nobody knows.
        unit: the unit of the counts.
    """

    share: float
    done: int
    wanted: int
    left_s: float | None
    unit: str = "runs"


def play(
    contest: LearnerContest, listener: Callable[[ContestProgress], None] | None = None
) -> list[ContestRun]:
    """Play all runs.

    Args:
        contest: the contest to play.
        listener: is told now and then how far it is.

    Raises:
        EnvironmentLacks: the classic learner's libraries are not installed.
        InputError: noise or delay are out of range.
    """
    return play_all((contest,), listener)


def play_all(
    contests: Sequence[LearnerContest], listener: Callable[[ContestProgress], None] | None = None
) -> list[ContestRun]:
    """Play the runs of several contests of one learner, as `play` does; deep ones train all at once.

    Args:
        contests: alike but for noise, delay, runs and seed.
        listener: see `play`.
    """
    contest = contests[0]
    games = [
        Game(drawn(one.game, one.noise, one.delay_ticks, one.seed + run))
        for one in contests
        for run in range(one.runs)
    ]
    begun_s = time.monotonic()

    def tell(ticks: int, done: int) -> None:
        if listener is not None:
            share = ticks / (TICKS * len(games))
            past_s = time.monotonic() - begun_s
            left_s = past_s / share - past_s if share else None
            listener(ContestProgress(share, done, len(games), left_s))

    if contest.algorithm == "classic":
        _play_together(games, contest, tell)
    else:
        for done, game in enumerate(games):
            _play_one(game, _policy(game, contest), lambda tick, done=done: tell(done * TICKS + tick, done))
    return [
        ContestRun(game.rules.seed, converged_tick(contest.game, game.near), float(np.mean(game.near)))
        for game in games
    ]


def _policy(game: Game, contest: LearnerContest) -> Policy:
    rng = np.random.default_rng([game.rules.seed, 3])
    if contest.algorithm == "sweep":
        return SweepPolicy(game.knobs)
    if contest.algorithm == "random":
        return RandomPolicy(game.knobs, rng)
    return contest.modern(game.knobs, rng)


def _play_one(game: Game, policy: Policy, tell: Callable[[int], None]) -> None:
    setting: Setting = initial(game.knobs)
    for tick in range(TICKS):
        setting = policy.decide(game.step(setting))
        if tick % 50 == 0:
            tell(tick)


def _play_together(games: list[Game], contest: LearnerContest, tell: Callable[[int, int], None]) -> None:
    """Play all runs of the classic learner together: their networks train in one compiled step."""
    from ascar.capes.classic.experience import Experience
    from ascar.capes.classic.learner import ClassicBatch

    settings: list[Setting] = [initial(one.knobs) for one in games]
    seen: list[TickObservation] = [game.step(setting) for game, setting in zip(games, settings, strict=True)]
    width = seen[0].indicators.size
    experiences = [
        Experience(one.knobs, width, contest.hyper, np.random.default_rng([one.rules.seed, 3]))
        for one in games
    ]
    batch = ClassicBatch(experiences, contest.hyper)
    for tick in range(1, TICKS):
        settings = batch.decide(seen)
        seen = [game.step(setting) for game, setting in zip(games, settings, strict=True)]
        if tick % 10 == 0:
            tell(tick * len(games), 0)
