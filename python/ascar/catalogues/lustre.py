"""The parameters of a Lustre client, by kind of device and name; `lustre.toml` lists them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from ascar.catalogues import listed
from ascar.expression import parse

if TYPE_CHECKING:
    from collections.abc import Mapping


_TARGETS = {"osc": "OST", "mdc": "MDT", "obdfilter": "OST", "mdt": "MDT", "llite": ""}
_INSTANCE = re.compile(r"(?:OST|MDT)[0-9A-Fa-f]{4}(?:-[A-Za-z0-9_-]+)?|[0-9a-f]{4,32}")


class LustreSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A parameter that all devices of a kind have; see `lustre.toml`.

    Attributes:
        name: the kind of device and the parameter, such as "osc.max_dirty_mb".
        what: what the parameter does.
        unit: the unit of its numbers.
        range: the least and the greatest number.
        default: the default of Lustre.
        source: where the range and the rule are from.
        greatest: a formula of what a client and its targets allow; `lustre.toml` has its names.
        step: a formula of the distance between two values.
        log: whether its scale is logarithmic.
        zero: what 0 means, where it is outside of the range; empty: it is not allowed, or inside.
        weaker: the values that weaken a guarantee.
        changes: other settings that Lustre changes with it.
        at_most: the setting that it must not exceed when it is set; empty: none.
        expert: whether a study searches it that names no settings.
        since: the first version that has it.
    """

    name: str
    what: str
    unit: str
    range: tuple[int, int]
    default: int
    source: str
    greatest: str = ""
    step: str = "1"
    log: bool = False
    zero: str = ""
    weaker: dict[str, str] = {}
    changes: tuple[str, ...] = ()
    at_most: str = ""
    expert: bool = False
    since: str = "2.5"

    def pattern(self, file_system: str) -> str:
        """What `lctl` calls it on all devices of a file system."""
        kind, parameter = self.name.split(".")
        return parameter_pattern(kind, file_system, parameter)

    def limits(self, known: Mapping[str, int]) -> tuple[int, int, int]:
        """The least and the greatest value, and their distance, where a client and its targets are known.

        The least is above the greatest where no value is left.

        Args:
            known: what both allow, by the names of `lustre.toml`. What is missing limits nothing.
        """
        (low, high), step = self.range, int(_number(self.step, known) or 1)
        greatest = _number(self.greatest, known) if self.greatest else None
        if greatest is not None:
            high = min(high, int(greatest))
        low = -(-low // step) * step
        return low, low + (high - low) // step * step, step


def _number(formula: str, known: Mapping[str, int]) -> float | None:
    """What a formula says; None: one of its names is not known."""
    expression = parse(formula)
    return float(expression.evaluate(known)) if set(expression.names) <= set(known) else None


@cache
def lustre() -> dict[str, LustreSetting]:
    """The settings by name, in an order of writing in which what changes others comes first."""
    return listed("lustre", LustreSetting)


def parameter_pattern(kind: str, file_system: str, parameter: str) -> str:
    """What `lctl` calls a parameter of all devices of a kind; see `is_of` for which of them are meant."""
    return f"{kind}.{file_system}-{_TARGETS[kind]}*.{parameter}"


def is_of(device: str, file_system: str) -> bool:
    """Whether a device is one of a file system; a pattern for "home" has those of "home-2" too.

    Args:
        device: its name behind the kind, such as "home-OST0000-osc-ffff88105db50000".
        file_system: the name of the file system.
    """
    name, _, instance = device.partition(f"{file_system}-")
    return not name and _INSTANCE.fullmatch(instance) is not None
