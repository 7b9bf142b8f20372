"""A console that shows what a terminal would act on: control characters of others are only text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.segment import Segment

from ascar.render import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType


class VisibleConsole(Console):
    """Everything that is printed passes here; Rich's own colours and cursor moves are added later."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of what is printed, with what is not printable as its number."""
        for part in super().render(renderable, options):
            text = part.text if part.control else visible(part.text)
            yield part if text == part.text else Segment(text, part.style)
