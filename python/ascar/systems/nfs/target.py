"""What targets of NFS do alike, whether server and client are the study's own or people use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.nfs import nfs
from ascar.systems import Target
from ascar.systems.nfs.settings import NfsEnds, in_order
from ascar.systems.nfs.space import nfs_space

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ascar.catalogues.nfs import NfsSetting
    from ascar.space import Configuration, Value


class NfsTarget(Target):
    """A mount, an export, or both.

    Args:
        settings: the settings of the study.
        largest: the most that the server takes in a request, where that is not searched; None: not known.
    """

    listed = staticmethod(nfs)
    default_workload: str | None = "fio"

    def __init__(self, settings: Iterable[NfsSetting], largest: int | None = None) -> None:
        self._settings = {one.parameter_name: one for one in settings}
        self.space = nfs_space(self._settings.values(), {}, largest=largest)
        self._ends = NfsEnds(None, None, "")
        self._current: Mapping[str, Value] = {}

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """The values in force."""
        wanted = {name: one for name, one in self._settings.items() if name in names}
        told = self._ends.values(wanted.values())
        return {name: told[one.name] for name, one in wanted.items() if one.name in told}

    def _wanted(self, configuration: Configuration) -> dict[str, Value]:
        """What all settings of the study are to be, by their own names in the order of writing."""
        whole = {**{one.name: one.default for one in self.space.parameters}, **configuration}
        return in_order({self._settings[name].name: value for name, value in whole.items()})

    def _differing(self, before: Mapping[str, Value], configuration: Configuration) -> list[NfsSetting]:
        """The settings whose values are others than before."""
        return [self._settings[name] for name in self.space.change(before, configuration).parameters]
