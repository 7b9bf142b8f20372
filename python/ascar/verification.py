"""The last comparison: best and default in turns, by a test that may be repeated after every pair of runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, log1p, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ascar.abandonment import run_scatter
from ascar.cycles import PAIRS_SPARE, PairLoad, Span, span_of
from ascar.events import Event
from ascar.optimizers.proposals import Proposal
from ascar.pairs import Pairs, paired
from ascar.pilot import compare
from ascar.pilot.pairs_needed import more_pairs_needed, pairs_needed
from ascar.pilot.turns import Gain, PairTest, compare_in_turns
from ascar.render import estimate
from ascar.reserve import SEARCH_SHARE_MIN, Reserve
from ascar.results.trial import Origin, Purpose
from ascar.results.verdict import ObjectiveGain, Verdict
from ascar.systems import Reusing

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.campaign import Campaign
    from ascar.pilot.turns import InTurns
    from ascar.reserve import RecommendedTrial
    from ascar.results.trial import Trial
    from ascar.space import Configuration
    from ascar.study import Study


# Half of the comparisons take more pairs than those that will probably do.
_CAUTION = 2
# With more of the budget left, the search goes on rather than a comparison that nothing decides.
_LEFT_SHARE_MIN = 0.25


@dataclass(slots=True)
class Verification:
    """The last comparison of a campaign: the best found against the default.

    A run that goes on may have had other candidates before.

    Attributes:
        campaign: the campaign that carries out the runs.
        against: the trial whose configuration takes the default's place; None: the default does.
        after: the comparison goes on with the pairs of the trials after this number; those before are of
            another time.
        best: the trial that stands for the last candidate; None before the first.
    """

    campaign: Campaign
    against: Trial | None = None
    after: int = 0
    best: Trial | None = None

    @property
    def candidates(self) -> tuple[Configuration, ...]:
        """The configurations that were compared with the default so far, in order."""
        trials = (one for one in self.campaign.trials if one.number > self.after)
        runs = (one for one in trials if one.purpose is Purpose.VERIFY)
        pairs = ({one.configuration, other.configuration} for one, other in paired(runs))
        return tuple(
            dict.fromkeys(one for two in pairs if self._default in two for one in two - {self._default})
        )

    @property
    def rejected(self) -> frozenset[Configuration]:
        """Candidates that are shown not to be better, that fail, or that have all pairs that are allowed."""
        return frozenset(one for one in self.candidates if self._is_rejected(one))

    def unsettled(self) -> Trial | None:
        """The last candidate, if it is undecided and the budget will probably suffice to decide it."""
        if not self.candidates or self.candidates[-1] in self.rejected:
            return None
        last = self.candidates[-1]
        return self._trial_of(last) if self._fits(self._found(last), last) else None

    def promising(self, best: RecommendedTrial | None) -> Trial | None:
        """A candidate that is worth a comparison: after one that is rejected, the next must look better."""
        if best is None:
            return None
        is_next = bool(self.candidates) and self.candidates[-1] in self.rejected
        margin = log1p(self.campaign.prepared.study.verify.margin)
        return None if is_next and self._gain(best.expected_score) <= margin else best.trial

    def reserve(self) -> Reserve:
        """What the search keeps back for the pairs that decide.

        Their number follows from the scatter between runs of one configuration, and from the gain that the
        optimizer expects, which is less than that of the luckiest trial; they take at most a share of the
        time that is left now.
        """
        most_s = self._most_s

        def needed_s(best: RecommendedTrial | None) -> float:
            trial = self.promising(best)
            if best is None or trial is None:
                return 0.0
            test = self._test(len(self.candidates) + 1)
            gain = self._gain(best.expected_score)
            count = pairs_needed(gain, self._pair_scatter, test) or test.pairs_max
            pair_s = self.campaign.pair_s((self._default, trial.configuration))
            return min(_CAUTION * count * pair_s, most_s)

        return Reserve(most_s, needed_s)

    def warn_of_short_budget(self) -> None:
        """Tell the listener if the budget will probably not suffice, by what the default's runs took.

        The least that decides is one other trial, and the pairs that show that the default is as good if it
        is; a large gain takes less.
        """
        campaign, test = self.campaign, self._test(1)
        pairs = pairs_needed(0.0, self._pair_scatter, test) or test.pairs_max
        default_s = sum(trial.total_s for trial in campaign.of(Purpose.DEFAULT))
        pairs_s = min(pairs, test.pairs_max) * campaign.pair_s((self._default, self._default))
        least_s = default_s + campaign.trial_s + pairs_s + campaign.restore_s
        if least_s > campaign.budget_s:
            found = {"least_s": least_s, "trial_s": campaign.trial_s}
            campaign.listener(Event("budget-short", {**found, "run_scatter": self._pair_scatter / sqrt(2)}))

    def verify(
        self, candidate: Configuration | None, may_search: Callable[[], bool] = lambda: False
    ) -> Verdict:
        """Compare a candidate with the default, pair by pair, until it is decided, and say what that shows.

        The test is made for repeated looks: ending at the first that decides keeps its level, and a
        comparison goes on, hours or weeks later, with the pairs that the run has. A pair with a failed run is
        left out, and named in the note.

        Args:
            candidate: what is compared; None: the last candidate stands, with the pairs that it has.
            may_search: whether the search can use what is left of the budget; the comparison ends early if
                it will probably not be decided.
        """
        goes_on, campaign = candidate is not None, self.campaign
        if candidate is None:
            if not self.candidates:
                return without_comparison(campaign)
            candidate = self.candidates[-1]
        pairs = Pairs(self._default, candidate).recall(campaign, self.after)
        number = self._number_of(candidate)
        test = self._test(number)
        span = self._span(candidate)
        campaign.pair_load = self._pair_load(candidate, span)

        def over(now: InTurns) -> bool:
            if pairs.best_fails or campaign.load_s_for((self._default, candidate)) == 0:
                return True
            unlikely = now.made >= test.pairs_min and not self._fits(now, candidate)
            return unlikely and campaign.left_s > _LEFT_SHARE_MIN * campaign.budget_s and may_search()

        def told(now: InTurns) -> None:
            campaign.listener(Event("compared", {"pairs": now.made, **_estimates(now.gain)}))

        if goes_on:
            bounds = {"runs_min": test.pairs_min, "runs_max": test.pairs_max}
            campaign.listener(Event("verifying", bounds, self._trial_of(candidate)))
        found = compare_in_turns(
            pairs.taken(campaign) if goes_on else (),
            campaign.prepared.study.objective.direction,
            test,
            known=tuple(pairs.scores),
            over=over if goes_on else lambda _: True,
            told=told,
        )
        verdict = replace(
            conclude(campaign.prepared.study, pairs, found),
            candidates=number,
            against=None if self.against is None else self.against.number,
        )
        if span.note:
            verdict = replace(verdict, note=f"{verdict.note}; {span.note}")
        if not verdict.is_decided and verdict.ended != "failures":
            verdict = self._with_prospect(verdict, found, candidate)
        self.best = self._trial_of(candidate)
        return self._with_reuse_bias(pairs, verdict) if goes_on else verdict

    @property
    def _most_s(self) -> float:
        """The most that the search keeps back: at least what a few pairs of the shortest loads take."""
        campaign, test = self.campaign, self._test(1)
        needed_s = PAIRS_SPARE * test.pairs_min * campaign.pair_s((self._default,) * 2, shortest=True)
        few_s, many_s = ((1 - share) * campaign.left_s for share in (campaign.search_share, SEARCH_SHARE_MIN))
        return max(few_s, min(many_s, needed_s))

    @property
    def _pair_scatter(self) -> float:
        """The standard deviation of a pair, as a share of the score."""
        runs: dict[tuple[Configuration, bool], list[float]] = {}
        for trial in self.campaign.alike:
            if trial.usable and trial.score is not None:
                # Loads of the search may be shorter than those of comparisons.
                runs.setdefault((trial.configuration, trial.purpose.of_comparison), []).append(trial.score)
        return sqrt(2) * run_scatter(runs.values())[0]

    @property
    def _default(self) -> Configuration:
        if self.against is not None:
            return self.against.configuration
        return self.campaign.prepared.space.default()

    def _test(self, number: int) -> PairTest:
        return pair_test(self.campaign.prepared.study, number)

    def _number_of(self, candidate: Configuration) -> int:
        """Which candidate of the run it is, counted from 1."""
        return 1 + [*self.candidates, candidate].index(candidate)

    def _gain(self, score: float) -> float:
        """What a score is against the default's: the ratio's logarithm, or a share."""
        defaults = [one.score for one in self.campaign.defaults if one.score is not None]
        if not defaults:
            return 0.0
        sign, default = self.campaign.prepared.study.objective.sign, fmean(defaults)
        if default > 0 and score > 0:
            return sign * log(score / default)
        return sign * (score - default) / abs(default) if default else 0.0

    def _found(self, candidate: Configuration) -> InTurns:
        """What the pairs that the run has of a candidate show."""
        pairs = Pairs(self._default, candidate).recall(self.campaign, self.after)
        direction = self.campaign.prepared.study.objective.direction
        test = self._test(self._number_of(candidate))
        return compare_in_turns((), direction, test, known=tuple(pairs.scores), over=lambda _: True)

    def _fits(self, found: InTurns, candidate: Configuration) -> bool:
        """Whether the budget holds the pairs that will probably decide a comparison."""
        if found.gain is not None and found.gain.decision != "open":
            return True
        more = more_pairs_needed(found)
        pair_s = self.campaign.pair_s((self._default, candidate))
        return more is not None and more * pair_s <= self.campaign.left_s

    def _is_rejected(self, candidate: Configuration) -> bool:
        if Pairs(self._default, candidate).recall(self.campaign, self.after).best_fails:
            return True
        found = self._found(candidate)
        return found.kind == "default-is-fine" or found.ended in ("failures", "runs-max")

    def _trial_of(self, candidate: Configuration) -> Trial | None:
        """The latest trial that stands for a candidate: the search's, or a run of the comparison."""
        trials = [one for one in self.campaign.trials if one.configuration == candidate and one.usable]
        searched = [one for one in trials if one.purpose.of_search]
        return (searched or trials)[-1] if trials else None

    def _sides(self, candidate: Configuration) -> list[Trial]:
        """A trial of each of both; none where one of them has none."""
        known = [one for one in map(self._trial_of, (self._default, candidate)) if one is not None]
        return known if len(known) == 2 else []

    def _span(self, candidate: Configuration) -> Span:
        """How long the runs of both sides are at least, by what their loads leave undone."""
        prepared = self.campaign.prepared
        return span_of(prepared.study, prepared.target, self._sides(candidate), self.campaign.left_s)

    def _pair_load(self, candidate: Configuration, span: Span) -> PairLoad:
        """How long the runs of both sides are."""
        sides, campaign = self._sides(candidate), self.campaign
        if not sides:
            return PairLoad()
        if campaign.loads_end_themselves:
            return PairLoad(least_s=inf)
        usual_s = campaign.usual_load_s((self._default, candidate))
        return PairLoad.of(span, sides, campaign.left_s, study=campaign.prepared.study, usual_s=usual_s)

    def _with_prospect(self, verdict: Verdict, found: InTurns, best: Configuration) -> Verdict:
        """What would probably decide it."""
        more = more_pairs_needed(found)
        if more is None:
            return verdict
        return replace(verdict, more_pairs=more, more_s=more * self.campaign.pair_s((self._default, best)))

    def _with_reuse_bias(self, pairs: Pairs, verdict: Verdict) -> Verdict:
        """Where trials reuse what the one before left: how far that moved the default's score (Cao 6.6.2).

        The verification's runs started afresh; as many more on the aged system tell the difference.
        """
        campaign, fresh = self.campaign, verdict.default_scores
        target = campaign.prepared.target
        if not (isinstance(target, Reusing) and target.reuses_state) or len(fresh) < 2:
            return verdict
        for _ in range(campaign.prepared.study.verify.runs_min - len(campaign.of(Purpose.BIAS))):
            if campaign.left_s < campaign.trial_s:
                break
            campaign.attempt(Proposal(pairs.default, Origin.VERIFICATION), Purpose.BIAS)
        aged = [trial.score for trial in campaign.of(Purpose.BIAS) if trial.score is not None]
        if len(aged) < 2:
            return verdict
        found = compare(fresh, aged, 1 - verdict.p_value_limit)
        return replace(
            verdict,
            note=f"{verdict.note}; in trials that reused the state of the one before, the default's score "
            f"was {estimate(found.gain_relative, found.gain_low, found.gain_high)} off",
            reuse_bias=found.gain_relative,
            reuse_bias_low=found.gain_low,
            reuse_bias_high=found.gain_high,
        )


def pair_test(study: Study, number: int = 1) -> PairTest:
    """The test of a run's k-th candidate, by the study's `[verify]` section.

    Each errs half as often as the one before. A wrong gain takes half of a two-sided test's level, so all
    candidates together keep the study's.
    """
    wanted = study.verify
    level = wanted.p_value / 2 ** (number - 1)
    return PairTest(level, wanted.margin, wanted.runs_min, wanted.runs_max, failure_ends=False)


def without_comparison(campaign: Campaign) -> Verdict:
    """The verdict where nothing else than the default could be put forward: it says why."""
    searched = [trial for trial in campaign.trials if trial.purpose.of_search]
    others = [one for one in searched if one.configuration != campaign.prepared.space.default()]
    failures = [trial.failure for trial in others if trial.failure is not None]
    if campaign.prepared.space.count() == 1:
        note = "the space has no other configuration than the default; allow more in [space]"
    elif not others:
        note = (
            "the budget left no time to search, only the default was measured; "
            "give the study more, in [study] budget or with --budget"
        )
    elif len(failures) == len(others):
        last = failures[-1]
        note = (
            f"all {len(others)} trials of the search failed, so nothing is known of any other "
            f"configuration; the last one in {last.stage}: {last.message}"
        )
    else:
        broken = [text for trial in campaign.of(Purpose.DEFAULT)[:1] for text in trial.unmet]
        note = "no other configuration was measured to its end and met the constraints"
        if broken:
            note = f"no configuration met the constraints; the default breaks {'; '.join(broken)}"
    return Verdict(kind="not-verified", note=note)


def conclude(study: Study, pairs: Pairs, found: InTurns) -> Verdict:
    """The verdict on the pairs of runs.

    Args:
        study: the study, whose objectives are told apart.
        pairs: all that were made.
        found: the comparison of the pairs.
    """
    known = Verdict(
        kind="not-verified" if pairs.best_fails else found.kind,
        runs_per_side=found.made,
        best_scores=found.candidate,
        default_scores=found.reference,
        p_value_limit=found.test.level,
        margin=found.test.margin,
        ended="failures" if pairs.best_fails else found.ended,
    )
    if found.gain is None:
        few = "no pair of runs was made" if not found.made else "too few pairs are left"
        if pairs.failed:
            few = f"{pairs.failed} of {2 * found.made} runs failed or broke a constraint; {few}"
        return replace(known, note=few)
    if pairs.best_fails:
        return replace(
            known,
            note=f"{pairs.failed} of {2 * found.made} runs failed or broke a constraint, so the best found "
            "cannot be recommended",
        )
    note = (
        "an always-valid t-test of the pairs, asked after every pair of interleaved runs; its "
        f"interval and p-value hold at all looks together; it ended after {found.made} pairs: {found.note}"
    )
    if pairs.failed:
        note += f"; {pairs.failed} runs failed or broke a constraint, and their pairs were left out"
    return replace(known, note=note, objectives=_gains(study, pairs, found), **_estimates(found.gain))


def _gains(study: Study, pairs: Pairs, compared: InTurns) -> tuple[ObjectiveGain, ...]:
    """What the pairs say of each of several objectives; none where there is only one.

    The level is shared out among them, so that all intervals hold together.
    """
    if len(study.objectives) < 2:
        return ()
    found: list[ObjectiveGain] = []
    for objective in study.objectives:
        default = [objective.score(run.metrics) for run, _ in pairs.runs]
        best = [objective.score(run.metrics) for _, run in pairs.runs]
        gain = Gain.of(default, best, objective.direction, compared.test.level / len(study.objectives))
        found.append(ObjectiveGain(objective.text, fmean(best), fmean(default), **gain.estimates()))
    return tuple(found)


def _estimates(gain: Gain | None) -> dict[str, Any]:
    """As verdicts and events have them; none before two pairs could be compared."""
    return {} if gain is None else gain.estimates() | {"p_value": gain.p_value}
