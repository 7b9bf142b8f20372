"""What puts a mount of this machine back, by ascar itself or, if it was killed, by the keeper.

    python -m ascar.systems.nfs.restoration < RECORD

`RECORD` is an `NfsRestoration` as JSON; it is in the keeper's journal before anything is changed.
"""

from __future__ import annotations

import sys
import time

import msgspec

from ascar.catalogues.nfs import nfs
from ascar.errors import InputError, StageFailed
from ascar.nodes.local import LocalNode
from ascar.systems.mount_table import MOUNTINFO, mounts_in
from ascar.systems.nfs.machine import NfsMachine
from ascar.systems.undo_record import restore

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
    """

    source: str
    place: str
    options: tuple[str, ...]
    settings: dict[str, int]
    mounts: bool

    def carry_out(self) -> None:
        """Mount it as before, and set what new mounts do not keep.

        Raises:
            InputError: the record names what is no setting of a client.
            StageFailed: somebody uses the mount, so that it stays as it is; or it cannot be mounted.
        """
        unknown = [name for name in self.settings if name not in nfs() or nfs()[name].where != "client"]
        if unknown:
            raise InputError(f"{unknown[0]!r:.80}: must be a setting of a client of NFS")
        machine = NfsMachine(LocalNode())
        if self.mounts:
            self._write(machine, "connection", None)
            self._unmount(machine)
            # What somebody else has mounted there since is left alone.
            if all(one.place != self.place for one in mounts_in(machine.read([MOUNTINFO])[0])):
                machine.mount(self.source, self.place, self.options)
        mount = machine.mount_of(self.place)
        # Another mount than that of before has values of its own.
        if mount is not None and mount.source == self.source:
            self._write(machine, "dynamic", mount.device)

    def _unmount(self, machine: NfsMachine) -> None:
        """Unmount it, once the load that was killed with ascar has ended."""
        end_s = time.monotonic() + _IDLE_S
        while (mount := machine.mount_of(self.place)) is not None and mount.source == self.source:
            try:
                machine.unmount(self.place)
            except StageFailed:
                if time.monotonic() > end_s:
                    raise
                time.sleep(_LOOK_S)

    def _write(self, machine: NfsMachine, context: str, number: str | None) -> None:
        settings = ((nfs()[name], value) for name, value in self.settings.items())
        machine.write({one.file(number): str(value) for one, value in settings if one.context == context})


if __name__ == "__main__":
    sys.exit(restore(NfsRestoration, NfsRestoration.carry_out))
