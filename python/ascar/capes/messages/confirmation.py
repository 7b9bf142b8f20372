"""Whether the nodes have confirmed a kill: the interface asks them, and tells how far it has come."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.capes.messages.bus import Bus

_LOOK_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class UnconfirmedNode:
    """A node that has not said that its knobs are back.

    Attributes:
        node: the name of the node.
        state: asked, failed or unreachable.
        error: the node's answer instead; None where it has not answered.
        silent_ticks: ticks since it was last heard; None: never.
    """

    node: str
    state: str
    error: str | None
    silent_ticks: int | None

    def __str__(self) -> str:
        """What is known of it."""
        error = f": {self.error}" if self.error else ""
        heard = "never heard" if self.silent_ticks is None else f"silent for {self.silent_ticks} ticks"
        return f"{self.node} ({self.state}{error}; {heard})"


@dataclass(frozen=True, slots=True)
class KillConfirmation:
    """How far a kill has come.

    Attributes:
        asked_s: seconds since the nodes were asked.
        confirmed: nodes whose knobs are back.
        unconfirmed: nodes that have not said so.
        nodes: those of them that are named.
        not_stored: why the kill is not on the interface's disk; None where it is.
    """

    asked_s: float
    confirmed: int
    unconfirmed: int
    nodes: tuple[UnconfirmedNode, ...]
    not_stored: str | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """As the interface tells it; what is missing there is not confirmed."""
        nodes = cast("list[dict[str, Any]]", document.get("nodes") or [])
        return cls(
            asked_s=float(document.get("asked_s", 0.0)),
            confirmed=int(document.get("confirmed", 0)),
            unconfirmed=int(document.get("unconfirmed", 1)),
            nodes=tuple(
                UnconfirmedNode(
                    str(one.get("node")), str(one.get("state")), one.get("error"), one.get("silent_ticks")
                )
                for one in nodes
            ),
            not_stored=document.get("not_stored"),
        )

    @property
    def is_complete(self) -> bool:
        """Whether every node has put its knobs back, and a new start of the interface will know."""
        return self.unconfirmed == 0 and self.not_stored is None

    def lines(self) -> list[str]:
        """In words."""
        verb = "has" if self.confirmed == 1 else "have"
        asked = self.confirmed + self.unconfirmed
        told = [f"kill: {self.confirmed} of {asked} nodes {verb} put every knob back"]
        if self.unconfirmed:
            named = ", ".join(str(one) for one in self.nodes)
            more = self.unconfirmed - len(self.nodes)
            others = f" and {more} more" if more else ""
            told += [
                f"not confirmed after {self.asked_s:.1f} s: {named}{others}",
                "these are asked again; their knobs go back without them when their lease runs out",
            ]
        if self.not_stored is not None:
            told.append(f"not on the interface's disk: {self.not_stored}")
        return told


async def kill_confirmation(bus: Bus, document: dict[str, Any], wait_s: float) -> dict[str, Any]:
    """What has come of a kill after at most `wait_s` seconds.

    Args:
        bus: the session.
        document: the answer to the kill.
        wait_s: how long to wait until every node has confirmed it.

    Returns:
        The interface's last word of it; the answer to the kill where the session is not killed any more.

    Raises:
        MessagingError: the interface does not answer any more.
    """
    end = time.monotonic() + wait_s
    while not KillConfirmation.of(document).is_complete and (left := end - time.monotonic()) > 0:
        await asyncio.sleep(min(_LOOK_EVERY_S, left))
        found = await bus.control("confirmation", why="")
        now = cast("dict[str, Any]", found).get("kill") if isinstance(found, dict) else None
        if not isinstance(now, dict):
            return document
        document = cast("dict[str, Any]", now)
    return document
