"""What a study and the process of its trials in a node (`ascar.remote.worker`) say to each other, in JSON.

A request names what to do and what that needs; an answer has what came of it, or a fault. While a load runs
there, an answer may be a look at its readings instead, to which the next request says whether it may end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from typing import Any, NoReturn, Self

import msgspec

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
        look: readings of the load that runs, about which the study is asked.
    """

    ok: msgspec.Raw = msgspec.Raw(b"null")
    fault: TrialFault | None = None
    look: ToldSeries | None = None

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
    """The series that are told.

    Raises:
        AssertionError: instants and values differ in number.
    """
    return {
        name: Series.of(*([math.nan if one is None else one for one in of] for of in (seconds, values)))
        for name, (seconds, values) in told.items()
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
