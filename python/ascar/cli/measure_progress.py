"""What a session under way shows: one line, with the time left; always on stderr."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ascar.cli.output import notes, say
from ascar.cli.text import clock, number

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.status import Status

    from ascar.pilot import Plan, Session

__all__ = ["Told", "progress_line", "showing"]

# Where there is no terminal, a line after a round, but not more often than this.
_LINE_EVERY_S = 5.0


class Told:
    """Takes what a session tells after each round, and keeps the last.

    Args:
        plan: of the session.
        status: the line on a terminal; None: lines are printed, unless it is quiet.
        quiet: nothing is shown.
    """

    def __init__(self, plan: Plan, status: Status | None, *, quiet: bool) -> None:
        self.plan = plan
        self.last: Session | None = None
        self._status = status
        self._quiet = quiet
        self._said_s = time.monotonic()

    def take(self, session: Session) -> None:
        """Show what is known."""
        self.last = session
        if self._quiet or session.ended:
            return
        if self._status is not None:
            self._status.update(progress_line(self.plan, session))
        elif time.monotonic() - self._said_s >= _LINE_EVERY_S:
            self._said_s = time.monotonic()
            say(progress_line(self.plan, session))

    def close(self) -> None:
        """Take the line away."""
        if self._status is not None:
            self._status.stop()


@contextmanager
def showing(plan: Plan, *, quiet: bool = False) -> Generator[Told]:
    """What shows a session's progress while the context lasts.

    Args:
        plan: of the session.
        quiet: show nothing.
    """
    console = notes()
    if quiet or not console.is_terminal:
        yield Told(plan, None, quiet=quiet)
        return
    with console.status("first round ...", refresh_per_second=2) as status:
        yield Told(plan, status, quiet=False)


def progress_line(plan: Plan, session: Session) -> str:
    """E.g. "round 7: mb_per_s 812.4 ± 6.1% of ± 5.0%; about 0:40 left, at most 9:13"."""
    parts: list[str] = []
    if session.speed_decides and session.speed is not None:
        width = session.speed.ci_width_relative
        parts.append(_known("work_per_s", session.speed.work_per_s, width, plan.goal.interval_width))
    elif not session.speed_decides:
        for finding in session.findings:
            goal, found = finding.indicator.goal, finding.measurement
            if goal is not None and found is not None:
                name = finding.indicator.name
                parts.append(_known(name, found.mean, found.ci_width_relative, goal.interval_width))
    most_s = max(0.0, plan.limits.session_s - session.seconds)
    left = f"at most {clock(most_s)}"
    if session.left_s is not None:
        left = f"about {clock(session.left_s)} left, {left}"
    known = ", ".join(parts) or "nothing known yet"
    return f"round {len(session.rounds)}: {known}; {left}"


def _known(name: str, mean: float, width: float | None, goal: float) -> str:
    around = "no interval yet" if width is None else f"± {width / 2:.1%} of ± {goal / 2:.1%}"
    return f"{name} {number(mean)} {around}"
