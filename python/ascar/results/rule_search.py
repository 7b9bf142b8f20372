"""What a search for rules found, and what its verification in turns said."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measurement import Count
from ascar.results.rule_sets import RuleSetResult
from ascar.results.verdict import VerdictKind

SearchEnd = Literal["evaluations", "time", "no-gain", "rules", "failures"]
"""Why a search ended."""


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
