"""Values of NFS settings as options, and the ones of them that go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.nfs import nfs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ascar.space import Value

_BFQ = ("disk.slice_idle", "disk.timeout_sync")
"""What the disk has under one scheduler alone."""


def in_order(wanted: Mapping[str, Value]) -> dict[str, Value]:
    """Values by the setting's name in the order of writing, without what the scheduler does not have."""
    known = {name: wanted[name] for name in nfs() if name in wanted}
    if known.get("disk.scheduler") != "bfq":
        known = {name: value for name, value in known.items() if name not in _BFQ}
    return known


def those(wanted: Mapping[str, Value], context: str, *where: str) -> dict[str, Value]:
    """The values of those settings that take effect in a context, by name.

    Args:
        wanted: values by the setting's name.
        context: as `NfsSetting.context`.
        where: whose settings, as `NfsSetting.where`.
    """
    return {
        name: value
        for name, value in wanted.items()
        if nfs()[name].context == context and nfs()[name].where in where
    }


def options_of(wanted: Mapping[str, Value], where: str) -> tuple[str, ...]:
    """The options of a mount, an export or a kernel, of those settings that are wanted."""
    settings = ((nfs()[name], value) for name, value in wanted.items())
    return tuple(text for one, value in settings if one.where == where and (text := one.option(value)))


def kept_of(given: Iterable[str], names: Collection[str], where: str) -> list[str]:
    """The options of a mount or an export that none of the settings sets.

    Args:
        given: its options.
        names: the settings by name.
        where: what options they are, as `NfsSetting.where`.
    """
    words = {word for name in names if nfs()[name].where == where for word in nfs()[name].spelled}
    return [one for one in given if one.partition("=")[0] not in words]
