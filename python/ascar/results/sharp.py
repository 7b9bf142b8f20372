"""Results of `ascar sharp`."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from typing import Literal

import msgspec

from ascar.results.measurement import Count, MaybeNan

SearchEnd = Literal["evaluations", "time", "no-gain", "rules"]
"""Why a search ended."""


class RuleResult(msgspec.Struct, frozen=True, kw_only=True):
    """Of those that hold the first counts.

    Attributes:
        region: by indicator: from, and less than; 2147483647: no bound.
        m_x100: times the window; below zero: do not multiply.
        b_x100: requests added to the window.
        tau_us: least gap between requests.
        means: of each indicator when the rule was used.
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
        updates_per_second: window changes at most.
    """

    updates_per_second: Count
    rules: tuple[RuleResult, ...]


class CandidateAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action that may be tried."""

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
    """The actions that a round of the search tries in the hottest rule of a rule set.

    Attributes:
        hottest_rule: its number, from 1.
    """

    base: RuleSetResult
    hottest_rule: Count
    candidates: tuple[CandidateAction, ...]


class SharpDeployResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-deploy/1",
):
    """Rules that are in force.

    Attributes:
        rules: id: the same rules have the same everywhere.
        controllers: that keep them.
    """

    rules: str
    workload: str | None
    controllers: tuple[str, ...]


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


class SharpExplainResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-explain/1",
):
    """A rule set in words.

    Attributes:
        id: the same rules have the same everywhere.
        scenario: in which their use was counted; null: as the file has it.
        plots: files.
    """

    id: str
    updates_per_second: Count
    scenario: str | None
    rules: tuple[ExplainedRule, ...]
    plots: tuple[str, ...]


class SharpLearnResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-learn/1",
):
    """What learning the numbers of rules while they run came to.

    Attributes:
        ticks: that were read.
        settings: of the numbers that were visited.
        before: id of the rules kept at the beginning.
        rules: id of those kept at the end.
        improved: whether they are others, shown to be better.
        gain_relative: of the comparison in turns; null: nothing to compare, or scores that are not
            all above zero.
        gain_low: 99% interval, at all looks together.
        difference: in the objective's unit; above zero is better.
        difference_low: of an interval that holds at all looks together.
        pairs: of intervals.
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


class SharpLibraryAddResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-library-add/1",
):
    """A workload added to a rule library, with the rules made for it.

    Attributes:
        workload: its name in the library.
        source: what its features were taken from.
        rules: their id; null where none were given.
        gain: of these rules on this workload, relative; null where unknown.
        gain_low: 95% interval.
    """

    workload: str
    source: str
    rules: str | None
    objective: str
    gain: float | None
    gain_low: float | None
    gain_high: float | None


class SharpLibraryBootstrapResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-library-bootstrap/1",
):
    """What a rule library holds after a bootstrap.

    Attributes:
        library: its file.
        complete: false: the budget was spent, and the same command goes on.
        rules: different rule sets.
        gains: of rule sets on workloads.
    """

    library: str
    complete: bool
    workloads: Count
    rules: Count
    gains: Count


class LibraryChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Null where no gain is to be expected.

    Attributes:
        rules: their id.
        made_for: a workload of the library.
        gain: that is expected, relative.
        gain_low: its lower bound.
        nearest: the workload of the library that is most alike.
        distance: to that one.
    """

    rules: str
    made_for: str
    gain: float
    gain_low: float
    nearest: str
    distance: float


class NearWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload in the library and its distance.

    Attributes:
        distance: 0 alike, 1 nothing in common.
    """

    workload: str
    distance: float


class SharpLibraryFindResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-library-find/1",
):
    """The rules of which the most gain is to be expected on a workload.

    Attributes:
        choice: null where no gain is to be expected.
        nearest: workloads of the library that are most alike.
        out: the file that the rules were written to.
    """

    workload: str
    objective: str
    choice: LibraryChoice | None
    nearest: tuple[NearWorkload, ...]
    out: str | None


class LibraryWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload in the library."""

    name: str
    source: str


class LibraryRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule set in the library.

    Attributes:
        workload: that they were made for.
        gain: on that workload.
        tried_on: workloads.
    """

    id: str
    workload: str
    objective: str
    gain: float | None
    tried_on: Count


class SharpLibraryLsResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-library-ls/1",
):
    """What a rule library holds."""

    workloads: tuple[LibraryWorkload, ...]
    rules: tuple[LibraryRule, ...]
    gains: Count


class PredictedGain(msgspec.Struct, frozen=True, kw_only=True):
    """The gain that a rule set is expected to bring.

    Attributes:
        gain: relative, above zero is better.
        sd: standard deviation of what may come.
    """

    rules: str
    made_for: str
    gain: float
    sd: float


class SharpLibraryPredictResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-library-predict/1",
):
    """What the rule sets of a library are expected to gain on a workload, the most first.

    Attributes:
        learned_from: gains.
    """

    workload: str
    objective: str
    learned_from: Count
    predicted: tuple[PredictedGain, ...]


class WorkloadGain(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule set gained on a workload.

    Attributes:
        pairs: of runs; 0 where the gain was given.
    """

    rules: str
    gain: float
    gain_low: float | None
    gain_high: float | None
    pairs: Count


class WorkloadDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A workload in the library, with its gains.

    Attributes:
        at: when it was added.
    """

    name: str
    source: str
    at: str
    features: Mapping[str, MaybeNan]
    gains: tuple[WorkloadGain, ...]


class RuleDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A rule set in the library, with its text."""

    id: str
    text: str
    workload: str
    objective: str
    how: str
    at: str


class FeatureShare(msgspec.Struct, frozen=True, kw_only=True):
    """A feature and its weight.

    Attributes:
        bits: that a change of it tells about what becomes of a gain.
        share: of all there is to be told.
    """

    feature: str
    bits: float
    share: float


class LearnedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """What was learned of the features.

    Attributes:
        pairs: of workloads, that information gains come from.
        gains: that the tree comes from.
        tree: a regression tree of gains, indented lines.
    """

    pairs: Count
    gains: Count
    features: tuple[FeatureShare, ...]
    tree: tuple[str, ...]


class SharpLibraryShowResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-library-show/1",
):
    """A workload or rule set of a library, or what it has learned; the other two are null."""

    objective: str
    workload: WorkloadDetail | None
    rules: RuleDetail | None
    learned: LearnedMetric | None


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
    """The best score after so many evaluations."""

    evaluations: Count
    score: float


class RuleVerification(msgspec.Struct, frozen=True, kw_only=True):
    """The best rules against the system as it is, in turns, on fresh seeds.

    Attributes:
        best_mean: score.
        difference: above zero is better, as in all that follows.
        difference_low: of a 99% interval that holds at all looks together.
        gain_relative: null where scores are not all above zero.
        p_value: always-valid.
    """

    kind: Literal["improved", "default-is-fine", "not-verified"]
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


class SharpSearchResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-search/1",
):
    """A search for rules: the best set, how it was found, and what it is worth on fresh seeds.

    Attributes:
        scenario: its name.
        also: further scenarios that each run was made in.
        first_in: name of the scenario that the search began in.
        first_evaluations: runs there.
        evaluations: runs of the search.
        elapsed_s: parts before an interruption included.
        course: after how many runs the best changed.
        verification: the best rules against the system as it is, in turns, on fresh seeds.
        out: the file with the best rule set.
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


class ControllerRules(msgspec.Struct, frozen=True, kw_only=True):
    """A controller with its rules.

    Attributes:
        rules: id; null without rules.
        on_trial: whether they go unless they are kept.
    """

    controller: str
    rules: str | None
    on_trial: bool


class DeployedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload with its controllers.

    Attributes:
        rule_set: with the use of all controllers together; null unless all follow the same.
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
        problems: who is missing or does not answer.
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
    """Controllers that follow no rules any more."""

    workload: str | None
    controllers: tuple[str, ...]


class WatchedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened while watching.

    Attributes:
        gain: shown so far, relative; null where scores are not all above zero.
        gain_low: of an interval that holds at all looks together.
        difference: in the objective's unit; above zero is better.
        difference_low: of an interval that holds at all looks together.
        pairs: of intervals with and without the rules.
        distance: of the workload from what it was.
    """

    kind: Literal["observed", "same", "changed", "none", "deployed", "compared", "verified", "rolled-back"]
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


class SharpWatchResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sharp-watch/1",
):
    """Rules found, verified and taken back while a load ran.

    Attributes:
        in_force: at the end.
    """

    objective: str
    virtual_seconds: float
    events: tuple[WatchedEvent, ...]
    in_force: RuleSetResult | None
