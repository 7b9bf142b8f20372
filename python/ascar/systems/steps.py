"""How long each step of a change takes."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@dataclass(slots=True)
class SecondsByStep:
    """Seconds by step, in the order of the steps."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        """Time a step; what a step of that name took before counts, too."""
        start_s = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start_s
