"""Rules on controllers: what a deployment came to, what is in force, what was done while loads changed."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.library import LibraryChoice
from ascar.results.measurement import Count
from ascar.results.rule_sets import RuleSetResult


class FloorCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The throughput under rules on trial, and before: two intervals, one after the other.

    Attributes:
        floor: the share of the throughput before that had to be reached.
        before_mb_per_s: the mean of all controllers together before.
        before_low: the lower end of its 95% interval; null where the ticks do not tell one.
        before_high: the upper end of that interval.
        under_mb_per_s: the mean under the rules.
        under_low: the lower end of its 95% interval; null where the ticks do not tell one.
        under_high: the upper end of that interval.
        ticks: the number of ticks of the interval under the rules.
    """

    floor: float
    before_mb_per_s: float
    before_low: float | None
    before_high: float | None
    under_mb_per_s: float
    under_low: float | None
    under_high: float | None
    ticks: Count


class SharpDeployResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-deploy/1",
):
    """Rules that are in force.

    Attributes:
        rules: the id of the rules, which is the same for equal rules.
        workload: the workload of the controllers; null for all controllers.
        controllers: the controllers that follow the rules.
        checked: the throughput on trial and before; null without a floor.
        ends_after_s: the time after which controllers put back the rules from before; null: these are kept.
        kept_for_s: the time limit of kept rules, after which none are in force; null: they stay.
    """

    rules: str
    workload: str | None
    controllers: tuple[str, ...]
    checked: FloorCheck | None = None
    ends_after_s: float | None = None
    kept_for_s: float | None = None


class ControllerRules(msgspec.Struct, frozen=True, kw_only=True):
    """A controller with its rules.

    Attributes:
        controller: the name of the controller.
        rules: the id of its rules; null without rules.
        on_trial: whether the rules are on trial.
        left_s: the time after which the rules end by themselves; null: they stay.
    """

    controller: str
    rules: str | None
    on_trial: bool
    left_s: float | None = None


class DeployedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload with its controllers.

    Attributes:
        workload: the name of the workload.
        controllers: the controllers of the workload.
        rule_set: the rules, with the uses of all controllers together; null unless all have the same rules.
    """

    workload: str
    controllers: tuple[ControllerRules, ...]
    rule_set: RuleSetResult | None


class ControllerProblem(msgspec.Struct, frozen=True):
    """A controller that is missing, refused, or did not answer.

    Attributes:
        controller: the name of the controller.
        reason: the reason in one line.
    """

    controller: str
    reason: str

    def __str__(self) -> str:
        """The problem in one line."""
        return f"{self.controller}: {self.reason}"


class SharpShowResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-show/1",
):
    """Which rules are in force where, and how they are used.

    Attributes:
        workloads: the workloads with their controllers.
        problems: the controllers that are missing or did not answer.
    """

    workloads: tuple[DeployedWorkload, ...]
    problems: tuple[ControllerProblem, ...]


class SharpDownResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-down/1",
):
    """Controllers that follow no rules any more.

    Attributes:
        workload: the workload of the controllers; null for all controllers.
        controllers: the controllers that follow no rules any more.
    """

    workload: str | None
    controllers: tuple[str, ...]


WatchEventKind = Literal[
    "observed",
    "same",
    "changed",
    "none",
    "deployed",
    "compared",
    "verified",
    "rolled-back",
    "checked",
    "doubted",
    "idle",
    "replaced",
]
"""What may happen while rules are watched; see `ascar.sharp.matching.WatchEvent`."""


class WatchedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened while watching.

    Attributes:
        kind: the kind of the event.
        at_s: the time of the event, in the system's own time.
        rules: the id of the rules of the event; null without rules.
        choice: what the library expected of them; null for rules that were in force before.
        gain: the relative gain so far; null without a comparison, and if some scores are not above zero.
        gain_low: the lower end of its interval, which holds at all looks together.
        gain_high: the upper end of that interval.
        difference: the difference so far in the objective's unit; above zero is better.
        difference_low: the lower end of its interval, which holds at all looks together.
        difference_high: the upper end of that interval.
        pairs: the number of pairs of intervals with and without the rules; null without a comparison.
        distance: the distance of the workload from its earlier features; null if it was not computed.
        reason: the reason why rules were doubted, taken back or replaced; empty for other events.
    """

    kind: WatchEventKind
    at_s: float
    choice: LibraryChoice | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    pairs: Count | None
    distance: float | None
    reason: str = ""
    rules: str | None = None


class SharpWatchResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-watch/1",
):
    """Rules found, verified and taken back while a load ran.

    Attributes:
        objective: the objective.
        virtual_seconds: the duration in the system's own time.
        events: the events, in order.
        in_force: the rules in force at the end; null without rules.
    """

    objective: str
    virtual_seconds: float
    events: tuple[WatchedEvent, ...]
    in_force: RuleSetResult | None
