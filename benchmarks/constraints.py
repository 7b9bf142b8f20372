"""Searches where parameters only change together: groups of which one is on, equal values, sums.

    python -m benchmarks.constraints --budget 30min
    python -m benchmarks.constraints --seeds 10

A made-up system has a few factors, which act alone and in pairs on a throughput (noise: 10%). Each of its
forms is a space of its own: in `reference`, a group of parameters is one parameter; in `formulas`, they are
parameters with constraints; in `table`, they are columns of a recorded table, which states none. auto
searches each form, random search each but the reference, with 100 evaluations. The system differs from seed
to seed and is the same in all forms. Regret: 0 is the best, 1 the median of the valid configurations. Ratios
are those of mean regrets, with 95% intervals (bootstrap over seeds); tests are Wilcoxon's, on pairs of a
seed, with Holm's correction over the forms. Of auto's searches it also counts those that evaluated the best
configuration, and those that recommended it: what is between the two is the noise's, not the space's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ascar.lab.simulation import Budget, Contender, search
from ascar.significance import holm, signed_rank_p_value
from ascar.space import ChangeCost, Space, boolean, categorical, integer, ordinal
from ascar.systems.recording import MeasurementTable
from ascar.systems.recording_columns import TableColumns

from .harness import Benchmark, Piece, mean, number, sources, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.space import Configuration, Parameter, Value

EVALUATIONS = 100
NOISE_SD = 0.1
RESAMPLES = 2_000
_COST = ChangeCost.DYN_APP
_EQUAL_KB = (16, 32, 64, 128, 256, 512, 1024, 2048)
_SWITCHES = 12  # in a group of which one is on
_UNITS_MAX, _UNITS_TOGETHER = 8, 12  # memory of one cache and of three, in units of 128 MB


@dataclass(frozen=True, slots=True)
class Form:
    """A space in which a system can be searched.

    Attributes:
        space: the space.
        factors: the level of each factor in a configuration.
    """

    space: Space
    factors: Callable[[Mapping[str, Value]], tuple[int, ...]]


class MadeUpSystem:
    """Levels of factors with their losses, in one form, as a problem of the laboratory.

    Args:
        name: the name of the problem and the form.
        form: the form that is searched.
        losses: float64, one axis a factor; nan where a combination is not valid.
    """

    start: tuple[Configuration, ...] = ()
    sign = -1

    def __init__(self, name: str, form: Form, losses: NDArray[np.float64]) -> None:
        self.name, self.space = name, form.space
        self.best, self.median = float(np.nanmin(losses)), float(np.nanmedian(losses))
        self._factors, self._losses = form.factors, losses

    def truth(self, configuration: Configuration) -> float:
        """The loss without noise."""
        return float(self._losses[self._factors(configuration)])

    def draw(self, configuration: Configuration, rng: np.random.Generator) -> tuple[float, float]:
        """One evaluation."""
        return self.truth(configuration) * (1 + NOISE_SD * float(rng.normal())), float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Factors, and the forms in which they can be set.

    Attributes:
        sizes: the number of levels of each factor.
        ordered: whether the levels of a factor are numbers.
        forms: by name; the first is the reference.
        valid: whether levels go together.
    """

    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    forms: Mapping[str, Form]
    valid: Callable[[tuple[int, ...]], bool] = lambda _: True

    def losses(self, seed: int) -> NDArray[np.float64]:
        """Of a system: -1000 exp(effects of each factor, and products of effects of some pairs)."""
        rng = np.random.default_rng([seed, *self.sizes])
        total = np.zeros(self.sizes)
        along = [self._along(axis) for axis in range(len(self.sizes))]
        for axis, shaped in enumerate(along):
            total = total + shaped(self._effect(axis, rng, 0.25))
        for one in range(len(self.sizes)):
            for two in range(one + 1, len(self.sizes)):
                first, second = self._effect(one, rng, 0.3), self._effect(two, rng, 0.3)
                if rng.random() < 0.4:
                    total = total + along[one](first) * along[two](second)
        losses = -1000 * np.exp(total)
        for levels in product(*map(range, self.sizes)):
            if not self.valid(levels):
                losses[levels] = np.nan
        return losses

    def _along(self, axis: int) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
        shape = [1] * len(self.sizes)
        shape[axis] = self.sizes[axis]
        return lambda effect: effect.reshape(shape)

    def _effect(self, axis: int, rng: np.random.Generator, scale: float) -> NDArray[np.float64]:
        """Independent over categories, smooth over numbers."""
        levels = rng.normal(size=self.sizes[axis])
        if self.ordered[axis]:
            place = np.linspace(0, 1, self.sizes[axis])
            levels = -4 * (place - rng.uniform(-0.2, 1.2)) ** 2 + rng.normal() * place + 0.1 * levels
        levels = levels - levels.mean()
        return scale * levels / max(float(levels.std()), 1e-9)


def _switches(stem: str, count: int) -> list[Parameter]:
    return [boolean(f"{stem}{at}", default=at == 0, cost=_COST) for at in range(count)]


def _one_of(stem: str, count: int) -> str:
    return " + ".join(f"if({stem}{at}, 1, 0)" for at in range(count)) + " == 1"


def _pairwise(stem: str, count: int) -> list[str]:
    names = [f"{stem}{at}" for at in range(count)]
    pairs = [f"not ({a} and {b})" for at, a in enumerate(names) for b in names[at + 1 :]]
    return [*pairs, " or ".join(names)]


def _on(values: Mapping[str, Value], stem: str, count: int) -> int:
    return next(at for at in range(count) if values[f"{stem}{at}"])


def _level(name: str, count: int) -> Parameter:
    return ordinal(name, tuple(range(count)), default=0, cost=_COST)


def _kinds(name: str, count: int) -> Parameter:
    return categorical(name, tuple(f"k{at}" for at in range(count)), default="k0", cost=_COST)


def _kind(values: Mapping[str, Value], name: str) -> int:
    return int(str(values[name])[1:])


def _units(name: str) -> Parameter:
    return integer(name, (1, _UNITS_MAX), default=1, cost=_COST)


def _tabled(form: Form) -> Form:
    """The same as a recorded table, which has no constraints."""
    rows = list(form.space.enumerate())
    frame = pl.DataFrame([{**one, "value": 0.0} for one in rows])
    recording = MeasurementTable.of(frame, TableColumns(form.space.names, ("value",)))
    return Form(
        recording.space,
        lambda values: form.factors(recording.configurations[recording.nearest(_sure(values))]),
    )


def _sure(values: Mapping[str, Value]) -> Configuration:
    from ascar.space import Configuration

    return values if isinstance(values, Configuration) else Configuration(values)


@cache
def problems() -> dict[str, Problem]:
    """All of them, by name."""
    return {
        "two groups of switches": _exclusive(),
        "equal values": _equal(),
        "memory in sum": _sums(),
        "all together": _mixed(),
    }


def _exclusive() -> Problem:
    """Two groups of twelve switches, of which exactly one is on; two numbers."""
    numbers = [_level("depth", 8), _level("batch", 8)]

    def number_levels(values: Mapping[str, Value]) -> tuple[int, int]:
        return int(values["depth"]), int(values["batch"])

    def switched(values: Mapping[str, Value]) -> tuple[int, ...]:
        return (_on(values, "a", _SWITCHES), _on(values, "b", _SWITCHES), *number_levels(values))

    switches = [*_switches("a", _SWITCHES), *_switches("b", _SWITCHES), *numbers]
    whole = Space((_kinds("a", _SWITCHES), _kinds("b", _SWITCHES), *numbers))
    sums = Form(Space(tuple(switches), (_one_of("a", _SWITCHES), _one_of("b", _SWITCHES))), switched)  # type: ignore[arg-type]
    return Problem(
        (_SWITCHES, _SWITCHES, 8, 8),
        (False, False, True, True),
        {
            "reference": Form(whole, lambda v: (_kind(v, "a"), _kind(v, "b"), *number_levels(v))),
            "formulas": sums,
            "table": _tabled(sums),
        },
    )


def _equal() -> Problem:
    """Two pairs of numbers that must be equal; a category and a number."""
    others = [_kinds("mode", 4), _level("depth", 6)]

    def size(name: str) -> Parameter:
        return ordinal(name, _EQUAL_KB, default=16, cost=_COST)

    def levels(values: Mapping[str, Value]) -> tuple[int, ...]:
        sizes = (_EQUAL_KB.index(int(values[name])) for name in ("block", "chunk"))
        return (*sizes, _kind(values, "mode"), int(values["depth"]))

    formulas = Form(
        Space(
            (size("block"), size("stripe"), size("chunk"), size("window"), *others),
            ("block == stripe", "chunk - window == 0"),  # type: ignore[arg-type]
        ),
        levels,
    )
    reference = Form(Space((size("block"), size("chunk"), *others)), levels)
    return Problem(
        (8, 8, 4, 6),
        (True, True, False, True),
        {"reference": reference, "formulas": formulas, "table": _tabled(formulas)},
    )


def _together(levels: tuple[int, ...]) -> bool:
    return sum(level + 1 for level in levels[:3]) <= _UNITS_TOGETHER


def _sums() -> Problem:
    """Three caches whose memory is limited in sum; a category and a number."""
    others = [_kinds("mode", 4), _level("depth", 6)]
    fits = [
        units
        for units in product(range(1, _UNITS_MAX + 1), repeat=3)
        if _together(tuple(one - 1 for one in units))
    ]
    texts = tuple("-".join(map(str, units)) for units in fits)

    def joint(values: Mapping[str, Value]) -> tuple[int, ...]:
        units = fits[texts.index(str(values["caches"]))]
        return (*(one - 1 for one in units), _kind(values, "mode"), int(values["depth"]))

    def single(values: Mapping[str, Value]) -> tuple[int, ...]:
        units = (int(values[name]) - 1 for name in ("data", "index", "log"))
        return (*units, _kind(values, "mode"), int(values["depth"]))

    whole = Space((categorical("caches", texts, default=texts[0], cost=_COST), *others))
    formulas = Form(
        Space(
            (_units("data"), _units("index"), _units("log"), *others),
            (f"data + index + log <= {_UNITS_TOGETHER}",),  # type: ignore[arg-type]
        ),
        single,
    )
    return Problem(
        (_UNITS_MAX, _UNITS_MAX, _UNITS_MAX, 4, 6),
        (True, True, True, False, True),
        {"reference": Form(whole, joint), "formulas": formulas, "table": _tabled(formulas)},
        _together,
    )


def _mixed() -> Problem:
    """Three caches limited in sum, six switches of which one is on, two numbers that must be equal."""
    caches = [_units("data"), _units("index"), _units("log")]
    memory = f"data + index + log <= {_UNITS_TOGETHER}"

    def size(name: str) -> Parameter:
        return ordinal(name, _EQUAL_KB, default=16, cost=_COST)

    def shared(values: Mapping[str, Value]) -> tuple[int, ...]:
        return tuple(int(values[name]) - 1 for name in ("data", "index", "log"))

    def block(values: Mapping[str, Value]) -> int:
        return _EQUAL_KB.index(int(values["block"]))

    formulas = Form(
        Space(
            (*caches, *_switches("a", 6), size("block"), size("stripe")),
            (memory, *_pairwise("a", 6), "block == stripe"),  # type: ignore[arg-type]
        ),
        lambda v: (*shared(v), _on(v, "a", 6), block(v)),
    )
    reference = Form(
        Space((*caches, _kinds("a", 6), size("block")), (memory,)),  # type: ignore[arg-type]
        lambda v: (*shared(v), _kind(v, "a"), block(v)),
    )
    return Problem(
        (_UNITS_MAX, _UNITS_MAX, _UNITS_MAX, 6, 8),
        (True, True, True, False, True),
        {"reference": reference, "formulas": formulas, "table": _tabled(formulas)},
        _together,
    )


def main() -> None:
    """Search each form of each problem with each seed, and print the tables."""
    parser = Benchmark.parser(str(__doc__), "30min")
    parser.add_argument("--seeds", type=int, default=50, help="systems of each problem (default 50)")
    given = parser.parse_args()
    benchmark = Benchmark.of(
        given,
        sources(
            "ascar.optimizers.auto",
            "ascar.systems.recording",
            within=("ascar.optimizers", "ascar.space", "ascar.systems", "ascar.surrogate"),
        ),
    )
    seeds = range(1, given.seeds + 1)
    found = benchmark.run(
        Piece(f"{name}/{form}/{kind} {seed}", lambda n=name, f=form, k=kind, s=seed: _searched(n, f, k, s))
        for seed in seeds
        for name, problem in problems().items()
        for form in problem.forms
        for kind in ("auto", "random")
        if (kind, form) != ("random", "reference")
    )
    regrets = {
        (name, form, kind): np.array([found[f"{name}/{form}/{kind} {s}"]["regret"] for s in seeds])
        for name, problem in problems().items()
        for form in problem.forms
        for kind in ("auto", "random")
        if all(f"{name}/{form}/{kind} {s}" in found for s in seeds)
    }
    _print(regrets)
    _print_found(found, seeds)


def _searched(name: str, form: str, kind: str, seed: int) -> dict[str, float]:
    problem = problems()[name]
    system = MadeUpSystem(f"{name}, {form}", problem.forms[form], problem.losses(seed))
    run = search(system, Contender(kind), Budget(1, EVALUATIONS), seed)
    recommended, evaluated = (
        (loss - system.best) / (system.median - system.best)
        for loss in (float(run.recommended[-1, 0]), float(run.truth.min()))
    )
    return {
        "regret": recommended,
        "evaluated": evaluated,
        "ask_tell_ms": 1e3 * float(run.ask_tell_s.mean()),
    }


def _print(regrets: Mapping[tuple[str, str, str], NDArray[np.float64]]) -> None:
    rng = np.random.default_rng(1)
    forms = [
        (name, form)
        for name, form, kind in regrets
        if kind == "auto"
        and form != "reference"
        and (name, form, "random") in regrets
        and (name, "reference", "auto") in regrets
    ]
    pairs = [(regrets[*one, "auto"], regrets[*one, "random"]) for one in forms]
    p_values = holm([signed_rank_p_value(own - other) for own, other in pairs])
    rows: list[Sequence[str]] = []
    for (name, form), (own, other), p_value in zip(forms, pairs, p_values, strict=True):
        reference = regrets[name, "reference", "auto"]
        verdict = "level" if p_value > 0.05 else "ahead" if own.mean() < other.mean() else "behind"
        rows.append(
            (
                name,
                form,
                *(number(mean(one.tolist())) for one in (reference, own, other)),
                _ratio(own, reference, rng),
                f"{verdict} (p = {p_value:.2g})",
            )
        )
    table(
        ("problem", "form", "auto, reference", "auto", "random", "auto over reference", "auto beside random"),
        rows,
    )


def _print_found(found: Mapping[str, Mapping[str, float]], seeds: Sequence[int]) -> None:
    rows: list[Sequence[str]] = []
    for name, problem in problems().items():
        for form in problem.forms:
            own = [found[key] for s in seeds if (key := f"{name}/{form}/auto {s}") in found]
            if own:
                counts = [sum(one[what] == 0 for one in own) for what in ("evaluated", "regret")]
                rows.append((name, form, *(f"{count} of {len(own)}" for count in counts)))
    table(("problem", "form", "best evaluated", "best recommended"), rows)


def _ratio(own: NDArray[np.float64], other: NDArray[np.float64], rng: np.random.Generator) -> str:
    if not other.any():
        return "-"
    places = rng.integers(len(own), size=(RESAMPLES, len(own)))
    low, high = np.quantile(own[places].mean(1) / np.maximum(other[places].mean(1), 1e-12), [0.025, 0.975])
    return f"{own.mean() / max(other.mean(), 1e-12):.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
