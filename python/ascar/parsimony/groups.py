"""Which parameters are left out together: delta debugging over groups (Zeller and Hildebrandt 2002)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Names = tuple[str, ...]


@dataclass(slots=True)
class Shrinking:
    """A list of names that gets shorter as long as what is left is good enough.

    Attributes:
        kept: the names that are left, the most important ones first.
        good: given the names to keep, those that are kept then (others may be needed to make them valid), or
            None if that is not good enough.
    """

    kept: Names
    good: Callable[[Names], Names | None]
    _is_whole: bool = True
    _needed: dict[str, Names] = field(default_factory=dict[str, "Names"])

    def run(self, guess: int) -> None:
        """Leave out as many as possible.

        All names beyond the first `guess` are tried first. A group that cannot be left out is halved: its
        less important half is tried, then the other. In the end each name that is kept was tried alone, with
        nothing left out since: the list is 1-minimal.

        It may be asked again once `good` has more patience: groups only if nothing could be left out before.
        """
        if self._is_whole:
            sure, unsure = self.kept[:guess], self.kept[guess:]
            self._leave_out(unsure)
            self._halve(tuple(name for name in self.kept if name in sure) if unsure else self.kept)
        self._needed.clear()
        while retry := [name for name in self.kept if self._needed.get(name) != self.kept]:
            for name in reversed(retry):
                self._leave_out((name,))

    def _leave_out(self, group: Names) -> None:
        group = tuple(name for name in group if name in self.kept)
        if not group:
            return
        left = tuple(name for name in self.kept if name not in group)
        found = self.good(left) if left else None
        if found is not None and len(found) < len(self.kept):
            self.kept = tuple(name for name in self.kept if name in found)
            self._is_whole = False
        elif len(group) == 1:
            self._needed[group[0]] = self.kept
        else:
            self._halve(group)

    def _halve(self, group: Names) -> None:
        half = len(group) // 2
        self._leave_out(group[half:])
        self._leave_out(group[:half])


def shrunk(names: Sequence[str], guess: int, good: Callable[[Names], Names | None]) -> Names:
    """What is left of the names; see `Shrinking`."""
    shrinking = Shrinking(tuple(names), good)
    shrinking.run(guess)
    return shrinking.kept
