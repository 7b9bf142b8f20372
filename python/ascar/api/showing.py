"""What a function shows while it runs: in a notebook a line that changes, on a terminal a line at a time."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import TYPE_CHECKING, Any

from ascar.render import visible

if TYPE_CHECKING:
    from ascar.events import Event, Listener
    from ascar.objective import Objective

_EVERY_S = 0.5


def notebook_display() -> Any:
    """IPython's `display`, where this is a notebook; else None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display


class ProgressLines:
    """Shows lines of text.

    Args:
        progress: False: shows nothing; None: only in a notebook and on a terminal.
    """

    def __init__(self, progress: bool | None) -> None:
        self._display = None if progress is False else notebook_display()
        self._prints = progress is True or (progress is None and sys.stderr.isatty())
        self._handle: Any = None
        self._shown_s = -_EVERY_S

    @property
    def in_notebook(self) -> bool:
        """Whether lines take each other's place."""
        return self._display is not None

    def say(self, line: str, *, now: bool = True) -> None:
        """Show a line.

        Args:
            line: the line.
            now: show it even where the one before is not half a second old.
        """
        if not now and time.monotonic() - self._shown_s < _EVERY_S:
            return
        self._shown_s = time.monotonic()
        if self._display is not None:
            self._change(line)
        elif self._prints:
            sys.stderr.write(f"{visible(line)}\n")
            sys.stderr.flush()

    def _change(self, line: str) -> None:
        assert self._display is not None, "this is a notebook"
        shown = {"text/plain": line, "text/html": f"<code>{escape(line)}</code>"}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def study_listener(objective: Objective, progress: bool | None) -> Listener:
    """A listener that shows how a study goes on."""
    from ascar.progress import StudyProgress, line_of

    lines, known = ProgressLines(progress), StudyProgress(objective)

    def listen(event: Event) -> None:
        known.take(event)
        if line := line_of(known, event):
            lines.say(line)

    return listen
