"""What `ascar apply --confirm` has put in force: it is confirmed in time, or put back by the keeper."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, Refused, WorkError
from ascar.systems.keeper import ROOTS_STATE, Keeper

if TYPE_CHECKING:
    from ascar.systems.keeper_replies import Confirmation

CONFIRM_MIN_S, CONFIRM_MAX_S = 1.0, 604_800.0
"""The least and the longest time that `ascar apply --confirm` waits: a second, a week."""


def confirm(owner: str, named: str) -> int:
    """Let what an owner has put in force stay; how many changes that are.

    The user's keeper is asked, and root's where root has ever changed anything here: a configuration may have
    changes of both.

    Args:
        owner: who made the changes.
        named: what messages call it.

    Raises:
        EnvironmentLacks: no keeper, or root is needed and cannot be had.
        Refused: nothing of that owner waits; the message says what does.
        WorkError: the time was over, and it was put back.
    """
    with ExitStack() as held:
        keepers = [held.enter_context(Keeper("confirm", user=True))]
        lacking: EnvironmentLacks | None = None
        if ROOTS_STATE.exists():
            try:
                keepers.append(held.enter_context(Keeper("confirm")))
            except EnvironmentLacks as error:
                lacking = error
        told = [(keeper, keeper.confirmation()) for keeper in keepers]
        waiting = [keeper for keeper, one in told if any(it.owner == owner for it in one.unconfirmed)]
        if waiting:
            return sum(keeper.confirm(owner) for keeper in waiting)
        if lacking is not None:
            raise lacking
        raise _nothing_waits(owner, named, [one for _, one in told])


def _nothing_waits(owner: str, named: str, told: list[Confirmation]) -> Refused | WorkError:
    for one in told:
        if one.reverted is not None and one.reverted.owner == owner:
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.reverted.at_unix_s))
            return WorkError(f"{named}: was put back at {at}, before it was confirmed; apply it again")
    others = [f"{it.owner} ({it.left_s} s left)" for one in told for it in one.unconfirmed]
    waits = f"; {' and '.join(others)} does" if others else ""
    return Refused(
        f"{named}: nothing of it waits for a confirmation{waits}; `ascar apply --confirm` makes it wait"
    )
