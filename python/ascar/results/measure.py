"""The result of `ascar measure`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.machine import MachineRecord
from ascar.results.measurement import Count, JudgedMeasurement, Measurement, RequestedGoal


class UnitKindMean(Measurement, frozen=True, kw_only=True):
    """The mean of one kind of work units.

    Attributes:
        name: the kind, as the output names it.
        share: the share of this kind in all work.
    """

    name: str
    share: float


class IndicatorMean(Measurement, frozen=True, kw_only=True):
    """The mean of one indicator.

    Attributes:
        name: the name of the indicator.
        kind: the kind of the mean.
        decides: whether the session continued until this indicator reached its goal.
        basis: the readings that the mean is computed from.
        readings: the number of readings.
        removed: the number of readings that were removed as warm-up and cool-down.
        rounds_unstable: the number of rounds without a stable phase, which do not count.
        verdict: the verdict on the mean.
        goal: the required quality of the mean; null if it is only reported.
        units: the means of the kinds of work units; empty if all are of one kind.
    """

    name: str
    kind: Literal["ordinary", "ratio", "binary"]
    decides: bool
    basis: Literal["unit readings", "rounds", "readings"]
    readings: Count
    removed: Count
    rounds_unstable: Count
    verdict: Literal["reached", "too-wide", "too-few-readings", "no-interval"]
    goal: RequestedGoal | None
    units: tuple[UnitKindMean, ...]


class SpeedMean(msgspec.Struct, frozen=True, kw_only=True):
    """Work per second by regression over rounds of different work amounts.

    Attributes:
        work_per_s: the speed.
        ci_low: the lower end of its interval; null without one.
        ci_high: the upper end of that interval.
        confidence: the confidence of the interval.
        alpha_s: the seconds of a round that are not work.
        rounds: the number of rounds that were used.
        reason: the reason why there is no interval; empty if there is one.
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
        seconds: the duration of the round.
        work_amount: the work amount of the round; null without one.
        used: whether the round counts; false if it was too short.
        readings: the reading of each metric.
        unit_readings: the number of unit readings of each metric.
    """

    seconds: float
    work_amount: float | None
    used: bool
    readings: dict[str, float]
    unit_readings: dict[str, Count]


class UsedUp(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that was used up.

    Attributes:
        resource: the name of the resource.
        used: the share that was used.
    """

    resource: str
    used: float


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of what there is, over the whole session.

    Attributes:
        cpu: the share of all processors' time.
        cpu_busiest: the share of the busiest processor's time.
        programs_cores: the processor time of the measured programs, in cores.
        cores: the number of processors.
        run_queue_mean: the mean length of the run queue.
        memory_available_min: the smallest share of memory that was available.
        disk: the busy share of each disk.
        network: the share of each interface's speed.
        pressure: the share of time in which some process waited, by resource.
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


class MeasuredSource(msgspec.Struct, frozen=True, kw_only=True):
    """One of several commands that run at the same time in each round.

    Attributes:
        name: the name of the source, with which the names of its metrics begin.
        node: the name of the node that it ran on; null for the machine that ascar ran on.
        command: the command.
    """

    name: str
    node: str | None
    command: tuple[str, ...]


class MeasureResult(
    JudgedMeasurement,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/measure/1",
):
    """What a session of rounds of a command came to; the mean that decided first, then all of them.

    Attributes:
        command: the command; empty if there are several sources.
        sources: the commands of a round if there are several; else empty.
        machines: the machines that it was measured on, the one that ascar ran on first.
        name: the name of the mean at the top: a metric, duration_s, or work_per_s.
        reached: every goal is reached; if not, this is a partial result.
        ended: why the session ended.
        seconds: the duration of the session.
        indicators: the means of all indicators.
        speed: work per second by regression over rounds of different work amounts.
        rounds: the rounds of the session.
        bottlenecks: the resources that limited the result.
        resources: shares of what there is, over the whole session.
        overhead: the cost of the measuring itself.
    """

    command: tuple[str, ...]
    sources: tuple[MeasuredSource, ...] = ()
    machines: tuple[MachineRecord, ...] = ()
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
