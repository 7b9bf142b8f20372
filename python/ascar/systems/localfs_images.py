"""Filled images, saved and brought back: the same layout of the same files in every trial.

Cao 6.6.2 ("+alloc"): block allocation is not deterministic; restoring an image of the filled device before
each run took the variation of ext4 from 40% to 2%. Whether restoring is also faster than making and filling a
file system depends on the load, so "auto" measures both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable

FRESH_S_WORTHWHILE = 1.5
"""Where making and filling takes less than this, "auto" does not try whether restoring takes less still."""


@dataclass(slots=True)
class _Saved:
    name: str
    bytes: int


@dataclass(slots=True)
class SavedImages:
    """Which layouts have a saved image, and which are worth one.

    Attributes:
        state: the study's: "fresh" and "reuse" save nothing, "restored" everything, "auto" what is faster.
        limit_bytes: disk space for all saved images; the one not used for longest goes first.
    """

    state: str
    limit_bytes: int
    _saved: dict[Hashable, _Saved] = field(default_factory=dict[Any, _Saved])
    _fresh_s: dict[Hashable, list[float]] = field(default_factory=dict[Any, list[float]])
    _slower: set[Hashable] = field(default_factory=set[Any])
    _count: int = 0

    def name_of(self, layout: Hashable) -> str | None:
        """The saved image of a layout, if there is one; it counts as used."""
        saved = self._saved.pop(layout, None)
        if saved is None:
            return None
        self._saved[layout] = saved
        return saved.name

    def filled(self, layout: Hashable, fresh_s: float) -> None:
        """A layout was made and filled afresh within so many seconds."""
        self._fresh_s.setdefault(layout, []).append(fresh_s)

    def is_worth_saving(self, layout: Hashable, size_bytes: int) -> bool:
        """Whether to save the image of a layout just filled.

        In "auto" only when the same layout came a second time: most configurations never do.
        """
        if self.state not in ("auto", "restored") or size_bytes > self.limit_bytes or layout in self._saved:
            return False
        fresh_s = self._fresh_s.get(layout, [])
        return self.state == "restored" or (
            layout not in self._slower and len(fresh_s) >= 2 and min(fresh_s) >= FRESH_S_WORTHWHILE
        )

    def make_room(self, size_bytes: int) -> list[str]:
        """Names of saved images that have to go for one of this size."""
        gone: list[str] = []
        while self._saved and sum(one.bytes for one in self._saved.values()) + size_bytes > self.limit_bytes:
            oldest = next(iter(self._saved))
            gone.append(self._saved.pop(oldest).name)
        return gone

    def next_name(self) -> str:
        """A name that no saved image had."""
        self._count += 1
        return f"filled-{self._count}"

    def saved(self, layout: Hashable, name: str, size_bytes: int) -> None:
        """An image was saved."""
        self._saved[layout] = _Saved(name, size_bytes)

    def loaded(self, layout: Hashable, load_s: float) -> str | None:
        """An image was brought back within so many seconds; its name if "auto" should do so no more."""
        fresh_s = self._fresh_s.get(layout)
        if self.state != "auto" or not fresh_s or load_s <= min(fresh_s):
            return None
        self._slower.add(layout)
        return self.drop(layout)

    def drop(self, layout: Hashable) -> str | None:
        """Forget a layout's image; its name."""
        saved = self._saved.pop(layout, None)
        return saved.name if saved else None
