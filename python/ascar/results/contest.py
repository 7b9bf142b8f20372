"""The results of `ascar sharp contest` and `ascar capes contest`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measurement import Count
from ascar.results.rule_search import ControllerEffects

Verdict = Literal["better", "worse", "open", "itself"]


class ContestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One that took part, and how the first of all stands against it.

    Attributes:
        name: the name of the contender.
        scores: the scores of the contender's runs, in the order of the seeds.
        mean: the mean of the scores.
        ci_low: lower end of the mean's interval; null where there is none.
        ci_high: upper end, or null.
        gain_relative: the gain of the first contender over this one, above zero if the first is better; null
            for the first itself, and if some scores are not above zero.
        gain_low: lower end of its interval, or null; all intervals of gains hold together.
        gain_high: upper end, or null.
        difference: the difference of the means in the objective's unit, above zero if the first is better;
            null for the first itself.
        difference_low: lower end of its interval, or null.
        difference_high: upper end, or null.
        p_value: the p-value of the test that the two differ; null for the first itself.
        verdict: whether the first is better or worse than this one; open: the runs do not tell.
    """

    name: str
    scores: tuple[float, ...]
    mean: float
    ci_low: float | None
    ci_high: float | None
    gain_relative: float | None
    gain_low: float | None
    gain_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p_value: float | None
    verdict: Verdict


class TunedRival(msgspec.Struct, frozen=True, kw_only=True):
    """A controller that was tuned to the scenario.

    Attributes:
        controller: the controller; "fixed" has a static window and gap.
        settings: its settings, by key of the scenario's control.
        runs: the number of runs that found them.
    """

    controller: str
    settings: dict[str, float]
    runs: Count


class SharpContestResult(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="ascar/sharp-contest/1"
):
    """How rules stand against other congestion control, run by run on the same seeds.

    Attributes:
        scenario: the name of the scenario.
        rules: the rules of the first contender.
        objective: the objective whose values are the scores.
        runs: the number of runs of each contender.
        first_seed: the seed of the first run; no search has used it.
        confidence: the confidence of each mean's interval, and of all gains' intervals together.
        contenders: the rules, or without any the scenario as it is, first.
        effects: what each of the others changes against the scenario as it is.
        tuned: the settings of the controllers that were tuned.
    """

    scenario: str
    rules: str | None
    objective: str
    runs: Count
    first_seed: Count
    confidence: float
    contenders: tuple[ContestEntry, ...]
    effects: tuple[ControllerEffects, ...]
    tuned: tuple[TunedRival, ...]


class LearnerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how soon a learner converged.

    Attributes:
        name: the name of the learner.
        success_rate: share of the runs that converged.
        success_low: lower end of its exact interval (Clopper and Pearson 1934).
        success_high: upper end.
        ticks_median: the median number of ticks until convergence, over the runs that converged; null if none
            did.
        ticks_max: the most, or null.
    """

    name: str
    success_rate: float
    success_low: float
    success_high: float
    ticks_median: float | None
    ticks_max: Count | None


class CapesContestResult(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="ascar/capes-contest/1"
):
    """How learners stand against each other at StorageGameSim, run by run on the same seeds.

    Attributes:
        noise: standard deviation of a measurement, a share of the throughput.
        delay: ticks after which a change of the window shows.
        game: the game, which includes the criterion of convergence.
        runs: the number of runs of each learner.
        ticks_limit: ticks of a run.
        confidence: the confidence of each interval, and of all gains' intervals together.
        records: the convergence of each learner, in the order they were named.
        contenders: the same learners, by the share of the ticks of a run that were near the ideal.
    """

    noise: float
    delay: Count
    game: Literal["thesis", "hard"]
    runs: Count
    ticks_limit: Count
    confidence: float
    records: tuple[LearnerRecord, ...]
    contenders: tuple[ContestEntry, ...]
