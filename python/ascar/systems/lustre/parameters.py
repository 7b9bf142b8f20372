"""The parameters of a study of a Lustre client, and what they become once the client is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ascar.catalogues.lustre import LustreSetting, lustre
from ascar.errors import StudyError
from ascar.expression import parse
from ascar.space import ChangeCost, Space, identifier, integer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Parameter


def chosen_settings(names: tuple[str, ...] | None, *, wide: bool) -> dict[str, LustreSetting]:
    """The settings of a study, with those that Lustre changes along with them, in the order of writing.

    Args:
        names: those that the study names. None: those of an expert.
        wide: all instead of those of an expert.

    Raises:
        StudyError: there is none, or none of that name.
    """
    known = lustre()
    if names is None:
        names = tuple(one.name for one in known.values() if one.expert or wide)
    if not names:
        raise StudyError("target.settings = []: must name at least one setting")
    for name in names:
        if name not in known:
            raise StudyError(f"target.settings: {name!r:.80}: must be one of {', '.join(known)}")
    wanted, more = set[str](), set(names)
    while more:
        wanted |= more
        more = {
            other for name in more for other in (*known[name].changes, known[name].at_most) if other
        } - wanted
    return {name: one for name, one in known.items() if name in wanted}


def lustre_space(
    settings: Collection[LustreSetting], allowed: Mapping[str, int], present: Mapping[str, int]
) -> Space:
    """The space of settings, and of what Lustre demands of two together.

    Args:
        settings: the settings, in the order of writing.
        allowed: what the client and its targets allow, by the names of `lustre.toml`; empty before they are
            known.
        present: the values in force by the parameter's name, which become the defaults; empty likewise.

    Raises:
        SpaceError: a value in force lies between two that Lustre takes.
    """
    names = {one.name for one in settings}
    limits = [
        parse(f"{identifier(one.name)} <= {_in_unit_of(one, lustre()[one.at_most])}")
        for one in settings
        if one.at_most in names
    ]
    if {"mdc.max_rpcs_in_flight", "mdc.max_mod_rpcs_in_flight"} <= names:
        limits.append(parse("mdc_max_mod_rpcs_in_flight < mdc_max_rpcs_in_flight"))
    parameters = tuple(_parameter(one, allowed, present.get(identifier(one.name))) for one in settings)
    return Space(parameters, name="lustre", constraints=tuple(limits))


def _in_unit_of(one: LustreSetting, other: LustreSetting) -> str:
    """The other setting in the unit of the first."""
    is_finer = (one.unit, other.unit) == ("KiB", "MiB")
    return f"1024 * {identifier(other.name)}" if is_finer else identifier(other.name)


def _parameter(setting: LustreSetting, allowed: Mapping[str, int], present: int | None) -> Parameter:
    low, high, step = setting.limits(allowed)
    if present is not None and low <= present <= high:
        step = math.gcd(step, present - low)  # of smaller blocks than the search goes by
    if low > high:  # no value is left that all targets take
        low, high, step = *(2 * [setting.default if present is None else present]), 1
    special = {0: setting.zero} if setting.zero else {}
    if present is not None and present not in special and not low <= present <= high:
        special[present] = "the value that the client had before"
    parameter = integer(
        identifier(setting.name),
        (low, high),
        step=step,
        log=setting.log,
        default=min(max(setting.default // step * step, low), high),
        cost=ChangeCost.DYN_KERNEL,
        unit=setting.unit,
        description=setting.what,
        native=setting.name,
        special=special,
        weaker=setting.weaker,
    )
    return parameter if present is None else parameter.with_default(present)
