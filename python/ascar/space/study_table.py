"""The `[space]` table of a study: what the study makes of the target's space.

[space]
preset = "storage-v5"                           # instead of the target's own space
constraints = ["vm_dirty_ratio <= 40"]
forbidden = [{ fs = "btrfs", block_scheduler = "bfq" }]
pinned = { fs = "ext4" }
tuned = ["block_read_ahead_kb", "block_nr_requests"]  # else every parameter; the others keep their defaults
allow_cost = ["dyn-kernel", "remount"]          # else every cost
allow_weaker = ["btrfs_data_mode=nodatasum"]    # else no value that promises less than the default
change_budget = { reformat-restore = 4 }        # changes of this cost that a search makes at most
change_cost_s = { reformat-restore = 7200 }     # what a change counts for, as the metric `change_cost_s`

[space.parameters.block_read_ahead_kb]          # fewer values, another default (see `ascar.space.tables`);
values = [128, 512]                             # where the target has no parameters of its own: new ones
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from ascar.errors import SpaceError
from ascar.space.cost import change_budget, change_costs_s
from ascar.space.domain import Choices
from ascar.space.fields import Fields
from ascar.space.guarantee import Guarantee
from ascar.space.presets import PRESETS, preset
from ascar.space.suggestion import hint, names_near
from ascar.space.tables import narrowed, parameter_from_table

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from ascar.space.space import Space

_KEYS: Final = (
    "preset",
    "parameters",
    "constraints",
    "forbidden",
    "pinned",
    "tuned",
    "allow_cost",
    "allow_weaker",
    "change_budget",
    "change_cost_s",
)


class _Study(Protocol):
    @property
    def space(self) -> dict[str, Any]: ...


def study_space(study: _Study, base: Space, current: Mapping[str, Any] | None = None) -> Space:
    """The space that a study searches: its `[space]` table applied to the target's space.

    Args:
        study: anything with the table as `space`.
        base: the target's space; the table alone says which of its weaker values are permitted.
        current: the values in force now, at which parameters are pinned whose change cost is not allowed.

    Raises:
        SpaceError: one line naming the key, its value and what is allowed.
    """
    return space_from_table(study.space, base, current)


def space_from_table(
    table: Mapping[str, Any], base: Space, current: Mapping[str, Any] | None = None
) -> Space:
    """The space of a `[space]` table; see `study_space`."""
    fields = Fields.of(table, "space", _KEYS)
    # Constraints and narrowed parameters speak of every value; `allow_weaker` then says which remain.
    space = replace(_with_preset(fields, base), allow_weaker=tuple(Guarantee))
    space = _with_parameters(fields, space)
    space = _with_policy(fields, space, current)
    try:
        return space.check()
    except SpaceError as error:
        raise SpaceError(f"space: {error.message}") from None


def _with_preset(fields: Fields, base: Space) -> Space:
    if "preset" not in fields:
        return base
    name = fields.text("preset")
    if name not in PRESETS:
        raise fields.error("preset", f"must be one of {', '.join(PRESETS)}{hint(name, PRESETS)}")
    if not base.parameters:
        return preset(name)
    if name == base.name:
        return base
    wanted = preset(name)
    for parameter in wanted.parameters:
        if parameter.name not in base:
            known = names_near(parameter.name, base.names)
            raise fields.error(
                "preset", f"has {parameter.name!r}, which this target does not have; it has {known}"
            )
        if isinstance(parameter.domain, Choices):
            for value in parameter.domain.values:
                try:
                    base[parameter.name].canonical(value)
                except SpaceError as error:
                    raise fields.error("preset", f"this target cannot take it: {error.message}") from None
    return wanted


def _with_parameters(fields: Fields, space: Space) -> Space:
    tables = fields.mapping("parameters")
    if not tables:
        return space
    if not space.parameters:
        made = (parameter_from_table(name, table, _path(name)) for name, table in tables.items())
        return replace(space, parameters=tuple(made))
    changed: dict[str, Any] = {}
    for name, table in tables.items():
        path = _path(name)
        if name not in space:
            raise SpaceError(f"{path}: unknown parameter; this target has {names_near(name, space.names)}")
        changed[name] = narrowed(space[name], table, path)
    return replace(space, parameters=tuple(changed.get(p.name, p) for p in space.parameters))


def _path(name: str) -> str:
    """A parameter's key, on one line whatever its name."""
    return f"space.parameters.{name[:80] if name.isprintable() else ascii(name[:80])}"


def _with_policy(fields: Fields, space: Space, current: Mapping[str, Any] | None) -> Space:
    with _located("constraints"):
        for formula in fields.items("constraints"):
            space = space.constrain(formula)
    with _located("forbidden"):
        for combination in fields.items("forbidden", (dict,), 'tables, e.g. { fs = "btrfs" }'):
            space = space.forbid(combination)
    with _located("allow_weaker"):
        space = space.permit_weaker(fields.items("allow_weaker"))
    with _located("pinned"):
        space = space.pin(fields.mapping("pinned"))
    if "tuned" in fields:
        with _located("tuned"):
            space = _only(space, fields.items("tuned"))
    if "change_budget" in fields:
        with _located("change_budget"):
            change_budget({"change_budget": fields.mapping("change_budget")})
    if "change_cost_s" in fields:
        with _located("change_cost_s"):
            change_costs_s({"change_cost_s": fields.mapping("change_cost_s")})
    if "allow_cost" in fields:
        with _located("allow_cost"):
            space = space.restrict(fields.items("allow_cost", (str, int), "change costs"), current)
    return space


def _only(space: Space, tuned: list[str]) -> Space:
    """With every other parameter pinned at its default."""
    for name in tuned:
        space[name]
        if name in space.pinned:
            raise SpaceError(f"{name!r} is pinned too; leave it out of one of them")
    others = {one.name: one.default for one in space.parameters if one.name not in tuned}
    return space.pin({**others, **space.pinned})


@contextmanager
def _located(key: str) -> Generator[None]:
    """Put the key before the message of an error."""
    try:
        yield
    except SpaceError as error:
        message = error.message.removeprefix(f"{key}: ")
        if message.startswith("space."):
            raise SpaceError(message) from None
        own = message.startswith((f"{key}.", f"{key} ="))
        raise SpaceError(f"space.{message}" if own else f"space.{key}: {message}") from None
