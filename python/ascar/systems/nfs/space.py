"""The space of NFS: the settings that a study searches, and what two of them demand of each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ascar.catalogues.nfs import nfs
from ascar.expression import parse
from ascar.space import Guarantee, Space, identifier

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ascar.catalogues.nfs import NfsSetting
    from ascar.space import Parameter, Value

_LARGEST = "nfsd.max_block_size"
TAGS = 128
"""The requests that a network block device takes at a time: without a scheduler, no more wait."""


def chosen(
    parameters: str, where: Collection[str] = ("mount", "client", "server", "export", "disk", "boot")
) -> list[NfsSetting]:
    """The settings of a study, in the order of writing.

    Args:
        parameters: "expert" or "wide".
        where: whose settings.
    """
    return [one for one in nfs().values() if one.where in where and one.is_searched(parameters)]


def nfs_space(
    settings: Iterable[NfsSetting], present: Mapping[str, Value], *, largest: int | None = None
) -> Space:
    """The settings as parameters.

    Args:
        settings: the settings.
        present: the values in force by the setting's name, which become the defaults; others have their own.
        largest: the most that the server takes in a request, where that is not searched; None: not known.

    Raises:
        SpaceError: a value in force cannot be one of its setting.
    """
    made = [one.parameter_in_force(present.get(one.name, one.default)) for one in settings]
    names = {one.name for one in made}
    conditions: list[str] = []
    for size in ("rsize", "wsize"):
        if size in names and identifier(_LARGEST) in names:
            conditions.append(f"{size} <= {identifier(_LARGEST)}")
        elif size in names and largest is not None:
            conditions.append(f"{size} <= {largest}")
    if {"disk_scheduler", "disk_nr_requests"} <= names:
        conditions.append(f'disk_scheduler != "none" or disk_nr_requests <= {TAGS}')
    return Space(
        tuple(_without_condition(one, names) for one in made),
        name="nfs",
        constraints=tuple(map(parse, conditions)),
        allow_weaker=tuple(Guarantee),
    )


def _without_condition(parameter: Parameter, names: Collection[str]) -> Parameter:
    """The parameter; its condition counts where the study searches what that speaks of."""
    if parameter.condition is None or set(parameter.condition.names) <= set(names):
        return parameter
    return replace(parameter, condition=None)
