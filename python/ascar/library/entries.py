"""What a library holds: workloads with their load signatures, solutions found for them, and their gains."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping  # noqa: TC003  # the structs' types are read at run time
from typing import Literal

import msgspec

from ascar.errors import InputError
from ascar.rules import RuleSet
from ascar.space import Value  # noqa: TC001

_NAME_MAX = 100
_FEATURES_MAX = 500
_TEXT_MAX = 1 << 20
_VALUES_MAX = 10_000
_VALUES = "a table of values by name"
_CONTENTS = {"rules": "the text of a rule file", "configuration": _VALUES, "setting": _VALUES}

Kind = Literal["rules", "configuration", "setting"]


class WorkloadEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="workload"):
    """A workload.

    Attributes:
        name: unique in the library.
        features: the load signature: the features by name; null where one has no meaning.
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


class SolutionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="solution"):
    """What was found for a workload: rules, a configuration, or a setting.

    Attributes:
        id: `solution_id` of what it is.
        kind: "rules": the text of a rule file, statistics included where there are any; "configuration":
            values by parameter, of `ascar tune`; "setting": values by setting key, of `ascar capes`.
        content: the text, or the values.
        workload: name of the workload that it was made for.
        objective: the objective in full.
        system: the kind of the system that it is valid for, e.g. "localfs"; "" for rules, which the
            controllers of any system follow.
        how: the method that made it, e.g. "search sharp, 500 evaluations".
        at: the time at which it was added, ISO 8601.
    """

    id: str
    kind: Kind
    content: str | dict[str, Value]
    workload: str
    objective: str
    system: str = ""
    how: str = ""
    at: str = ""

    def check(self) -> None:
        """Check it.

        Raises:
            InputError: the content is too long, of another kind, or not what the id was made of.
        """
        _check_name(self.kind, self.id)
        if isinstance(self.content, str) != (self.kind == "rules"):
            raise InputError(f"{self.kind} {self.id!r}: content must be {_CONTENTS[self.kind]}")
        if len(self.content) > (_TEXT_MAX if isinstance(self.content, str) else _VALUES_MAX):
            raise InputError(f"{self.kind} {self.id!r}: content is longer than is kept")
        if self.id != solution_id(self.content, self.system):
            raise InputError(f"id = {self.id!r} is not that of the content")

    @property
    def rule_set(self) -> RuleSet:
        """The rules; only of kind "rules"."""
        assert isinstance(self.content, str), "only rules are text"
        return RuleSet.parse(self.content)

    @property
    def values(self) -> dict[str, Value]:
        """The values; not of kind "rules"."""
        assert isinstance(self.content, dict), "rules have no values"
        return self.content


class GainEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="gain"):
    """What a solution gained on a workload against the system as it is.

    Attributes:
        solution: id of the solution.
        workload: the workload's name.
        objective: the objective in full.
        gain: relative, above zero is better whichever way the objective points.
        low: lower end of its interval; null: there is none yet.
        high: upper end.
        pairs: runs of each side.
        at: the time of the measurement, ISO 8601.
    """

    solution: str
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
                f"gain of {self.solution!r} on {self.workload!r} = {self.gain} ({self.low} to {self.high}), "
                f"{self.pairs} pairs: must be finite, low end first, from so many pairs"
            )


Entry = WorkloadEntry | SolutionEntry | GainEntry


class RulesEntry1(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="rules"):
    """A rule set as version 1 of the format wrote it."""

    id: str
    text: str
    workload: str
    objective: str
    how: str = ""
    at: str = ""


class GainEntry1(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="gain"):
    """A gain as version 1 wrote it."""

    rules: str
    workload: str
    objective: str
    gain: float
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    at: str = ""


def upgraded(entry: WorkloadEntry | RulesEntry1 | GainEntry1) -> Entry:
    """An entry of version 1 as it is written now."""
    match entry:
        case RulesEntry1():
            return SolutionEntry(
                entry.id, "rules", entry.text, entry.workload, entry.objective, "", entry.how, entry.at
            )
        case GainEntry1():
            return GainEntry(
                entry.rules,
                entry.workload,
                entry.objective,
                entry.gain,
                entry.low,
                entry.high,
                entry.pairs,
                entry.at,
            )
        case _:
            return entry


def solution_id(content: str | Mapping[str, Value], system: str = "") -> str:
    """The first 12 hexadecimal digits of SHA-256 of rules without statistics, or of values and their system.

    Raises:
        InputError: the text is not a rule set.
    """
    if isinstance(content, str):
        text = RuleSet.parse(content).bare().text().encode()
    else:
        text = msgspec.json.encode((system, content), order="deterministic")
    return hashlib.sha256(text).hexdigest()[:12]


def _check_name(what: str, name: str) -> None:
    if not (name.isprintable() and 0 < len(name) <= _NAME_MAX):
        raise InputError(f"{what} {name[:120]!r}: must be one line of 1 to {_NAME_MAX} characters")
