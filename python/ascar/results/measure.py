"""The result of `ascar measure`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measurement import Count, JudgedMeasurement, Measurement


class IndicatorMean(Measurement, frozen=True, kw_only=True):
    """The mean of one indicator.

    Attributes:
        decides: the session went on until this reached its goal.
        removed: readings left out as warm-up and cool-down.
        rounds_unstable: rounds without a stable phase, left out.
    """

    name: str
    kind: Literal["ordinary", "ratio", "binary"]
    decides: bool
    basis: Literal["unit readings", "rounds", "readings"]
    readings: Count
    removed: Count
    rounds_unstable: Count
    verdict: Literal["reached", "too-wide", "too-few-readings", "no-interval"]


class SpeedMean(msgspec.Struct, frozen=True, kw_only=True):
    """Work per second by regression over rounds of different work amounts.

    Attributes:
        alpha_s: seconds of a round that are no work.
    """

    work_per_s: float
    ci_low: float | None
    ci_high: float | None
    confidence: float
    alpha_s: float
    rounds: Count
    reason: str


class MeasuredRound(msgspec.Struct, frozen=True, kw_only=True):
    """One round of the command.

    Attributes:
        used: false: set aside as too short.
        unit_readings: how many, by metric.
    """

    seconds: float
    work_amount: float | None
    used: bool
    readings: dict[str, float]
    unit_readings: dict[str, Count]


class UsedUp(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that was used up."""

    resource: str
    used: float


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of what there is, over the whole session.

    Attributes:
        programs_cores: cores' worth of time of the measured programs.
    """

    cpu: float
    cpu_busiest: float
    programs_cores: float
    cores: Count
    run_queue_mean: float
    memory_available_min: float
    disk: dict[str, float]
    network: dict[str, float]
    pressure: dict[str, float]


class Overhead(msgspec.Struct, frozen=True, kw_only=True):
    """What the measuring itself cost.

    Attributes:
        own_cores: cores' worth of processor time.
        between_rounds: share of the session in which no round ran.
        start_cost_s: seconds that starting a program adds to a round.
    """

    own_cores: float
    between_rounds: float
    start_cost_s: float | None


class MeasureResult(
    JudgedMeasurement,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/measure/1",
):
    """What a session of rounds of a command came to; the mean that decided first, then all of them.

    Attributes:
        name: of the mean at the top: a metric, duration_s, or work_per_s.
        reached: every goal is reached; if not, this is a partial result.
        ended: why the session ended.
        speed: work per second by regression over rounds of different work amounts.
        resources: shares of what there is, over the whole session.
        overhead: what the measuring itself cost.
    """

    command: tuple[str, ...]
    name: str
    reached: bool
    ended: str
    seconds: float
    indicators: tuple[IndicatorMean, ...]
    speed: SpeedMean | None
    rounds: tuple[MeasuredRound, ...]
    bottlenecks: tuple[UsedUp, ...]
    resources: ResourceUse
    overhead: Overhead
