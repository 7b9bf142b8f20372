"""Results that `measure`, `compare` and `analyze` saved, read to be compared (Li's thesis, section 4.2.4).

"For old results we need three values: the mean, subsession sample size, and subsession variance": a saved
mean with its interval and its independent samples has all three.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar import _core, typed
from ascar.errors import InputError
from ascar.pilot.analysis import analyze
from ascar.results.machine import MachineRecord  # noqa: TC001 - msgspec reads the annotations
from ascar.results.measurement import Measurement

if TYPE_CHECKING:
    from pathlib import Path

BYTES_MAX = 256 << 20
_HEAD_BYTES = 4096
_SCHEMA = re.compile(rb'"schema"\s*:\s*"ascar/([a-z-]{1,40})/(\d{1,9})"')
_VERSION = 1
_MAGNITUDE_MAX = 1e149
_SHOWN_MAX = 400
_WEIGHTS_LEFT_OUT = 3.0


class _Mean(msgspec.Struct, kw_only=True):
    """A mean of a saved result: the keys of `Measurement` that a comparison needs."""

    name: str
    mean: float
    ci_low: float | None
    ci_high: float | None
    confidence: float
    n: int
    independent_samples: int
    autocorrelation: float | None = 0.0
    subsession_size: int = 1
    stable_start: int = 0
    stable_end: int = 0
    method: str = ""
    reason: str = ""
    kind: Literal["ordinary", "ratio", "binary"] = "ordinary"


class _Indicator(_Mean, kw_only=True):
    basis: str = ""
    readings: int = 0


class _Round(msgspec.Struct, kw_only=True):
    used: bool = False
    readings: dict[str, float] = {}


class _Ranked(_Mean, kw_only=True):
    machine: MachineRecord | None = None


class _Measure(_Mean, kw_only=True):
    indicators: list[_Indicator]
    rounds: list[_Round] = []
    machines: list[MachineRecord] = []


class _Compare(msgspec.Struct, kw_only=True):
    metric: str
    ranking: list[_Ranked]


_KINDS: dict[str, Any] = {"measure": _Measure, "analyze": _Mean, "compare": _Compare}


@dataclass(frozen=True, slots=True)
class SavedResult:
    """A mean that was saved.

    Attributes:
        name: the contestant's own name in the file; empty where the file has one result.
        metric: the metric.
        measurement: the mean.
        machine: the machine that it was measured on; None: the file does not say.
        values: the readings, where the file has all of them; else none.
    """

    name: str
    metric: str
    measurement: Measurement
    machine: MachineRecord | None
    values: tuple[float, ...] = ()

    def at(self, confidence: float) -> Measurement:
        """The mean with an interval of that level: of its readings, or widened where they are not known."""
        return (
            analyze(self.values, confidence) if self.values else at_confidence(self.measurement, confidence)
        )


def is_saved(path: Path) -> bool:
    """Whether a file begins as a document of ascar's does."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return _SCHEMA.search(file.read(_HEAD_BYTES)) is not None
    except OSError:
        return False


def read_saved(path: Path, column: str | None = None) -> list[SavedResult]:
    """The means of a saved result: one, or each contestant's of a saved comparison.

    Args:
        path: a file that `is_saved`.
        column: the metric; None: the one that the result begins with.

    Raises:
        InputError: the file is too large, damaged, or of a newer version, or it has no such metric.
    """
    shown = repr(str(path))
    try:
        size = path.stat().st_size
        if size > BYTES_MAX:
            raise InputError(f"{shown} has {size} bytes: a saved result has at most {BYTES_MAX}")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{shown}: {error.strerror}") from error
    head = _SCHEMA.search(content[:_HEAD_BYTES])
    assert head is not None, "is_saved was asked"
    kind, version = head[1].decode(), int(head[2])
    if kind not in _KINDS:
        raise InputError(f"{shown}: is a result of {kind!r}: compare takes those of {', '.join(_KINDS)}")
    if version > _VERSION:
        raise InputError(
            f"{shown}: is ascar/{kind}/{version}, of a newer ascar; this one reads version {_VERSION}; "
            "update it"
        )
    try:
        found = typed.decode(content, _KINDS[kind])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{shown}: is damaged: {str(error)[:200]}; measure again") from error
    if isinstance(found, _Compare):
        if column not in (None, found.metric):
            raise InputError(f"{shown} has no metric {column!r:.80}; it has {found.metric!r:.80}")
        return [
            SavedResult(one.name, found.metric, _checked(shown, one), one.machine) for one in found.ranking
        ]
    mean = _chosen(shown, found, column)
    machines = found.machines if isinstance(found, _Measure) else []
    values = _readings(found.rounds, mean) if isinstance(found, _Measure) else ()
    machine = machines[0] if machines else None
    return [SavedResult("", mean.name, _checked(shown, mean), machine, values)]


def _readings(rounds: list[_Round], mean: _Mean) -> tuple[float, ...]:
    """All that an ordinary mean is of, where it has one reading a round; else none."""
    if not isinstance(mean, _Indicator) or mean.basis != "readings" or mean.kind != "ordinary":
        return ()
    values = tuple(one.readings[mean.name] for one in rounds if one.used and mean.name in one.readings)
    known = len(values) == mean.readings >= mean.n and all(abs(one) <= _MAGNITUDE_MAX for one in values)
    return values if known else ()


def _chosen(shown: str, found: _Mean, column: str | None) -> _Mean:
    """The mean of that name."""
    all_means = {found.name: found}
    if isinstance(found, _Measure):
        # The indicators know their kinds; the mean at the top is one of them, or a speed.
        all_means |= {one.name: one for one in found.indicators}
    wanted = found.name if column is None else column
    if wanted not in all_means:
        known = ", ".join(map(repr, all_means))[:_SHOWN_MAX]
        raise InputError(f"{shown} has no metric {column!r:.80}; it has {known}")
    return all_means[wanted]


def _checked(shown: str, found: _Mean) -> Measurement:
    """The mean as a measurement, if it can be one.

    Raises:
        InputError: a number is none, or contradicts another.
    """

    def refuse(key: str, value: object, allowed: str) -> InputError:
        return InputError(
            f"{shown}: is damaged: {found.name:.80}: {key} = {value!r:.40}: must be {allowed}; measure again"
        )

    limits = [("ci_low", found.ci_low), ("ci_high", found.ci_high)]
    for key, value in [("mean", found.mean), *limits]:
        if value is not None and not abs(value) <= _MAGNITUDE_MAX:
            raise refuse(key, value, "a finite number")
    if (found.ci_low is None) != (found.ci_high is None):
        raise refuse("ci_low", found.ci_low, "null exactly if ci_high is")
    low, high = found.ci_low, found.ci_high
    if low is not None and high is not None and not low <= found.mean <= high:
        raise refuse("mean", found.mean, f"inside of its interval, {low:g} to {high:g}")
    if not 0 < found.confidence < 1:
        raise refuse("confidence", found.confidence, "between 0 and 1")
    for key in ("n", "independent_samples"):
        if not 1 <= getattr(found, key) <= 2**53:
            raise refuse(key, getattr(found, key), "a count of at least 1")
    if not 1 <= found.subsession_size <= 2**53:
        raise refuse("subsession_size", found.subsession_size, "a count of at least 1")
    return Measurement(
        mean=found.mean,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        confidence=found.confidence,
        n=found.n,
        independent_samples=found.independent_samples,
        autocorrelation=math.nan if found.autocorrelation is None else found.autocorrelation,
        subsession_size=found.subsession_size,
        stable_start=found.stable_start,
        stable_end=found.stable_end,
        method=found.method,
        reason=found.reason,
    )


def _least_dof(found: Measurement) -> float:
    """Fewer degrees of freedom than the interval is likely to have had, so that it is widened enough.

    The corrected interval's: of n^0.6 cosine weights, of which a part may be left out, and the uncertainty of
    an AR(1)'s filter (`crates/statistics`, `mean_interval`).
    """
    weights = max(4.0, found.n**0.6)
    dof = 1 / (1 / weights + 2 / found.independent_samples) / _WEIGHTS_LEFT_OUT
    return max(1.0, min(dof, found.independent_samples - 1.0))


def at_confidence(found: Measurement, confidence: float) -> Measurement:
    """A saved mean with an interval of another level, by its standard error and independent samples.

    A harmonic mean's interval is that of the mean reciprocal, and is widened there.
    """
    if found.ci_low is None or found.ci_high is None or found.independent_samples < 2:
        return found
    if found.method.startswith("harmonic") and found.ci_low > 0:
        inverse = msgspec.structs.replace(
            found, mean=1 / found.mean, ci_low=1 / found.ci_high, ci_high=1 / found.ci_low, method="inverse"
        )
        wide = at_confidence(inverse, confidence)
        assert wide.ci_low is not None, "it had limits"
        assert wide.ci_high is not None, "it had limits"
        if wide.ci_low <= 0:
            reason = "the interval of the mean reciprocal reaches 0; measure longer"
            return msgspec.structs.replace(
                found, ci_low=None, ci_high=None, confidence=confidence, reason=reason
            )
        return msgspec.structs.replace(
            found, ci_low=1 / wide.ci_high, ci_high=1 / wide.ci_low, confidence=confidence
        )
    dof = float(found.independent_samples - 1)
    if confidence > found.confidence:
        dof = _least_dof(found)
    wider, known = (_core.student_t_quantile(0.5 + one / 2, dof) for one in (confidence, found.confidence))
    factor = wider / known
    return msgspec.structs.replace(
        found,
        ci_low=found.mean - factor * (found.mean - found.ci_low),
        ci_high=found.mean + factor * (found.ci_high - found.mean),
        confidence=confidence,
    )
