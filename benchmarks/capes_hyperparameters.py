"""Hyperparameters of the learners, searched with this project's own optimizer at the harder game.

    python -m benchmarks.capes_hyperparameters --budget 20min [--only classic]

A trial plays the game on seeds kept for this (20,001 on), at 1, 10 and 50% noise; its score is the share of
all ticks near the ideal. The best two by that and the defaults then play on seeds that the search has not
seen (30,001 on). Every trial is kept in the results file, and the same command goes on; what was found is in
docs/benchmarks-capes.md.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.capes.classic.hyperparameters import GAME
from ascar.capes.environments.contest import Algorithm, LearnerContest, play_all
from ascar.capes.modern.learner import Modern
from ascar.capes.modern.modern_options import ModernOptions
from ascar.optimizers import Evaluation, open_optimizer
from ascar.results.trial import TrialState
from ascar.space import Space, space_from_table

from .harness import Benchmark, Piece, mean, percent, sources, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from ascar.capes.axes import Axis

NOISES = (0.01, 0.1, 0.5)
SEARCH_SEED, FRESH_SEED = 20_001, 30_001
RUNS, FRESH_RUNS, FINALISTS = 4, 8, 2


@dataclass(frozen=True)
class Subject:
    """A learner and what is searched of it.

    Attributes:
        name: of the learner.
        parameters: a study's `[space.parameters]`; defaults are the present ones.
        trials: of the search.
    """

    name: Algorithm
    parameters: Mapping[str, Mapping[str, Any]]
    trials: int

    def space(self) -> Space:
        """What is searched."""
        return space_from_table({"parameters": self.parameters}, Space((), name="nothing"))

    def contest(self, configuration: Mapping[str, Any], noise: float, seed: int, runs: int) -> LearnerContest:
        """At the harder game, delay 3."""
        contest = LearnerContest("hard", self.name, noise, 3, runs, seed)
        if self.name == "classic":
            return replace(contest, hyper=msgspec.structs.replace(GAME, **configuration))
        return replace(contest, modern=_varied(configuration))


def _varied(configuration: Mapping[str, Any]) -> type[Modern]:
    """The modern learner with other options and constants."""
    names = set(ModernOptions.__struct_fields__)
    options = ModernOptions(**{name: value for name, value in configuration.items() if name in names})

    class Varied(Modern):
        def __init__(self, knobs: Sequence[Axis], rng: np.random.Generator) -> None:
            for name in configuration.keys() - names:
                setattr(self, name, configuration[name])
            super().__init__(knobs, rng, options)

    return Varied


def _number(low: float, high: float, default: float) -> dict[str, Any]:
    kind = "integer" if isinstance(low, int) else "float"
    return {"kind": kind, "low": low, "high": high, "log": True, "default": default, "cost": "dyn-app"}


def _choice(*values: Any, default: Any, kind: str = "ordinal") -> dict[str, Any]:
    return {"kind": kind, "values": list(values), "default": default, "cost": "dyn-app"}


_FORMS = ("level", "difference", "difference-of-means", "difference-of-ewma")
# After 22 trials the best stood at bounds (rate 0.01, 4 steps, update 0.002), which were widened then.
CLASSIC = Subject(
    "classic",
    {
        "learning_rate": _number(1e-4, 5e-2, GAME.learning_rate),
        "discount": _choice(0.0, 0.5, 0.8, 0.9, 0.95, 0.99, default=GAME.discount),
        "exploration_ticks": _number(100, 2_400, GAME.exploration_ticks),
        "epsilon_final": _number(0.005, 0.2, GAME.epsilon_final),
        "hidden_size": _choice(32, 64, 128, default=GAME.hidden_size),
        "ticks_per_observation": _choice(1, 2, 5, 10, default=GAME.ticks_per_observation),
        "steps_per_tick": _choice(1, 2, 4, 8, default=GAME.steps_per_tick),
        "target_update": _number(5e-4, 0.5, GAME.target_update),
        "reward": _choice(*_FORMS, default=GAME.reward, kind="categorical"),
        "reward_ticks": _number(2, 40, GAME.reward_ticks),
    },
    trials=34,
)
_PRESENT = ModernOptions()
MODERN = Subject(
    "modern",
    {
        "visit_ticks_min": _choice(1, 2, 3, 4, 6, default=_PRESENT.visit_ticks_min),
        "visit_ticks_max": _choice(6, 8, 10, 14, 20, default=_PRESENT.visit_ticks_max),
        "visit_error": _number(0.03, 0.3, Modern.visit_error),
        "stay_ticks_max": _choice(12, 24, 48, 96, 192, default=_PRESENT.stay_ticks_max),
        "worth": _number(0.001, 0.1, _PRESENT.worth),
        "first_ticks": _choice(8, 16, 32, default=_PRESENT.first_ticks),
        "thompson_noise": _number(0.1, 1.0, Modern.thompson_noise),
        "thompson_ticks": _number(150, 2_400, Modern.thompson_ticks),
    },
    trials=25,
)
SUBJECTS = (CLASSIC, MODERN)


def main() -> None:
    """Search as far as the budget reaches, and print tables."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "20min")
    for subject in SUBJECTS:
        trials = _search(benchmark, subject)
        if trials:
            _show(benchmark, subject, trials)


def _search(benchmark: Benchmark, subject: Subject) -> list[dict[str, Any]]:
    """The trials that are done, in their order: earlier runs', and more within the budget."""
    space = subject.space()
    optimizer = open_optimizer({"kind": "auto"}, space, 1, (space.default(),))
    trials: list[dict[str, Any]] = []
    for number in range(1, subject.trials + 1):

        def run() -> dict[str, Any]:
            return _play(subject, dict(optimizer.ask()), SEARCH_SEED, RUNS)

        found = _within(benchmark, Piece(f"{subject.name}/search/{number}", run, _build(subject.name)))
        if found is None:
            break
        trials.append(found)
        loss = -mean(found["near"])[0]
        optimizer.tell(Evaluation(space.validate(found["configuration"]), TrialState.COMPLETE, loss))
    return trials


def _within(benchmark: Benchmark, piece: Piece) -> dict[str, Any] | None:
    """What a piece found, its time taken off the budget; None where that is over."""
    begun_s = time.monotonic()
    found = benchmark.run([piece]).get(piece.key)
    benchmark.budget_s -= time.monotonic() - begun_s
    return found


def _play(subject: Subject, configuration: dict[str, Any], seed: int, runs: int) -> dict[str, Any]:
    """Shares of ticks near the ideal, and ticks to convergence, noise by noise."""
    played = play_all([subject.contest(configuration, noise, seed, runs) for noise in NOISES])
    return {
        "configuration": configuration,
        "near": [one.near_share for one in played],
        "ticks": [one.ticks for one in played],
    }


def _show(benchmark: Benchmark, subject: Subject, trials: list[dict[str, Any]]) -> None:
    """The defaults and the best, on the seeds of the search and, when that is over, on others."""
    default = trials[0]["configuration"]
    order = sorted(range(1, len(trials)), key=lambda at: -mean(trials[at]["near"])[0])
    rows: list[list[str]] = []
    base: list[float] = []
    for at in (0, *order[:FINALISTS]):
        configuration = trials[at]["configuration"]
        run = partial(_play, subject, configuration, FRESH_SEED, FRESH_RUNS)
        piece = Piece(f"{subject.name}/fresh/{at + 1}", run, _build(subject.name))
        found = _within(benchmark, piece) if len(trials) == subject.trials else None
        fresh: list[float] = [] if found is None else found["near"]
        base = base or fresh
        gains = [one - other for one, other in zip(fresh, base, strict=True)] if fresh else []
        rows.append(
            [
                str(at + 1),
                _changes(configuration, default) or "nothing",
                percent(mean(trials[at]["near"])),
                percent(mean(fresh)) if fresh else "-",
                percent(mean(gains)) if gains and at else "-",
            ]
        )
    print(f"\n{subject.name}: {len(trials)} of {subject.trials} trials; near the ideal, of all ticks\n")
    heads = ("trial", "changed", f"search, {3 * RUNS} runs", f"fresh, {3 * FRESH_RUNS} runs", "gain, paired")
    table(heads, rows)


def _changes(configuration: Mapping[str, Any], default: Mapping[str, Any]) -> str:
    changed = {name: value for name, value in configuration.items() if value != default[name]}
    return "; ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in changed.items()
    )


@cache
def _build(name: Algorithm) -> str:
    names = (
        f"ascar.capes.{name}.learner",
        "ascar.capes.environments.game",
        "ascar.capes.environments.convergence",
    )
    return sources(*names, within=("ascar.capes", "ascar.learning"))


if __name__ == "__main__":
    main()
