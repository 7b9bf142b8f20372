"""A node of a testbed: a machine that the testbed itself turns on and off."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ascar.nodes import Node

if TYPE_CHECKING:
    from collections.abc import Collection


@runtime_checkable
class TestbedMachine(Node, Protocol):
    """A node that can be booted and cut. It is off until it is booted for the first time."""

    def boot(self, limit_s: float) -> None:
        """Turn it on, and return when it runs commands; one that is on stays as it is.

        Args:
            limit_s: how long it may take.

        Raises:
            EnvironmentLacks: what it needs is not there.
            WorkError: it does not come up in time.
        """
        ...

    def cut(self) -> None:
        """Cut its power: all of its processes are killed, and what it has not flushed is lost.

        One that is off stays off.
        """
        ...

    @property
    def alive(self) -> bool:
        """Whether it is on."""
        ...

    def close(self) -> None:
        """End it for good, and remove what it has on this machine; more than once is allowed."""
        ...


def close_all(machines: Collection[TestbedMachine]) -> None:
    """End nodes for good, all at the same time; returns when each is gone.

    A node takes up to seconds to go, for its memory is given back. One whose end fails keeps none of the
    others from theirs; the first failure is raised when all have been ended.
    """
    with ThreadPoolExecutor(max(1, len(machines))) as pool:
        ending = [pool.submit(machine.close) for machine in machines]
        wait(ending)
    for one in ending:
        one.result()
