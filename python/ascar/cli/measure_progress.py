"""What measuring under way shows: one line, with the time left; always on stderr."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ascar.cli.output import notes, say
from ascar.render import clock, number, percentage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from rich.status import Status

    from ascar.pilot import ContestPlan, ContestSession, MeasurementPlan, Session

# Where there is no terminal, a line after a round, but not more often than this; on one, the line changes.
_LINE_EVERY_S = 5.0
_CHANGE_EVERY_S = 0.25


class _State(Protocol):
    """What is known after a round."""

    @property
    def ended(self) -> str: ...


_S = TypeVar("_S", bound=_State)


class Told(Generic[_S]):
    """Takes what is told after each round, and keeps the last.

    Args:
        line_of: the line to show for a report.
        status: the line on a terminal; None: lines are printed, unless it is quiet.
        quiet: nothing is shown.
    """

    def __init__(self, line_of: Callable[[_S], str], status: Status | None, *, quiet: bool) -> None:
        self.last: _S | None = None
        self._line_of = line_of
        self._status = status
        self._quiet = quiet
        # A line on a terminal is there from the first round on.
        self._said_s = time.monotonic() if status is None else -math.inf

    def take(self, state: _S) -> None:
        """Show what is known."""
        self.last = state
        every_s = _LINE_EVERY_S if self._status is None else _CHANGE_EVERY_S
        now_s = time.monotonic()
        if self._quiet or state.ended or now_s - self._said_s < every_s:
            return
        self._said_s = now_s
        if self._status is None:
            say(self._line_of(state))
            return
        from rich.text import Text

        # As it is: a label or a metric's name may have brackets, which would be markup.
        self._status.update(Text(self._line_of(state)))

    def close(self) -> None:
        """Take the line away."""
        if self._status is not None:
            self._status.stop()


@contextmanager
def showing(line_of: Callable[[_S], str], *, quiet: bool = False) -> Generator[Told[_S]]:
    """What shows progress while the context lasts.

    Args:
        line_of: the line to show for each round's report.
        quiet: show nothing.
    """
    if quiet:  # without even asking what the terminal can show, which takes longer than the rest
        yield Told(line_of, None, quiet=True)
        return
    console = notes()
    if not console.is_terminal:
        yield Told(line_of, None, quiet=False)
        return
    with console.status("first round ...", refresh_per_second=2) as status:
        yield Told(line_of, status, quiet=False)


def progress_line(plan: MeasurementPlan, session: Session) -> str:
    """E.g. "round 7: mb_per_s 812.4 ± 6.1% of ± 5.0%; about 0:40 left, at most 9:13"."""
    parts: list[str] = []
    if session.speed_decides and session.speed is not None:
        width = session.speed.ci_width_relative
        wanted = (plan.speed or plan.goal).interval_width
        parts.append(_known("work_per_s", session.speed.work_per_s, width, wanted))
    elif not session.speed_decides:
        for finding in session.findings:
            goal, found = finding.indicator.goal, finding.measurement
            if goal is not None and found is not None:
                name = finding.indicator.name
                parts.append(_known(name, found.mean, found.ci_width_relative, goal.interval_width))
    known = ", ".join(parts) or "nothing known yet"
    left = _left(session.left_s, plan.limits.session_s - session.seconds)
    return f"round {len(session.rounds)}: {known}; {left}"


def contest_line(plan: ContestPlan, labels: Sequence[str], session: ContestSession) -> str:
    """E.g. "round 12: gzip ahead; 1 of 2 pairs decided; about 0:40 left, at most 9:13"."""
    pairs = session.standing.pairs
    decided = sum(pair.decided for pair in pairs)
    known = "warming up"
    if session.blocks:
        known = f"{labels[session.standing.order[0]]} ahead; {decided} of {len(pairs)} pairs decided"
    left = _left(session.left_s, plan.limits.session_s - session.seconds)
    return f"round {len(session.blocks)}: {known}; {left}"


def _left(left_s: float | None, most_s: float) -> str:
    at_most = f"at most {clock(max(0.0, most_s))}"
    return at_most if left_s is None else f"about {clock(left_s)} left, {at_most}"


def _known(name: str, mean: float, width: float | None, goal: float) -> str:
    around = (
        "no interval yet" if width is None else f"± {percentage(width / 2, 1)} of ± {percentage(goal / 2, 1)}"
    )
    return f"{name} {number(mean)} {around}"
