"""What a library holds: workloads with their features, rule sets, and what rule sets gained on workloads."""

from __future__ import annotations

import hashlib
import math

import msgspec

from ascar.errors import InputError

_NAME_MAX = 100
_FEATURES_MAX = 500
_TEXT_MAX = 1 << 20


class WorkloadEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="workload"):
    """A workload.

    Attributes:
        name: unique in the library.
        features: the features by name, as `workload_features` gives them; null where one has no meaning.
        source: the source of the features, e.g. "simulated: random-write", or a file.
        at: the time at which it was added, ISO 8601.
    """

    name: str
    features: dict[str, float | None]
    source: str = ""
    at: str = ""

    def check(self) -> None:
        """Check it.

        Raises:
            InputError: a name or number that cannot be kept.
        """
        _check_name("workload", self.name)
        if len(self.features) > _FEATURES_MAX:
            raise InputError(
                f"workload {self.name!r}: has {len(self.features)} features; at most {_FEATURES_MAX} are kept"
            )
        for feature, value in self.features.items():
            _check_name("feature", feature)
            if value is not None and not math.isfinite(value):
                raise InputError(f"workload {self.name!r}: {feature} = {value}: must be finite or absent")

    @property
    def values(self) -> dict[str, float]:
        """The features; nan where one has no meaning."""
        return {name: math.nan if value is None else value for name, value in self.features.items()}


class RulesEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="rules"):
    """A rule set, and what it was made for.

    Attributes:
        id: `rules_id` of its text.
        text: the text of the rule file, statistics included where there are any.
        workload: name of the one that it was made for.
        objective: the objective in full.
        how: the method that made it, e.g. "search sharp, 500 evaluations".
        at: the time at which it was added, ISO 8601.
    """

    id: str
    text: str
    workload: str
    objective: str
    how: str = ""
    at: str = ""

    def check(self) -> None:
        """Check it.

        Raises:
            InputError: the text is too long, or the id is not that of the text.
        """
        if len(self.text) > _TEXT_MAX:
            raise InputError(f"rules {self.id!r}: longer than {_TEXT_MAX} characters")
        _check_name("rules", self.id)


class GainEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="gain"):
    """What a rule set gained on a workload against the system as it is.

    Attributes:
        rules: id of the rule set.
        workload: the workload's name.
        objective: the objective in full.
        gain: relative, above zero is better whichever way the objective points.
        low: lower end of its interval; null: there is none yet.
        high: upper end.
        pairs: runs of each side.
        at: the time of the measurement, ISO 8601.
    """

    rules: str
    workload: str
    objective: str
    gain: float
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    at: str = ""

    def check(self) -> None:
        """Check it.

        Raises:
            InputError: a number that is not finite, or ends of the interval that are the wrong way round.
        """
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if not (math.isfinite(self.gain) and low <= high and self.pairs >= 0):
            raise InputError(
                f"gain of {self.rules!r} on {self.workload!r} = {self.gain} ({self.low} to {self.high}), "
                f"{self.pairs} pairs: must be finite, low end first, from so many pairs"
            )


Entry = WorkloadEntry | RulesEntry | GainEntry


def rules_id(bare_text: str) -> str:
    """The id of a rule set: the first 12 hexadecimal digits of SHA-256 of its text without statistics."""
    return hashlib.sha256(bare_text.encode()).hexdigest()[:12]


def _check_name(what: str, name: str) -> None:
    if not (name.isprintable() and 0 < len(name) <= _NAME_MAX):
        raise InputError(f"{what} {name[:120]!r}: must be one line of 1 to {_NAME_MAX} characters")
