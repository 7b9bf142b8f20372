"""What the page is about: a table that stays as it is, or runs that may still be running.

A session of online tuning is one too (`ascar.web.session`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ascar.results.trial import TrialState
from ascar.web.exploration import Exploration
from ascar.web.live import standing
from ascar.web.part import SCORE, of_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.history import History, Run
    from ascar.web.part import RowSource


class Subject(Protocol):
    """What is explored, now."""

    def stamp(self) -> int:
        """A number that grows when there is more to see."""
        ...

    def exploration(self) -> Exploration:
        """Everything there is.

        Raises:
            NothingYet: too little was measured to compare.
        """
        ...

    def live(self) -> dict[str, Any] | None:
        """How what is watched stands, JSON-ready, with its "kind": "run" or "session"; None: nothing runs."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """Tables.

    Attributes:
        whole: all there is.
    """

    whole: Exploration

    def stamp(self) -> int:
        """Nothing is ever added."""
        return 0

    def exploration(self) -> Exploration:
        """All there is."""
        return self.whole

    def live(self) -> None:
        """Nothing runs."""


class HistorySubject:
    """Runs of the history, beside tables; read only.

    Args:
        history: the history that holds the runs.
        runs: the runs, at least one; the last one is watched while it runs.
        tables: shown beside them.
        objective: a metric; None: what the runs were to reach.
        minimize: whether less of it is better; None: as the runs, or its name, say.
    """

    def __init__(
        self,
        history: History,
        runs: Sequence[Run],
        tables: Sequence[RowSource] = (),
        objective: str | None = None,
        minimize: bool | None = None,
    ) -> None:
        self._history = history
        self._runs = tuple(runs)
        self._tables = tuple(tables)
        self._objective = objective
        self._minimize = minimize
        self._known: tuple[int, Exploration] | None = None
        self._lock = threading.Lock()  # requests are served by several threads

    def stamp(self) -> int:
        """Trials that have ended, in all runs together."""
        return sum(self._ended(run) for run in self._runs)

    def exploration(self) -> Exploration:
        """Everything that was measured so far.

        Raises:
            NothingYet: too little was.
        """
        with self._lock:
            stamp = self.stamp()
            if self._known is None or self._known[0] != stamp:
                self._known = stamp, self._read()
            return self._known[1]

    def live(self) -> dict[str, Any] | None:
        """How the last run stands."""
        return standing(self._history, self._runs[-1])

    def _ended(self, run: Run) -> int:
        for one in self._history.runs(run.name):
            if one.id == run.id:
                return sum(n for state, n in one.counts.items() if state is not TrialState.RUNNING)
        return 0

    def _read(self) -> Exploration:
        parts = [*(of_run(run) for run in self._runs), *self._tables]
        objective, minimize = self._objective, self._minimize
        if objective is None:
            # One formula for all, or the first one's metric: scores of two formulas compare to nothing.
            formulas = {run.objective.text for run in self._runs}
            objective = parts[0].objective if len(formulas) == 1 and not self._tables else _common(parts)
            minimize = parts[0].minimize if minimize is None else minimize
        return Exploration.of(parts, objective, minimize)


def _common(parts: Sequence[RowSource]) -> str:
    """A metric that all parts have: the first one's objective if it can be."""
    shared = [name for name in parts[0].metrics if all(name in part.metrics for part in parts)]
    if parts[0].objective in shared and parts[0].objective != SCORE:
        return parts[0].objective
    return next((name for name in shared if not name.startswith("trial.")), parts[0].objective)
