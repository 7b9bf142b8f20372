"""Rule sets of SHARP as results: candidates, their words, what learning and splits made of them."""

from __future__ import annotations

import msgspec

from ascar.results.measurement import Count


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


class SharpSplitResult(
    RuleSetResult, frozen=True, kw_only=True, tag_field="schema", tag="ascar/sharp-split/1"
):
    """A rule set, one rule of which was split.

    Attributes:
        split_rule: the number that the rule had, from 1.
    """

    split_rule: Count
