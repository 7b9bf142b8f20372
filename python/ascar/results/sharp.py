"""Results of `ascar sharp`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.library import LibraryChoice
from ascar.results.measurement import Count
from ascar.results.verdict import VerdictKind

SearchEnd = Literal["evaluations", "time", "no-gain", "rules", "failures"]
"""Why a search ended."""


class RuleResult(msgspec.Struct, frozen=True, kw_only=True):
    """Of those that hold the first counts.

    Attributes:
        region: the range of each indicator: from, and less than; 2147483647 means no bound.
        m_x100: the factor of the window in hundredths; a negative number means no multiplication.
        b_x100: the hundredths of requests that are added to the window.
        tau_us: the least gap between requests.
        used_times: the number of uses; null if uses were not counted.
        means: the mean of each indicator at the uses of the rule; null if uses were not counted.
    """

    region: dict[str, tuple[Count, ...]]
    m_x100: int
    b_x100: int
    tau_us: Count
    used_times: Count | None
    means: dict[str, Count] | None


class RuleSetResult(msgspec.Struct, frozen=True, kw_only=True):
    """A set of rules.

    Attributes:
        updates_per_second: the largest number of window changes a second.
        rules: the rules; the first one that contains a state applies.
        active_files: files of a stream that may have requests in flight at once, in turns; 0: any number.
    """

    updates_per_second: Count
    rules: tuple[RuleResult, ...]
    active_files: Count = 0


class CandidateAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action that may be tried.

    Attributes:
        number: the number of the candidate.
        m_x100: the factor of the window in hundredths.
        b_x100: the hundredths of requests that are added to the window.
        tau_us: the least gap between requests.
    """

    number: Count
    m_x100: int
    b_x100: int
    tau_us: Count


class SharpCandidatesResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-candidates/1",
):
    """The actions that a round of the search tries in one rule of a rule set.

    Attributes:
        base: the rule set that is varied.
        varied_rule: the number of that rule, from 1: the most used one, unless another was named.
        candidates: the actions that a round tries in that rule.
    """

    base: RuleSetResult
    varied_rule: Count
    candidates: tuple[CandidateAction, ...]


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


class ExplainedRule(RuleResult, frozen=True, kw_only=True):
    """A rule in words.

    Attributes:
        when: the congestion state in which the rule applies.
        what: the effect of the rule on the number and rate of requests.
        window_settles_at: the window that repeated use leads to; null if the window stays.
        used_share: the share of all uses of rules; null without counts.
    """

    when: str
    what: str
    window_settles_at: float | None
    used_share: float | None


class CourseSeries(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a stream over time, under rules.

    Attributes:
        name: the name of the figure.
        values: a value at the end of each tick.
    """

    name: str
    values: tuple[float, ...]


class SharpExplainResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-explain/1",
):
    """A rule set in words.

    Attributes:
        id: the id of the rules, which is the same for equal rules.
        updates_per_second: the largest number of window changes a second.
        scenario: the scenario in which uses were counted; null for the counts in the file.
        rules: the rules in words.
        stream: the number of the stream whose course is shown; null without a scenario.
        tick_s: the length of a tick of the course.
        course: what the rules did to that stream over time, and what came of it.
        plots: the files of the plots.
        active_files: files of a stream that may have requests in flight at once, in turns; 0: any number.
    """

    id: str
    updates_per_second: Count
    scenario: str | None
    rules: tuple[ExplainedRule, ...]
    stream: Count | None
    tick_s: float | None
    course: tuple[CourseSeries, ...]
    plots: tuple[str, ...]
    active_files: Count = 0


class SharpLearnResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-learn/1",
):
    """What learning the numbers of rules while they run came to.

    Attributes:
        objective: the objective.
        ticks: the number of ticks that were read.
        settings: the number of settings that were visited.
        before: the id of the initial rules.
        rules: the id of the rules at the end.
        rule_set: the rules at the end.
        improved: whether these are new rules, shown to be better.
        gain_relative: the gain by the comparison in turns; null without a comparison, and if some scores are
            not above zero.
        gain_low: the lower end of the 99% interval, which holds at all looks together.
        gain_high: the upper end of that interval.
        difference: the difference in the objective's unit; above zero is better.
        difference_low: the lower end of its interval, which holds at all looks together.
        difference_high: the upper end of that interval.
        pairs: the number of pairs of intervals.
        broken: the bound that better rules broke, so that they were not kept; else empty.
    """

    objective: str
    ticks: Count
    settings: Count
    before: str
    rules: str
    rule_set: RuleSetResult
    improved: bool
    gain_relative: float | None
    gain_low: float | None
    gain_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    pairs: Count
    broken: str = ""


class BestRules(RuleSetResult, frozen=True, kw_only=True):
    """The best rules of a search.

    Attributes:
        score: the mean over the runs of the search; null if no run has a finite score.
        score_low: the lower end of the 95% interval of the mean; null with one run.
        score_high: the upper end of that interval.
        runs: the number of runs.
    """

    score: float | None
    score_low: float | None
    score_high: float | None
    runs: Count


class CoursePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The best score after so many evaluations.

    Attributes:
        evaluations: the number of evaluations.
        score: the best score after them.
    """

    evaluations: Count
    score: float


Standing = Literal["kept", "open", "broken"]
"""How something stands to a bound: its interval lies within it, on both sides of it, or beyond it."""


class FigureChange(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a figure under rules, over the pairs of the last comparison.

    Attributes:
        name: the name of the figure, or of the group whose throughput it is.
        default_mean: the mean without rules; of a group in MB/s, or in operations a second where it moves no
            data.
        rules_mean: the mean under the rules.
        change: the relative change; null where the figure was zero.
        change_low: the lower end of its 99% interval, which holds at all looks together, and of all groups
            together.
        change_high: the upper end of that interval.
        pairs: the number of pairs.
    """

    name: str
    default_mean: float
    rules_mean: float
    change: float | None
    change_low: float | None
    change_high: float | None
    pairs: Count


class ControllerEffects(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller changes against the scenario as it is, on the same seeds.

    Attributes:
        name: the name of the controller.
        figures: what becomes of throughput, deviation, latencies and fairness.
        groups: what becomes of each group of threads.
    """

    name: str
    figures: tuple[FigureChange, ...]
    groups: tuple[FigureChange, ...]


class BoundStanding(msgspec.Struct, frozen=True, kw_only=True):
    """How rules stand to a bound that they must keep.

    Attributes:
        bound: the bound, e.g. "group_share_min >= 0.9".
        value: the mean of its metric under the rules.
        low: the lower end of its 99% interval, which holds at all looks together.
        high: the upper end of that interval.
        standing: whether the interval lies within the bound ("kept"), beyond it ("broken"), or on both sides.
    """

    bound: str
    value: float | None
    low: float | None
    high: float | None
    standing: Standing


class RuleVerification(msgspec.Struct, frozen=True, kw_only=True):
    """The best rules against the system as it is, in turns, on fresh seeds.

    Attributes:
        kind: the kind of verdict.
        best_mean: the mean score of the best rules.
        default_mean: the mean score of the system as it is.
        difference: the difference; above zero is better, in this and the following keys.
        difference_low: the lower end of its 99% interval, which holds at all looks together.
        difference_high: the upper end of that interval.
        gain_relative: the relative gain; null if some scores are not above zero.
        gain_low: the lower end of the gain's interval.
        gain_high: the upper end of that interval.
        p_value: the always-valid p-value.
        pairs: the number of pairs.
        note: the method, or the reason why there is no comparison.
        figures: what becomes of throughput, deviation, latencies and fairness.
        groups: what becomes of each group of threads; of each controller in a running system.
        bounds: how the rules stand to the bounds that they must keep.
    """

    kind: VerdictKind
    best_mean: float | None
    default_mean: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    gain_relative: float | None
    gain_low: float | None
    gain_high: float | None
    p_value: float | None
    pairs: Count
    note: str
    figures: tuple[FigureChange, ...] = ()
    groups: tuple[FigureChange, ...] = ()
    bounds: tuple[BoundStanding, ...] = ()


class ContenderFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a contender did in simulation, or on the testbed.

    Attributes:
        mean: the mean score.
        mean_low: the lower end of its 95% interval; null with too few runs.
        mean_high: the upper end of that interval.
        runs: the number of runs; those on the testbed are of turns in which no run failed.
        latency_ms_p99: the mean over runs of the 99th percentile of a request's latency.
        gain_relative: the gain of the rules over this contender, above zero if the rules are better; null for
            the rules themselves, and if some scores are not above zero.
        gain_low: the lower end of its interval; those of both gains there hold together at 95%.
        gain_high: the upper end of that interval.
        difference: the same as a difference in the objective's unit.
        difference_low: the lower end of its interval.
        difference_high: the upper end of that interval.
    """

    mean: float
    mean_low: float | None
    mean_high: float | None
    runs: Count
    latency_ms_p99: float | None
    gain_relative: float | None
    gain_low: float | None
    gain_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None


class TestbedContender(msgspec.Struct, frozen=True, kw_only=True):
    """One of those that took turns on a testbed.

    Attributes:
        name: "rules", "default" (no rules), or "best static" (a window and gap that stay).
        setting: which rules, or which window and gap.
        simulated: what the simulation says of it, on seeds that no search has seen.
        real: what it did on the testbed; null if there were fewer than two turns in which no run failed.
    """

    name: Literal["rules", "default", "best static"]
    setting: str
    simulated: ContenderFigures
    real: ContenderFigures | None


class FailedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run on a testbed that failed.

    Attributes:
        number: the number of the run, from 1.
        setting: the rules, or the window and gap, that it was made with.
        reason: the reason in one line.
    """

    number: Count
    setting: str
    reason: str


class TestbedProof(msgspec.Struct, frozen=True, kw_only=True):
    """What candidates of the simulation did on a testbed.

    Attributes:
        nodes: the kinds of its nodes.
        runs: the number of runs on the testbed.
        chosen_in_runs: those of them that chose the rules and the static setting, and no more.
        turns: the number of turns, each of one run of every contender in an order that is drawn.
        contenders: those that took turns, the rules first; without "best static" where the best rules are
            that very setting.
        failures: the runs that failed.
        differences: how the simulation and the testbed differ, in words.
    """

    nodes: tuple[str, ...]
    runs: Count
    chosen_in_runs: Count
    turns: Count
    contenders: tuple[TestbedContender, ...]
    failures: tuple[FailedRun, ...]
    differences: tuple[str, ...]


class SharpSearchResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-search/1",
):
    """A search for rules: the best set, how it was found, and what it is worth on fresh seeds.

    Attributes:
        scenario: the name of the scenario or system.
        also: the number of further scenarios in which each run was made.
        first_in: the scenario in which the search started; null without one.
        first_evaluations: the number of runs in that scenario.
        objective: the objective.
        schedule: the schedule of the search.
        stopped: the reason of the end.
        evaluations: the number of runs.
        epochs: the number of epochs.
        rounds: the number of rounds.
        elapsed_s: the duration, including the parts before an interruption.
        best: the best rules; null without a completed run.
        course: the runs after which the best rules changed.
        verification: the comparison of the best rules with the system as it is, in turns, on fresh seeds.
        out: the file of the best rules.
        followers: the streams that the rules are for: "data", "metadata", or "client group N", from 1.
        testbed: what the candidates did on a testbed; null if the search had none.
    """

    scenario: str
    also: Count
    first_in: str | None
    first_evaluations: Count
    objective: str
    schedule: Literal["sharp", "faithful", "remy"]
    stopped: SearchEnd
    evaluations: Count
    epochs: Count
    rounds: Count
    elapsed_s: float
    best: BestRules | None
    course: tuple[CoursePoint, ...]
    verification: RuleVerification
    out: str
    followers: str = "data"
    testbed: TestbedProof | None = None


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


class SharpSplitResult(
    RuleSetResult, frozen=True, kw_only=True, tag_field="schema", tag="ascar/sharp-split/1"
):
    """A rule set, one rule of which was split.

    Attributes:
        split_rule: the number that the rule had, from 1.
    """

    split_rule: Count


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
