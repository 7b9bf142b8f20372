"""What puts a client's parameters back, by ascar itself or, if it was killed, by the keeper.

    python -m ascar.systems.lustre.restoration RECORD

`RECORD` is a `LustreRestoration` of one client as JSON; it is in the keeper's journal before anything is set.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import msgspec

from ascar.catalogues.lustre import lustre
from ascar.errors import InputError, StageFailed
from ascar.nodes import node_of
from ascar.nodes.local import LocalNode
from ascar.systems.lustre.lctl import Lctl, setting_of
from ascar.systems.undo_record import restore

_SERVING_S, _LOOK_S = 30.0, 1.0
_AGAIN_S = 0.5  # an `lctl` that was started before ascar was killed has ended by then


class LustreRestoration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values from before a study.

    Attributes:
        program: the path of `lctl`.
        file_system: the name of the file system.
        values: the old values by full name, of what is set and of what Lustre changes with it.
        node: the `[[node]]` table of the client. None: this machine.
    """

    program: str
    file_system: str
    values: dict[str, int]
    node: dict[str, Any] | None = None

    def carry_out(self) -> None:
        """Put everything back that still has a device.

        Raises:
            InputError: the record names what is no setting of a client.
            StageFailed: a target does not become connected, or a value is not in force in the end.
            EnvironmentLacks: the node cannot be reached.
        """
        node = LocalNode() if self.node is None else node_of(self.node)
        lctl = Lctl(node, self.program, self.file_system)
        settings = tuple({setting_of(full): None for full in self.values})
        unknown = [name for name in settings if name not in lustre()]
        if unknown:
            raise InputError(f"{unknown[0]!r:.80}: must be a setting of a Lustre client")
        _await_serving(lctl)
        present = lctl.values(settings)  # a file system that was mounted anew has other devices, and defaults
        old = {full: value for full, value in self.values.items() if full in present}
        lctl.put(old)
        time.sleep(_AGAIN_S)
        lctl.put(old)


def _await_serving(lctl: Lctl) -> None:
    """Wait until recovery is over, in which nothing is set."""
    deadline_s = time.monotonic() + _SERVING_S
    while True:
        try:
            lctl.check_serving()
        except StageFailed:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(_LOOK_S)
        else:
            return


if __name__ == "__main__":
    sys.exit(restore(sys.argv[1], LustreRestoration, LustreRestoration.carry_out))
