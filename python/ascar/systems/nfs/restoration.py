"""What puts a mount of this machine back, by ascar itself or, if it was killed, by the keeper.

    python -m ascar.systems.nfs.restoration < RECORD

`RECORD` is an `NfsRestoration` as JSON; it is in the keeper's journal before anything is changed.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import msgspec

from ascar.catalogues.nfs import nfs
from ascar.errors import InputError, StageFailed
from ascar.nodes.local import LocalNode
from ascar.systems.existing.restoration import foreign
from ascar.systems.nfs.machine import NfsMachine
from ascar.systems.nfs.mounts import KINDS
from ascar.systems.nfs.settings import kept_of, those
from ascar.systems.undo_record import restore

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Value
    from ascar.systems.nfs.mounts import NfsMounted

RESTORE_S = 180.0
"""How long the keeper waits for it."""
_IDLE_S, _LOOK_S = 15.0, 0.5


class NfsRestoration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mount from before a study.

    Attributes:
        source: the server and its export.
        place: the mount point.
        options: what it was mounted with.
        settings: the client's settings by name: of new connections, and of this mount.
        mounts: whether the study mounts it anew, so that it has to be mounted as before.
        left: the values that the study may have left, of options too, by name; a value that is none of them
            is somebody else's. Records of an earlier ascar have none.
    """

    source: str
    place: str
    options: tuple[str, ...]
    settings: dict[str, int]
    mounts: bool
    left: dict[str, tuple[str, ...]] = {}

    def carry_out(self) -> tuple[str, ...]:
        """Mount it as before, and set what new mounts do not keep; what somebody else changed stays.

        Returns:
            What was left alone, a line each.

        Raises:
            InputError: the record names what is no setting of a client.
            StageFailed: somebody uses the mount, so that it stays as it is; or it cannot be mounted.
        """
        names = dict.fromkeys((*self.settings, *self.left))
        for name in names:
            where = nfs()[name].where if name in nfs() else ""
            if where != ("client" if name in self.settings else "mount"):
                raise InputError(f"{name!r:.80}: must be a setting of a client of NFS")
        settings, machine = [nfs()[name] for name in names], NfsMachine(LocalNode())
        mount = machine.mount_of(self.place)
        given = {one.name: one.value_in(self.options) for one in settings if one.where == "mount"}
        old: dict[str, Value] = given | self.settings
        present = machine.values_of(mount if self._is_it(mount) else None, settings)
        left = {name: values for name, values in self.left.items() if name in present}
        others = foreign(left, _texts(old), _texts(present), f" on {self.place}")
        wanted = old | {name: present[name] for name in others}
        machine.write(those(wanted, "connection", "client"))
        if self.mounts:
            mount = self._mount_anew(machine, mount, others)
        if mount is None:
            return tuple(others.values())
        if not self._is_it(mount):
            return *others.values(), f"{self.place}: is {mount.source}, not as ascar left it: left alone"
        machine.write(those(wanted, "dynamic", "client"), mount.device)
        return tuple(others.values())

    def _is_it(self, mount: NfsMounted | None) -> bool:
        """Whether a mount is the one of before: another has values of its own."""
        return mount is not None and mount.kind in KINDS and mount.source == self.source

    def _mount_anew(
        self, machine: NfsMachine, mount: NfsMounted | None, others: Collection[str]
    ) -> NfsMounted | None:
        """Unmount it, once the load that was killed with ascar has ended, and mount it as before.

        Args:
            machine: this machine.
            mount: what is seen at the place.
            others: the settings whose values are somebody else's.

        Returns:
            What is seen at the place then.
        """
        now = () if mount is None else mount.given
        theirs = [one for one in now if one not in kept_of(now, others, "mount")]
        end_s = time.monotonic() + _IDLE_S
        while self._is_it(mount):  # one that came late may lie on another
            try:
                machine.unmount(self.place)
            except StageFailed:
                if time.monotonic() > end_s:
                    raise
                time.sleep(_LOOK_S)
            mount = machine.mount_of(self.place)
        if mount is None:
            machine.mount(self.source, self.place, [*kept_of(self.options, others, "mount"), *theirs])
        return machine.mount_of(self.place)


def _texts(values: Mapping[str, Value]) -> dict[str, str]:
    return {name: nfs()[name].text(value) for name, value in values.items()}


if __name__ == "__main__":
    sys.exit(restore(NfsRestoration, NfsRestoration.carry_out))
