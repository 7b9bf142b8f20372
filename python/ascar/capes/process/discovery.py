"""Discovery of nodes, indicators and keys when a learner's process begins, and its last state."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ascar.capes.process.learner_process import LearnerProcess
from ascar.capes.process.learner_state import check_fits, read_state
from ascar.capes.process.observer import ObservationLayout, Observer, chosen
from ascar.capes.process.policies import policy_of
from ascar.capes.process.setting_keys import knob_of, rules_of, setting_keys_of
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from ascar.capes.process.learner_file import Plan
    from ascar.capes.process.learner_state import LearnerState
    from ascar.capes.process.setting_keys import SettingKey

_TICKS: Final = 5


@dataclass(slots=True)
class Discovery:
    """Gathers nodes, indicators and keys until all are there.

    Attributes:
        plan: the learner's file.
        status: the interface's answer.
        known: the state of the last start, with its arrays; None where there is none.
        rows: nodes seen so far, with the names of their indicators.
        setting: the setting in force.
        ticks: the number of ticks with at least one node.
    """

    plan: Plan
    status: Mapping[str, Any]
    known: tuple[LearnerState, Mapping[str, NDArray[Any]]] | None
    rows: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    setting: dict[str, Any] = field(default_factory=dict[str, Any])
    ticks: int = 0

    @classmethod
    def of(cls, plan: Plan, status: Mapping[str, Any]) -> Discovery:
        """By the interface's answer to `status`, and the state on disk.

        Raises:
            InputError: the state is damaged or of another learner, or a pattern fits no knob.
        """
        known = read_state(plan.state)
        if known is not None:
            check_fits(plan.state, known[0], plan.file.algorithm, plan.objective.text)
        # Wrong patterns and knobs without a range are known at once.
        found = cls(plan, status, known)
        setting_keys_of(rules_of(status), found.defaults, plan.file.knobs, plan.file.ratios)
        return found

    @property
    def defaults(self) -> dict[str, Any]:
        """Keys with the values that were there before the session."""
        current, defaults = self.status.get("setting"), self.status.get("defaults")
        return {**self.setting, **_table(current), **_table(defaults)}

    def take(self, rows: Mapping[str, Iterable[str]], setting: Mapping[str, Any]) -> None:
        """Take in the nodes and the setting of a tick."""
        for node, names in rows.items():
            if chosen(node, self.plan.file.nodes):
                self.rows.setdefault(node, set()).update(names)
        self.setting.update(setting)
        self.ticks += bool(self.rows)

    def missing(self, *, at_once: bool = False) -> str:
        """What is missing before learning can begin; empty where nothing is.

        Args:
            at_once: nothing more will come.
        """
        keys = self.known[0].keys if self.known else ()
        absent = [key for key in keys if key not in self.defaults]
        if absent:
            return f"knobs of the state: {', '.join(absent[:5])}"
        names = {knob_of(key) for key in self.defaults}
        rules = [one.name for one in rules_of(self.status) if chosen(one.name, self.plan.file.knobs)]
        absent = [name for name in rules if name not in names]
        if absent and not self.known:
            return f"nodes with the knobs {', '.join(absent[:5])}"
        if not self.known and self.ticks < (1 if at_once else _TICKS):
            return "nodes" if not self.rows else "indicators"
        return ""

    def learner(self) -> LearnerProcess:
        """The learner's process, continued from the state of the last start.

        Raises:
            InputError: the state does not fit what is there, or there is nothing to turn.
            EnvironmentLacks: the classic learner's libraries are not installed.
        """
        plan, state = self.plan, self.known[0] if self.known else None
        file = plan.file
        setting_keys: tuple[SettingKey, ...] = setting_keys_of(
            rules_of(self.status), self.defaults, file.knobs, file.ratios
        )
        if state is None:
            layout = ObservationLayout.of(self.rows, file.nodes, file.indicators)
            observer = Observer(layout)
        else:
            by_key = {one.key: one for one in setting_keys}
            absent = [key for key in state.keys if key not in by_key]
            if absent:
                raise InputError(
                    f"state = {str(plan.state)!r}: turns {absent[0]!r}, which cannot be turned now; allowed "
                    f"are {', '.join(by_key)}; name another file, or remove this one to learn anew"
                )
            setting_keys = tuple(by_key[key] for key in state.keys)
            observer = Observer(
                ObservationLayout(state.nodes, state.indicators),
                self.known[1]["usual"] if self.known else None,
            )
        if not setting_keys:
            raise InputError("knobs: each has only one value, so that there is nothing to learn; name others")
        starts = 1 if state is None else state.starts + 1
        width = len(observer.layout.nodes) * len(observer.layout.names)
        if not width and file.algorithm == "classic":
            raise InputError(
                f"indicators = {list(file.indicators)}: match no indicator of any node; name others"
            )
        policy = policy_of(plan, [one.knob for one in setting_keys], width, (file.seed, starts))
        learner = LearnerProcess(plan, setting_keys, observer, policy, f"learner-{os.urandom(6).hex()}")
        if self.known:
            try:
                learner.read(*self.known)
            except InputError as error:
                raise InputError(
                    f"state = {str(plan.state)!r}: {error.message}; name another file, or remove this one to "
                    "learn anew"
                ) from error
        return learner


def starting_report(plan: Plan, tick: int, learner: LearnerProcess | None = None) -> dict[str, Any]:
    """The report on `P.learner` before learning begins."""
    if learner is not None:
        return {**learner.report(), "tick": tick, "phase": "starting"}
    return {
        "version": 1,
        "tick": tick,
        "algorithm": plan.file.algorithm,
        "objective": plan.objective.text,
        "phase": "starting",
        "before": {},
        "wanted": {},
        "epsilon": None,
        "prediction_error": None,
        "performance": None,
        "expected": None,
        "baseline": None,
        "changes": 0,
        "refused": 0,
        "workload": None,
    }


def _table(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
