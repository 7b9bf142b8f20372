"""What a study and the process of its trials in a node (`ascar.remote.worker`) say to each other, in JSON.

A request names what to do and what that needs; an answer has what came of it, or a fault. While a load runs
there, an answer may be a look at its readings instead, to which the next request says whether it may end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from typing import Annotated, Any, NoReturn, Self

import msgspec
import numpy as np

from ascar import errors, typed
from ascar.errors import AscarError, StageFailed
from ascar.results.measurement import Readings, Series
from ascar.systems import Sample

ToldSeries = dict[str, tuple[list[float | None], list[float | None]]]
"""Instants and values by metric; null stands for what is no number."""


class TrialRequest(msgspec.Struct, frozen=True):
    """Something to do.

    Attributes:
        ask: what.
        given: what it needs, by name.
    """

    ask: str
    given: dict[str, Any] = {}


class TrialFault(msgspec.Struct, frozen=True):
    """Why it was not done.

    Attributes:
        kind: the name of one of our errors, or "other".
        message: the message, without the stage.
        stage: the stage of a `StageFailed`.
        stderr: the failing program's last output.
    """

    kind: str
    message: str
    stage: str = ""
    stderr: str = ""

    def throw(self, stage: str) -> NoReturn:
        """Raise it here; what is none of our errors fails a stage.

        Raises:
            AscarError: always.
        """
        if self.kind == "StageFailed":
            raise StageFailed(self.stage, self.message, self.stderr)
        kind = getattr(errors, self.kind, None)
        if isinstance(kind, type) and issubclass(kind, (errors.InputError, errors.Refused)):
            raise kind(self.message)
        raise StageFailed(stage, self.message, self.stderr)

    @property
    def is_ours(self) -> bool:
        """Whether the process there can be asked again: it failed in a way that is foreseen."""
        kind = getattr(errors, self.kind, None)
        foreseen = (errors.InputError, errors.Refused, StageFailed)
        return isinstance(kind, type) and issubclass(kind, AscarError) and issubclass(kind, foreseen)


class TrialAnswer(msgspec.Struct, frozen=True):
    """What came of a request.

    Attributes:
        ok: the value.
        fault: why there is none.
        look: readings of the load that runs, about which the study is asked: those since the look before.
        kept: how many of the readings of the looks before still hold, by metric.
    """

    ok: msgspec.Raw = msgspec.Raw(b"null")
    fault: TrialFault | None = None
    look: ToldSeries | None = None
    kept: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}

    def __post_init__(self) -> None:
        """Series are of as many instants as values; else it is no answer."""
        _check_lengths(self.look or {})

    @classmethod
    def of(cls, value: Any) -> Self:
        """The answer with a value."""
        return cls(msgspec.Raw(encode(value)))


class TrialHello(msgspec.Struct, frozen=True):
    """What the target there found when it was entered.

    Attributes:
        mountable: the file systems that can be made and mounted there.
        defaults: the kernel's settings in force there, by parameter.
    """

    mountable: tuple[str, ...]
    defaults: dict[str, int | str]


class ToldSample(msgspec.Struct, frozen=True):
    """A `Sample`."""

    counters: dict[str, float]
    gauges: dict[str, float]
    deferred: dict[str, float]

    @classmethod
    def of(cls, sample: Sample) -> Self:
        """The sample as it is told."""
        return cls(dict(sample.counters), dict(sample.gauges), dict(sample.deferred))

    @property
    def sample(self) -> Sample:
        """The sample that is told."""
        return Sample(self.counters, self.gauges, self.deferred)


class ToldReadings(msgspec.Struct, frozen=True):
    """`Readings`."""

    series: ToldSeries
    metrics: dict[str, float | None]
    load_s: float
    ended: str
    notes: str
    tail_s: float

    def __post_init__(self) -> None:
        """Series are of as many instants as values; else they are no readings."""
        _check_lengths(self.series)

    @classmethod
    def of(cls, readings: Readings) -> Self:
        """The readings as they are told."""
        return cls(
            series_told(readings.series),
            {name: _number(value) for name, value in readings.metrics.items()},
            *(readings.load_s, readings.ended, readings.notes, readings.tail_s),
        )

    @property
    def readings(self) -> Readings:
        """The readings that are told."""
        metrics = {name: math.nan if value is None else value for name, value in self.metrics.items()}
        return Readings(series_of(self.series), metrics, self.load_s, self.ended, self.notes, self.tail_s)


def encode(value: Any) -> bytes:
    """A value as a line without its end."""
    return msgspec.json.encode(value)


def decode_request(line: bytes) -> TrialRequest:
    """A request.

    Raises:
        msgspec.MsgspecError: it is none.
    """
    return typed.decode(line, TrialRequest)


def decode_answer(line: bytes) -> TrialAnswer:
    """An answer.

    Raises:
        msgspec.MsgspecError: it is none.
    """
    return typed.decode(line, TrialAnswer)


def series_told(series: Mapping[str, Series]) -> ToldSeries:
    """Series as they are told."""
    return {
        name: ([_number(one) for one in of.seconds.tolist()], [_number(one) for one in of.values.tolist()])
        for name, of in series.items()
    }


def series_of(told: ToldSeries) -> dict[str, Series]:
    """The series that are told."""
    return {
        name: Series.of(*([math.nan if one is None else one for one in of] for of in (seconds, values)))
        for name, (seconds, values) in told.items()
    }


def kept_of(before: Mapping[str, Series], now: Mapping[str, Series]) -> dict[str, int]:
    """How many readings of an earlier look a later one begins with, by metric.

    Whoever sends all readings at each look sends them as many times as there are looks, and the node has one
    processor, which the load needs.
    """
    return {name: len(of) for name, of in before.items() if name in now and _begins(now[name], of)}


def after(series: Mapping[str, Series], kept: Mapping[str, int]) -> dict[str, Series]:
    """The readings of series behind so many."""
    cut = ((name, of, kept.get(name, 0)) for name, of in series.items())
    return {name: Series(of.seconds[count:], of.values[count:]) for name, of, count in cut}


def continued(before: Mapping[str, Series], kept: Mapping[str, int], told: ToldSeries) -> dict[str, Series]:
    """The readings of a look: those of the look before that hold, and what is told."""
    found: dict[str, Series] = {}
    for name, of in series_of(told).items():
        count, old = kept.get(name, 0), before.get(name, Series.of([], []))
        columns = ((old.seconds, of.seconds), (old.values, of.values))
        found[name] = Series(*(np.concatenate((first[:count], then)) for first, then in columns))
    return found


def _begins(now: Series, before: Series) -> bool:
    """Whether a series begins with another."""
    count = len(before)
    pairs = ((now.seconds[:count], before.seconds), (now.values[:count], before.values))
    return all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


def _check_lengths(told: ToldSeries) -> None:
    """See that each series is one.

    Raises:
        ValueError: instants and values differ in number; to msgspec, it is a value of another shape.
    """
    for name, (seconds, values) in told.items():
        if len(seconds) != len(values):
            raise ValueError(f"{name!r:.80}: {len(values)} values at {len(seconds)} instants")


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
