"""The view on a terminal: time left, best so far, the current trial's readings, what failed."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live as RichLive
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ascar.progress import READINGS_SHOWN
from ascar.render import clock, score, sparkline
from ascar.results.trial import Purpose, TrialState

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console, RenderableType

    from ascar.events import Event
    from ascar.progress import StudyProgress

# Drawing costs processor time that the load under test may want: twice a second is often enough.
_REFRESH_PER_S = 2
_BAR_WIDTH = 40


class LiveProgress:
    """Draws a progress on a terminal while it is entered.

    Args:
        progress: the progress to draw.
        console: the terminal to draw on.
    """

    def __init__(self, progress: StudyProgress, console: Console) -> None:
        self._progress = progress
        self._unicode = console.encoding.lower().startswith("utf")
        self._taken_s = time.monotonic()
        self._live = RichLive(
            console=console, refresh_per_second=_REFRESH_PER_S, transient=True, get_renderable=self._draw
        )

    def __enter__(self) -> LiveProgress:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the view away; a terminal that is gone is no reason to fail."""
        with suppress(OSError):
            self._live.stop()

    def take(self, event: Event) -> None:
        """Learn from an event; the next drawing shows it."""
        self._progress.take(event)
        if "left_s" in event.data or event.kind == "study-started":
            self._taken_s = time.monotonic()

    def _draw(self) -> RenderableType:
        progress = self._progress
        if not progress.run_id:
            return Text("preparing ...", style="dim")
        unit = progress.objective.unit
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim")
        rows.add_column()
        if progress.budget_s:
            left_s = max(0.0, progress.left_s - (time.monotonic() - self._taken_s))
            share = ProgressBar(progress.budget_s, progress.budget_s - left_s, width=_BAR_WIDTH)
            rows.add_row("time left", Group(Text(clock(left_s)), share))
        if progress.default is not None:
            rows.add_row("default", score(progress.default, unit))
        if progress.best is not None and progress.best is not progress.default:
            rows.add_row("best so far", Text(score(progress.best, unit), style="bold"))
        rows.add_row("trials", self._counts())
        rows.add_row("now", self._now())
        if progress.scores:
            shown = sparkline(progress.scores[-READINGS_SHOWN:], unicode=self._unicode)
            rows.add_row("readings", Text(shown, no_wrap=True))
        return Group(Text(f"{progress.study} (run {progress.run_id})", style="bold"), rows)

    def _counts(self) -> Text:
        progress = self._progress
        text = Text(f"{progress.trials} done")
        if progress.valid_configurations is not None:
            text.append(f" of {progress.valid_configurations:,} configurations", style="dim")
        if progress.counts[TrialState.PRUNED]:
            text.append(f", {progress.counts[TrialState.PRUNED]} abandoned", style="dim")
        if progress.failed:
            text.append(f", {progress.failed} failed", style="red")
        return text

    def _now(self) -> str:
        progress = self._progress
        trial = progress.current
        if trial is None:
            return "between trials"
        if trial.purpose is Purpose.VERIFY:
            return f"verifying against the default, in turns: run {progress.verified + 1}"
        if trial.purpose is Purpose.REDUCE:
            return f"leaving out what is not needed, in turns: trial {trial.number}"
        return f"trial {trial.number} ({trial.purpose.value})"
