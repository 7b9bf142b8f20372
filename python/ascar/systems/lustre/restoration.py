"""What puts a client's parameters back, by ascar itself or, if it was killed, by the keeper.

    python -m ascar.systems.lustre.restoration < RECORD

`RECORD` is a `LustreRestoration` of one client as JSON; it is in the keeper's journal before anything is set.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.catalogues.lustre import lustre
from ascar.errors import InputError, StageFailed
from ascar.nodes import node_of
from ascar.nodes.local import LocalNode
from ascar.systems.lustre.lctl import Lctl, setting_of
from ascar.systems.undo_record import restore

if TYPE_CHECKING:
    from collections.abc import Mapping

_CUT_WHEN_CONNECTED = frozenset({"osc.max_pages_per_rpc"})
_SERVING_S, _LOOK_S = 30.0, 1.0
_AGAIN_S = 0.5  # an `lctl` that was started before ascar was killed has ended by then


class LustreRestoration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values from before a study.

    Attributes:
        program: the path of `lctl`.
        file_system: the name of the file system.
        values: the old values by full name, of what is set and of what Lustre changes with it.
        node: the `[[node]]` table of the client. None: this machine.
        left: the values that the study has left on all devices, by setting: others are somebody else's. None:
            a change was under way, and any value may be the study's.
    """

    program: str
    file_system: str
    values: dict[str, int]
    node: dict[str, Any] | None = None
    left: dict[str, int] | None = None

    def carry_out(self) -> tuple[str, ...]:
        """Put everything back that still has a device, and that nobody else has changed.

        Returns:
            What was left alone, a line each.

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
        others = foreign(self.left, self.values, present)
        old = {full: value for full, value in self.values.items() if full in present and full not in others}
        lctl.put(old)
        if self.left is None:
            time.sleep(_AGAIN_S)
            lctl.put(old)
        return tuple(others.values())


def foreign(
    left: Mapping[str, float] | None, old: Mapping[str, float], present: Mapping[str, float]
) -> dict[str, str]:
    """Settings with values that are neither old nor the study's, with a line that says so.

    What Lustre changes by itself, along with others or when a target connects anew, is nobody's.

    Args:
        left: the values that the study has left, by setting. None: any may be.
        old: the values from before it, by full name.
        present: the values now; what has gone is not looked at.
    """
    found: dict[str, str] = {}
    moves = {other for one in lustre().values() for other in one.changes} | _CUT_WHEN_CONNECTED
    for full, before in old.items():
        setting = setting_of(full)
        if left is None or full not in present or setting in moves:
            continue
        mine = left.get(setting, before)
        if present[full] not in (mine, before):
            told = f"{full}: is {present[full]:g}, not {mine} as ascar left it"
            found[full] = f"{told}: somebody else changed it"
    return found


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
    sys.exit(restore(LustreRestoration, LustreRestoration.carry_out))
