"""`[guard]`: what protects a system while it is tuned, offline or online."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ascar import _core
from ascar.errors import ExpressionError, StudyError
from ascar.expression import parse
from ascar.study.keys import check_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from ascar.expression import Expression
    from ascar.space import Space

_TABLES_MAX = 1000
_MINUTE_S = 60
_SHARE = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) ?%")
_SIDES = (("floor", "minimum"), ("ceiling", "maximum"))


@dataclass(frozen=True, slots=True)
class GuardLevel:
    """A floor or a ceiling.

    Attributes:
        key: where it stands, with the value as it stands there.
        metric: the metric.
        is_floor: whether the mean must not be less; else it must not be more.
        value: the minimum, or the maximum; of a share, the share.
        is_share: whether it is a share of what clients usually get.
        window_ticks: the mean is over so many ticks. None: as many as usual.
        hold_ticks: nothing is changed for so long after a violation. None: as long as usual.
    """

    key: str
    metric: str
    is_floor: bool
    value: float
    is_share: bool = False
    window_ticks: int | None = None
    hold_ticks: int | None = None


class GuardSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[guard]`: what protects a system while it is tuned.

    Attributes:
        floor: least means of metrics over `window_ticks`, which is the measured part of the load in `ascar
            tune`. A session goes back to its last good setting; a search recommends nothing that breaks one.
            On a server that people use, a minimum such as "80%" is of what clients get under the old values.
        ceiling: greatest means of metrics, likewise; there "150%" is of the same.
        rule: formulas over parameters and metrics that must not become true; the constraints of [space]
            always hold.
        window: local times at which changes are allowed; a search waits for them.
        pace: how fast parameters may change, by their names, in a session.
    """

    floor: tuple[dict[str, Any], ...] = ()
    ceiling: tuple[dict[str, Any], ...] = ()
    rule: tuple[dict[str, Any], ...] = ()
    window: tuple[dict[str, Any], ...] = ()
    pace: dict[str, dict[str, Any]] = {}

    def check(self) -> None:
        """Read every table.

        Raises:
            StudyError: a key is unknown, missing, of the wrong type or out of range.
        """
        for part in ("floor", "ceiling", "rule", "window", "pace"):
            tables = getattr(self, part)
            if len(tables) > _TABLES_MAX:
                raise StudyError(f"guard.{part}: has more than {_TABLES_MAX} tables")
            check_value(f"guard.{part}", tables)
        for level in self.levels:
            least, most = (0.0, 1.0) if level.is_floor else (1.0, 100.0)
            if level.is_share and not least <= level.value <= most:
                raise StudyError(f"{level.key}: must be from {least:.0%} to {most:.0%}")
        _ = self._guard

    @property
    def levels(self) -> tuple[GuardLevel, ...]:
        """Floors and ceilings.

        Raises:
            StudyError: a text is no share.
        """
        return tuple(
            _level(f"guard.{part}[{at}]", key, table)
            for part, key in _SIDES
            for at, table in enumerate(getattr(self, part))
            if isinstance(table.get(key), (int, float, str)) and isinstance(table.get("metric"), str)
        )

    def check_no_share(self, why: str) -> None:
        """See that every limit is a number.

        Args:
            why: why it has to be one.

        Raises:
            StudyError: one is a share.
        """
        for level in self.levels:
            if level.is_share:
                raise StudyError(f"{level.key}: must be a number; {why}")

    @property
    def limits(self) -> tuple[Expression, ...]:
        """Floors and ceilings that are numbers, as formulas that means of metrics have to fulfil.

        Raises:
            StudyError: the name of a metric is not one that a formula can write.
        """
        found: list[Expression] = []
        for text in self._numbers._guard.limits():
            try:
                found.append(parse(text))
            except ExpressionError as error:
                raise StudyError(f"guard: {text!r}: {error.message}; name a metric") from None
        return tuple(found)

    def constrained(self, space: Space) -> Space:
        """A space without the combinations that the rules over its parameters alone forbid.

        Raises:
            SpaceError: no valid configuration is left, or the default is not valid.
        """
        known = set(space.names)
        formulas = [f"not ({rule['forbid']})" for rule in self.rule if _names(rule) <= known]
        return space.constrain(*formulas).check() if formulas else space

    def broken(self, space: Space, values: Mapping[str, Any]) -> tuple[str, ...]:
        """The rules over metrics that a result breaks, as text.

        Args:
            space: the space of the search; rules over its parameters alone are its constraints.
            values: parameters and metrics by name.

        Raises:
            ExpressionError: a rule names neither a parameter nor a metric that was measured.
        """
        broken: list[str] = []
        for rule in self.rule:
            names = _names(rule)
            if names <= set(space.names):
                continue
            missing = sorted(names - set(space.names) - set(values))
            if missing:
                raise ExpressionError(
                    f"guard.rule: {rule['forbid']!r} needs {missing[0]!r}, which is neither a parameter nor "
                    f"a metric of this load; there are {', '.join(sorted(values))}"
                )
            present = {name: values.get(name) for name in names}
            if parse(str(rule["forbid"])).evaluate_or_none(present) is True:
                broken.append(f"not ({rule['forbid']}): {rule['why']}")
        return tuple(broken)

    def rule_names(self) -> list[tuple[int, str, set[str]]]:
        """The rules: the number, the formula, and the names in it."""
        return [(index, str(rule["forbid"]), _names(rule)) for index, rule in enumerate(self.rule)]

    def closed_s(self, now: datetime) -> float | None:
        """Seconds until changes are allowed, from a local time on; None where they never are."""
        minutes = self._guard.opens_in_minutes(now.isoweekday() % 7, 60 * now.hour + now.minute)
        if not minutes:
            return minutes
        return _MINUTE_S * minutes - now.second - now.microsecond / 1e6

    @property
    def _numbers(self) -> GuardSection:
        """The guard without its shares."""
        left = {
            part: tuple(one for one in getattr(self, part) if not isinstance(one.get(key), str))
            for part, key in _SIDES
        }
        return replace(self, **left)

    @property
    def _guard(self) -> _core.Guard:
        # A share is checked above; its table is checked with a number in its place.
        shown = {
            part: tuple(
                {**one, key: 0} if isinstance(one.get(key), str) else one for one in getattr(self, part)
            )
            for part, key in _SIDES
        }
        try:
            return _core.Guard(msgspec.json.encode(replace(self, **shown)).decode())
        except ValueError as error:
            raise StudyError(str(error)) from None


def _names(rule: Mapping[str, Any]) -> set[str]:
    return set(parse(str(rule["forbid"])).names)


def _level(place: str, key: str, table: Mapping[str, Any]) -> GuardLevel:
    """The level of a table, of which metric and value have the right types."""
    given = table[key]
    at = f"{place}.{key} = {given!r:.60}"
    share = _SHARE.fullmatch(given) if isinstance(given, str) else None
    if isinstance(given, str) and share is None:
        raise StudyError(f'{at}: must be a number, or a share of what clients usually get such as "80%"')
    return GuardLevel(
        key=at,
        metric=table["metric"],
        is_floor=key == "minimum",
        value=float(given) if share is None else float(share[1]) / 100,
        is_share=share is not None,
        window_ticks=table.get("window_ticks"),
        hold_ticks=table.get("hold_ticks"),
    )
