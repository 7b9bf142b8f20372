"""Conversion between a session's setting, keys with values, and a learner's, one number a knob.

A knob of scope `node` or `stream` is as many knobs as it has keys. A choice is its place among the choices.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from ascar import typed
from ascar.capes.axes import Axis
from ascar.errors import InputError
from ascar.typed import finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ascar.capes.axes import Setting

Value = bool | int | float | str
"""Of a key."""

_STEPS = 50
_KEYS_MAX = 1_000


class InterfaceParameter(msgspec.Struct, frozen=True):
    """A knob in the interface's answer to `status`.

    Attributes:
        name: the agents' name of the knob.
        minimum: the least number.
        maximum: the greatest one.
        choices: words, where it takes words.
        step: the step of a learner.
        change_max: the largest change at once.
        interval_ticks: the fewest between two changes.
    """

    name: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Value, ...] = ()
    step: float | None = None
    change_max: float | None = None
    interval_ticks: int = 0


@dataclass(frozen=True, slots=True)
class SettingKey:
    """One key of the setting, and the learner's knob for it.

    Attributes:
        key: the key in `P.ticks`.
        knob: the learner's knob for the key.
        choices: the values that the numbers 0, 1, ... stand for; empty if numbers are the values.
        change_max: the largest change at once, in the knob's numbers; None: any.
        interval_ticks: the fewest between two changes.
    """

    key: str
    knob: Axis
    choices: tuple[Value, ...] = ()
    change_max: float | None = None
    interval_ticks: int = 0

    def number(self, value: object) -> float | None:
        """The learner's number for a value, within the knob's range; None where it is none of the knob's."""
        if self.choices:
            same = [at for at, one in enumerate(self.choices) if _is_same(one, value)]
            return float(same[0]) if same else None
        number = finite(value)
        return None if number is None else min(max(number, self.knob.low), self.knob.high)

    def value(self, number: float) -> Value:
        """The value for a learner's number; whole numbers without a point."""
        if self.choices:
            return self.choices[round(number)]
        return int(number) if float(number).is_integer() else number


def _is_same(one: Value, other: object) -> bool:
    """Whether two values are the same: 64 and 64.0 are, 1 and true are not."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def rules_of(status: Mapping[str, Any]) -> tuple[InterfaceParameter, ...]:
    """The knobs in an answer to `status`.

    Raises:
        InputError: they cannot be read.
    """
    try:
        return typed.convert(status.get("knobs"), tuple[InterfaceParameter, ...], strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"the interface's knobs: {error}; is it of this version?") from None


def knob_of(key: str) -> str:
    """The name of the knob that a key is of."""
    return key.partition("@")[0]


def setting_keys_of(
    rules: Sequence[InterfaceParameter],
    defaults: Mapping[str, Any],
    chosen: Sequence[str],
    ratios: Sequence[str],
) -> tuple[SettingKey, ...]:
    """The keys that a learner sets, in their order.

    Args:
        rules: the knobs as the interface describes them.
        defaults: keys with the values that were there before the session.
        chosen: patterns of knobs' names.
        ratios: patterns of names of knobs of which ratios matter.

    Raises:
        InputError: a pattern fits no knob, or a knob has no range; names the knob.
    """
    names = [one.name for one in rules]
    for what, patterns in (("knobs", chosen), ("ratios", ratios)):
        for pattern in patterns:
            if not any(_fits(name, (pattern,)) for name in names):
                raise InputError(f"{what}: {pattern!r} fits no knob of the interface: {', '.join(names)}")
    by_name = {one.name: one for one in rules if _fits(one.name, chosen)}
    keys = sorted(key for key in defaults if knob_of(key) in by_name)
    if len(keys) > _KEYS_MAX:
        raise InputError(f"knobs: {len(keys)} keys; at most {_KEYS_MAX} can be learnt at once: name fewer")
    found = (_setting_key(key, defaults[key], by_name[knob_of(key)], ratios) for key in keys)
    return tuple(one for one in found if one is not None)


def position(setting_keys: Sequence[SettingKey], setting: Mapping[str, Any]) -> Setting | None:
    """The learner's numbers for a setting; None where one is missing, or is not a value of its knob."""
    found = [one.number(setting.get(one.key)) for one in setting_keys]
    return None if None in found else tuple(one for one in found if one is not None)


def values_of(setting_keys: Sequence[SettingKey], setting: Setting) -> dict[str, Value]:
    """Keys and values for the learner's numbers."""
    return {one.key: one.value(number) for one, number in zip(setting_keys, setting, strict=True)}


def _fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern fits a name; the `*` in a knob's own name is not a pattern."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def _setting_key(
    key: str, default: object, rule: InterfaceParameter, ratios: Sequence[str]
) -> SettingKey | None:
    """The key with its knob; None where it has only one value."""
    group = rule.name if "@" in key else ""  # what the same knob does on another node
    if rule.choices or isinstance(default, bool):
        choices: tuple[Value, ...] = rule.choices or (False, True)
        if len(choices) < 2:
            return None
        if default not in choices:
            raise InputError(
                f"knob {key!r} = {default!r}: is none of its choices, {', '.join(map(str, choices))}; add it "
                "to them in the interface's file, or leave the knob out of `knobs`"
            )
        at = float(choices.index(default))
        knob = Axis(key, at, 0, len(choices) - 1, 1, group=group)
        return SettingKey(key, knob, choices, None, rule.interval_ticks)
    low, high = rule.minimum, rule.maximum
    if low is None or high is None:
        raise InputError(
            f"knob {rule.name!r}: has no minimum and maximum; give both in the interface's file, or leave it "
            "out of `knobs`"
        )
    at = finite(int(default) if isinstance(default, bool) else default)
    if at is None:
        raise InputError(f"knob {key!r} = {default!r}: must be a number; leave it out of `knobs`")
    if not low < high:
        return None
    step = rule.step or (high - low) / _STEPS
    if rule.step is None and float(low).is_integer() and float(high).is_integer():
        step = max(1.0, float(round(step)))
    ratio = low >= 0 and _fits(rule.name, ratios)
    now = min(max(at, low), high)
    knob = Axis(key, now, low, high, min(step, high - low), ratio, group)
    return SettingKey(key, knob, (), rule.change_max, rule.interval_ticks)
