"""A system that is a formula: metrics from parameters, with the noise, warm-up and failures of a real one.

[target]
kind = "simulated"
metrics = { throughput_ops_per_s = "1000 - 3 * abs(depth - 32) + if(compress, 50, 0)" }
noise_relative_sd = 0.1        # between unit readings
run_relative_sd = 0.03         # between runs: a whole run is faster or slower
autocorrelation = 0.6          # of successive readings
warm_up = "3 s"                # readings rise to their level within this time
warm_up_from = 0.5             # from this share of it
fails_when = "depth > 200"
change_s = [0.1, 2, 60, 30]    # what a change takes, by category 0 to 3
deferred = "if(depth > 100, 0.5, 0)"    # seconds of work that each second of load leaves undone
cycle_s = "depth / 10"         # after so long at the latest deferred work is done

The parameters are the study's `[space.parameters.*]`. Time is virtual: a study of an hour takes a second.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ascar.errors import ExpressionError, InputError, StageFailed, StudyError
from ascar.expression import Expression, parse
from ascar.results.measurement import Readings, Series
from ascar.space import Space
from ascar.study import convert
from ascar.systems import Sample, Starter
from ascar.systems.virtual import CATEGORIES, VirtualSystem, check_seconds
from ascar.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.results.trial import Change
    from ascar.space import Configuration
    from ascar.workspace import LoadTiming, Workspace

_READINGS_MAX = 100_000


class SimulatedOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` with kind = "simulated"; see the module.

    Attributes:
        metrics: formula over parameters, by metric.
        noise_relative_sd: standard deviation of a unit reading over its level.
        run_relative_sd: standard deviation of a run's level over the formula's value.
        autocorrelation: the lag-1 autocorrelation of successive readings' noise.
        warm_up: the time during which readings rise.
        warm_up_from: the share of the level at which they begin.
        fails_when: a formula; where it is true, the load fails.
        change_s: seconds that a change takes, by category.
        deferred: a formula: seconds of work that each second of load leaves undone.
        cycle_s: a formula: seconds after which deferred work is done at the latest.
        seed: the seed of the noise.
    """

    metrics: dict[str, str]
    noise_relative_sd: float = 0.05
    run_relative_sd: float = 0.0
    autocorrelation: float = 0.0
    warm_up: str = "0 s"
    warm_up_from: float = 0.5
    fails_when: str | None = None
    change_s: tuple[float, ...] = (0.0,) * CATEGORIES
    deferred: str | None = None
    cycle_s: str | None = None
    seed: int = 0


_FORMULA = "1000 - 3 * abs(depth - 32) + if(compress, 50, 0)"
_TWO_PARAMETERS = """
[space.parameters.depth]
kind = "integer"
low = 1
high = 256
default = 128
cost = "dyn-kernel"

[space.parameters.compress]
kind = "boolean"
default = false
cost = "remount"
"""


class SimulatedSystem(VirtualSystem):
    """A target and its own load. The noise of a configuration's k-th run is the same in every study.

    Args:
        options: the study's `[target]` table without its kind.

    Raises:
        StudyError: an option is missing, unknown or out of range, or a formula cannot be read.
    """

    starter = Starter(
        target={"metrics": f'{{ throughput_ops_per_s = "{_FORMULA}" }}'}, parameters=_TWO_PARAMETERS
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        chosen = convert(options, SimulatedOptions, "target")
        _check(chosen)
        super().__init__(Space(name="simulated"), check_seconds("target.change_s", chosen.change_s))
        self._options = chosen
        self._warm_up_s = _duration(chosen.warm_up)
        self._metrics = {
            name: _formula(f"target.metrics.{name}", text) for name, text in chosen.metrics.items()
        }
        self._fails = None if chosen.fails_when is None else _formula("target.fails_when", chosen.fails_when)
        self._deferred = None if chosen.deferred is None else _formula("target.deferred", chosen.deferred)
        self._cycle = None if chosen.cycle_s is None else _formula("target.cycle_s", chosen.cycle_s)
        self._work_s = 0.0
        self._runs: Counter[str] = Counter()

    def describe(self) -> Mapping[str, Any]:
        """The formulas and the noise."""
        return {"target": "simulated", **msgspec.to_builtins(self._options)}

    @property
    def reported(self) -> frozenset[str]:
        """The metrics that have a formula."""
        return frozenset(self._metrics)

    @property
    def sampled(self) -> frozenset[str]:
        """None: only deferred work is sampled."""
        return frozenset()

    def apply(self, configuration: Configuration) -> Change:
        """Put a configuration in force, on a system that owes nothing."""
        self._work_s = 0.0
        return super().apply(configuration)

    def sample(self) -> Sample:
        """The seconds of deferred work."""
        return Sample() if self._deferred is None else Sample(deferred={"work_s": self._work_s})

    def drain(self, limit_s: float) -> None:
        """Do the deferred work, in virtual time.

        Raises:
            StageFailed: there is more than `limit_s` of it.
        """
        self.clock.sleep(min(limit_s, self._work_s))
        self._work_s = max(0.0, self._work_s - limit_s)
        if self._work_s > 0:
            raise StageFailed("drain", f"{self._work_s:g} s of deferred work were left after {limit_s:g} s")

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:  # noqa: ARG002
        """The formula's value."""
        if self._cycle is None:
            return 0.0
        return max(0.0, self._cycle.number(_present(self._cycle, configuration)))

    def levels(self, values: Mapping[str, Any]) -> dict[str, float]:
        """The formulas' values: what endless noise-free measuring would tell.

        Raises:
            ExpressionError: a formula names a parameter that is not there, or has no finite value.
        """
        return {name: formula.number(_present(formula, values)) for name, formula in self._metrics.items()}

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:  # noqa: ARG002
        """Unit readings of every metric until it is enough, in virtual time.

        Raises:
            StageFailed: `fails_when` is true.
            ExpressionError: a formula has no value here.
        """
        configuration = self.current
        key = configuration.key()
        self._runs[key] += 1
        if self._fails is not None and self._fails.holds(_present(self._fails, configuration)):
            self.clock.sleep(pace.load_min_s)
            raise StageFailed("load", f"{self._fails} is true of {configuration}", "simulated failure")
        levels = self.levels(configuration)
        steps = min(_READINGS_MAX, max(1, math.floor(pace.load_max_s / pace.reading_s + 1e-9)))
        seconds = np.arange(1, steps + 1, dtype=np.float64) * np.float64(pace.reading_s)
        seed = [self._options.seed, int(key, 16), self._runs[key]]
        full = {
            name: level * self._course(seconds, np.random.default_rng([*seed, *_words(name)]))
            for name, level in levels.items()
        }
        series: dict[str, Series] = {}
        ended, taken = "time", steps
        for taken in range(1, steps + 1):
            if not pace.asks(float(seconds[taken - 1]) + 1e-9) and taken < steps:
                continue
            series = {name: Series(seconds[:taken], values[:taken]) for name, values in full.items()}
            if pace.may_end(series):
                ended = "enough"
                break
        load_s = float(seconds[taken - 1])
        self.clock.sleep(load_s)
        if self._deferred is not None:
            self._work_s += load_s * max(0.0, self._deferred.number(_present(self._deferred, configuration)))
        return Readings(
            series, {name: float(one.values.mean()) for name, one in series.items()}, load_s, ended
        )

    def _course(self, seconds: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Readings over their level: run to run, warm-up, autocorrelated noise (a first-order process)."""
        options = self._options
        innovations = rng.normal(size=len(seconds))
        noise = np.empty(len(seconds))
        keep, fresh = options.autocorrelation, math.sqrt(1 - options.autocorrelation**2)
        previous = rng.normal()
        for index, innovation in enumerate(innovations):
            previous = keep * previous + fresh * innovation
            noise[index] = previous
        ramp = np.ones(len(seconds))
        if self._warm_up_s > 0:
            share = np.minimum(1.0, seconds / self._warm_up_s)
            ramp = options.warm_up_from + (1 - options.warm_up_from) * share
        run = 1 + options.run_relative_sd * rng.normal()
        return run * ramp * (1 + options.noise_relative_sd * noise)


def _words(text: str) -> list[int]:
    """Numbers that stand for a text in a seed, on every machine."""
    digest = hashlib.sha256(text.encode()).digest()
    return [int.from_bytes(digest[at : at + 4], "big") for at in (0, 4)]


def _present(formula: Expression, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values for the formula's names; None, n/a, for a parameter that is not active."""
    return {name: values.get(name) for name in formula.names}


def _formula(key: str, text: str) -> Expression:
    try:
        return parse(text)
    except ExpressionError as error:
        raise StudyError(f"{key} = {text!r}: {error.message}") from error


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except InputError as error:
        raise StudyError(f"target.warm_up = {text!r}: {error.message}") from error


def _check(options: SimulatedOptions) -> None:
    if not options.metrics:
        raise StudyError(
            'target.metrics: empty; give at least one, e.g. throughput_ops_per_s = "100 * depth"'
        )
    for name in options.metrics:
        if not name.isidentifier():
            raise StudyError(
                f"target.metrics: {name!r} is not a name; use letters, digits and '_', e.g. 'latency_ms_p99'"
            )
    for key, value, low, high in (
        ("noise_relative_sd", options.noise_relative_sd, 0.0, 10.0),
        ("run_relative_sd", options.run_relative_sd, 0.0, 10.0),
        ("autocorrelation", options.autocorrelation, -0.99, 0.999),
        ("warm_up_from", options.warm_up_from, 0.0, 10.0),
        ("seed", options.seed, 0, 2**63 - 1),
    ):
        if not low <= value <= high:
            raise StudyError(f"target.{key} = {value!r}: must be from {low:g} to {high:g}")
