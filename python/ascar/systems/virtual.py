"""Systems that exist on paper: virtual time, and what every such target has in common.

A virtual system is a target and its own workload: there is nothing to fill, and what a run of the load would
tell is known already. Studies of it name no `[workload]`.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ascar.errors import StudyError
from ascar.results.trial import Change, category_of
from ascar.systems import Target
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from ascar.space import Configuration, Space, Value

CATEGORIES = 4
_SECONDS_MAX = 1e7


class VirtualClock:
    """A clock that moves only when told to. Call it for the seconds that have passed, like `time.monotonic`.

    A target that owns one offers it as its attribute `clock`; a loop that uses it as its own clock spends
    its budget in the target's time, and hours of tuning pass in milliseconds.
    """

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def __call__(self) -> float:
        """Seconds, monotonic."""
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: time does not run backwards.
        """
        if not seconds >= 0:
            raise ValueError(f"a clock cannot advance by {seconds!r} s; it only runs forwards")
        self._now_s += seconds


class WallClock(VirtualClock):
    """The machine's own clock, for a system that needs the time that it takes."""

    def __call__(self) -> float:
        """Seconds, monotonic."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class VirtualSystem(Target):
    """What targets on paper share: a clock, an empty directory, changes that take their time.

    Attributes:
        space: the parameters of the system.
        clock: the clock of the system's time.
        default_workload: None: it is its own.

    Args:
        space: its parameters.
        change_s: seconds that a change takes, by category of Cao's Table 9.1 (0 to 3).
        clock: the clock of the system's time; None: a virtual one.
    """

    default_workload: str | None = None
    on_machine = False

    def __init__(
        self,
        space: Space,
        change_s: tuple[float, ...] = (0.0,) * CATEGORIES,
        clock: VirtualClock | None = None,
    ) -> None:
        self.space = space
        self.clock = clock or VirtualClock()
        self._known = space
        self._change_s = change_s
        self._current: Configuration | None = None

    def adopt(self, space: Space) -> None:
        """Learn the study's space: the change costs of parameters that only the study knows."""
        self._known = space

    def __enter__(self) -> Self:
        """Begin without a configuration."""
        self._current = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget the configuration."""
        self._current = None

    def apply(self, configuration: Configuration) -> Change:
        """Put a configuration in force; the change takes the seconds of its category."""
        before, self._current = self._current, configuration
        changed, category = self._difference(before, configuration)
        seconds = self._change_s[category] if changed else 0.0
        self.clock.sleep(seconds)
        return Change(changed, category if changed else -1, {"change": seconds}, filled=True)

    def settle(self) -> Mapping[str, float]:
        """There are no caches."""
        return {}

    @property
    def workspace(self) -> Workspace:
        """The directory of temporary files; such a system is its own load, and puts nothing there."""
        return Workspace(Path(tempfile.gettempdir()))

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What was applied last."""
        current = self._current
        return {} if current is None else {name: current[name] for name in names if name in current}

    def prepare(self, workspace: Workspace) -> None:
        """There is nothing to fill."""

    @property
    def current(self) -> Configuration:
        """The configuration in force."""
        assert self._current is not None, "a configuration is applied before the load runs"
        return self._current

    def _difference(self, before: Configuration | None, after: Configuration) -> tuple[tuple[str, ...], int]:
        """Names that changed, and the highest category among them; all of them on the first change."""
        old: Mapping[str, Any] = {} if before is None else before
        if all(name in self._known for name in (*old, *after)):
            difference = self._known.change(old, after)
            return difference.parameters, category_of(difference)
        names = dict.fromkeys((*old, *after))
        return tuple(name for name in names if old.get(name) != after.get(name)), 0


def check_seconds(key: str, seconds: tuple[float, ...]) -> tuple[float, ...]:
    """Seconds by category, once they are known to be four, and sensible.

    Raises:
        StudyError: they are not.
    """
    if len(seconds) != CATEGORIES or not all(0 <= value <= _SECONDS_MAX for value in seconds):
        raise StudyError(
            f"{key} = {list(seconds)!r}: must be {CATEGORIES} numbers of seconds, one a change category "
            f"(0 to 3), each from 0 to {_SECONDS_MAX:g}"
        )
    return seconds
