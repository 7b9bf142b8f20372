"""After an improvement is proven: the best configuration in turns with ones that change less."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import log1p, sqrt
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from ascar.events import Event
from ascar.parsimony.effects import Changed
from ascar.parsimony.groups import Shrinking
from ascar.pilot.pairs_needed import pairs_needed
from ascar.pilot.turns import PAIRS_MIN, Gain, PairTest, compare_in_turns
from ascar.results.parsimony import ParameterWorth, Parsimony, ReductionStep
from ascar.results.trial import Purpose
from ascar.verification import Pairs, conclude, pair_test

if TYPE_CHECKING:
    from ascar.campaign import Campaign
    from ascar.pilot.turns import InTurns
    from ascar.results.parsimony import ReductionEnd
    from ascar.results.trial import Trial
    from ascar.results.verdict import Verdict
    from ascar.space import Configuration

    Names = tuple[str, ...]
    Reduced = tuple[Trial | None, Verdict, Parsimony | None]

# The comparison with the default takes more pairs than those that will probably do.
_CAUTION = 1.25


def reduce(campaign: Campaign, best: Trial | None, verdict: Verdict) -> Reduced:
    """Leave out of a proven improvement what does not earn its place, within the budget that is left.

    It is safe to repeat: comparisons that the run has are taken up, not made again.

    Args:
        campaign: the campaign, after the last comparison.
        best: the trial of the configuration that was compared.
        verdict: its verdict.

    Returns:
        The trial and the verdict of what to recommend, and how it came to that: the given ones, and None,
        where there is nothing to leave out.
    """
    if best is None or verdict.kind != "improved" or not best.purpose.of_search:
        return best, verdict, None
    margin = campaign.prepared.study.recommend.margin
    if margin == 0:
        return best, verdict, None
    reduction = _Reduction(campaign, best.configuration, verdict, margin)
    if len(reduction.changed.effects) < 2:
        return best, verdict, None
    found = reduction.run()
    campaign.listener(Event("reduced", {"note": found.note, "kept": found.kept, "left_out": found.left_out}))
    if not found.recommended or found.verdict is None:
        return best, verdict, found
    return reduction.standing, found.verdict, found


class _Over(Exception):  # no error: the budget is spent
    """The budget holds no further pair."""


@dataclass(slots=False)
class _Reduction:
    """The comparisons with one best configuration.

    Attributes:
        campaign: the campaign that carries out the runs.
        best: what every smaller configuration is compared with.
        verdict: its verdict against the default.
        margin: the loss that is accepted.
        steps: the comparisons so far.
        configuration: the smallest one that is proven good enough.
    """

    campaign: Campaign
    best: Configuration
    verdict: Verdict
    margin: float
    steps: dict[Configuration, ReductionStep] = field(default_factory=dict["Configuration", "ReductionStep"])
    configuration: Configuration = field(init=False)

    def __post_init__(self) -> None:
        self.configuration = self.best

    @cached_property
    def changed(self) -> Changed:
        """What there is to leave out, by the trials of the search."""
        prepared = self.campaign.prepared
        searched = [one for one in self.campaign.trials if not one.purpose.of_comparison]
        return Changed.of(prepared.space, self.best, searched, prepared.study.objective, self.margin)

    @property
    def standing(self) -> Trial | None:
        """The latest usable trial of the smallest configuration."""
        trials = [one for one in self.campaign.trials if one.configuration == self.configuration]
        return next((one for one in reversed(trials) if one.usable), None)

    def run(self) -> Parsimony:
        """Make the comparisons, and say what they came to."""
        started_s = self.campaign.elapsed_s
        shrinking = Shrinking(self.changed.ordered, self._good)
        is_over = False
        try:
            shrinking.run(self.changed.guess)
        except _Over:
            is_over = True
        kept = shrinking.kept
        verdict = self._against_default() if self.configuration != self.best else None
        recommended = verdict is not None and verdict.kind == "improved"
        pairs = sum(step.pairs for step in self.steps.values())
        return Parsimony(
            best=dict(self.best),
            kept=kept,
            left_out=tuple(name for name in self.changed.ordered if name not in kept),
            margin=self.margin,
            steps=tuple(step for step in self.steps.values() if step.pairs),
            worth=tuple(self._worth(name, kept) for name in kept),
            verdict=verdict,
            best_verdict=self.verdict,
            recommended=recommended,
            note=self._note(len(kept), verdict, is_over=is_over),
            pairs=pairs + (0 if verdict is None else verdict.runs_per_side),
            seconds=self._seconds(started_s),
        )

    def _seconds(self, started_s: float) -> float:
        """What the runs took, in earlier parts of the run as well."""
        made = sum(one.total_s for one in self.campaign.trials if one.purpose is Purpose.REDUCE)
        return max(made, self.campaign.elapsed_s - started_s)

    def _good(self, kept: Names) -> Names | None:
        """Whether the best with only these parameters changed is good enough; what is kept then."""
        found = self.changed.keeping(kept)
        if found is None:
            return None
        names, configuration = found
        if configuration in (self.best, self.configuration, self._default):
            return None
        if configuration not in self.steps:
            self.steps[configuration] = self._compared(configuration)
        step = self.steps[configuration]
        if step.accepted:
            self.configuration = configuration
            return names
        if step.ended == "time":
            raise _Over
        return None

    @property
    def _default(self) -> Configuration:
        return self.campaign.prepared.space.default()

    @cached_property
    def _scatter(self) -> float:
        """The standard deviation of a pair, as a share of the score, by the last comparison."""
        before, after = np.array(self.verdict.default_scores), np.array(self.verdict.best_scores)
        if (before > 0).all() and (after > 0).all():
            return float((np.log(after) - np.log(before)).std(ddof=1))
        return float((after - before).std(ddof=1) / (abs(after.mean()) or 1.0))

    def _level(self, configuration: Configuration) -> float:
        """Of a two-sided test; a wrong acceptance takes half of it, and all of them the study's together."""
        runs = (one.configuration for one in self.campaign.trials if one.purpose is Purpose.REDUCE)
        tried = [one for one in dict.fromkeys(runs) if one not in (self.best, self._default)]
        number = 1 + [*tried, configuration].index(configuration)
        return 2 * self.campaign.prepared.study.verify.p_value / (number * (number + 1))

    def _compared(self, configuration: Configuration) -> ReductionStep:
        """Run the best and a smaller configuration in turns, until it is accepted or given up."""
        wanted, direction = self.campaign.prepared.study.verify, self.campaign.prepared.study.objective
        left_out = self._left_out(configuration)
        test = PairTest(self._level(configuration), 0.0, wanted.runs_min, wanted.runs_max)
        pairs = Pairs(self.best, configuration, Purpose.REDUCE).recall(self.campaign)
        source = pairs.taken(self.campaign)
        said = False
        while True:
            whole = [(one.score or 0.0, other.score or 0.0) for one, other in pairs.runs]
            gain = None
            if len(whole) >= PAIRS_MIN:
                before, after = zip(*whole, strict=True)
                gain = Gain.of(before, after, direction.direction, test.level)
            ended = self._ended(pairs, gain, test)
            if ended is not None:
                break
            if not said:
                said = True
                self.campaign.listener(Event("reducing", {"left_out": left_out}))
            next(source)
        return ReductionStep(
            left_out=left_out,
            configuration=dict(configuration),
            accepted=ended == "within-margin",
            confidence=1 - test.level,
            pairs=len(pairs.made),
            ended=ended,
            **({} if gain is None else gain.estimates()),
        )

    def _left_out(self, configuration: Configuration) -> Names:
        """The parameters that are at the default here, and not in the smallest one accepted so far."""
        return tuple(
            name
            for name in self.changed.ordered
            if configuration.get(name) != self.best[name] and self.configuration.get(name) == self.best[name]
        )

    def _ended(self, pairs: Pairs, gain: Gain | None, test: PairTest) -> ReductionEnd | None:
        """Why a comparison is over; None while it goes on."""
        limits, made = self._limits(pairs, gain), len(pairs.made)
        ended: ReductionEnd | None = None
        if pairs.best_fails or (made >= test.pairs_min and not pairs.runs):
            ended = "failures"
        elif made >= test.pairs_min and limits is not None and limits[0] > -self.margin:
            ended = "within-margin"
        elif made >= test.pairs_min and limits is not None and limits[1] < -self.margin:
            ended = "worse"
        elif made >= test.pairs_max:
            ended = "runs-max"
        return ended or self._out_of_budget(pairs, test)

    def _out_of_budget(self, pairs: Pairs, test: PairTest) -> ReductionEnd | None:
        """Whether the next pair does not fit, or those that would accept it probably do not."""
        turn, made = (pairs.default, pairs.best), len(pairs.made)
        left_s = self.campaign.left_s - self._reserve_s
        pair_s = self.campaign.pair_s(turn)
        if self.campaign.load_s_for(turn) == 0 or pair_s > left_s:
            return "time"
        if 0 < made < test.pairs_min:
            return None
        more = self._more_pairs(pairs, test)
        return "unlikely" if more is None or more * pair_s > left_s else None

    def _limits(self, pairs: Pairs, gain: Gain | None) -> tuple[float, float] | None:
        """Limits of the gain over the best, as a share of it; of differences, a share of the mean's size."""
        if gain is None or gain.interval is None:
            return None
        size = 1.0
        if gain.gain_relative is None:
            size = abs(float(np.mean([one.score or 0.0 for one, _ in pairs.runs])))
        return (gain.interval[0] / size, gain.interval[1] / size) if size else None

    def _more_pairs(self, pairs: Pairs, test: PairTest) -> int | None:
        """How many further pairs accept it, if it is as good as what was seen leaves likely."""
        scores = np.array([(one.score, other.score) for one, other in pairs.runs], np.float64).reshape(-1, 2)
        sign = self.campaign.prepared.study.objective.sign
        mean, scatter = 0.0, self._scatter
        if len(scores) >= PAIRS_MIN:
            if (scores > 0).all():
                seen = sign * np.diff(np.log(scores), axis=1)
            else:
                seen = sign * np.diff(scores, axis=1) / (abs(float(scores[:, 0].mean())) or 1.0)
            scatter = max(float(seen.std(ddof=1)), 1e-9)
            mean = float(seen.mean()) + scatter / sqrt(len(seen))
        above = mean - log1p(-self.margin)
        needed = pairs_needed(above, scatter, test) if above > 0 else None
        return None if needed is None else max(1, needed - len(pairs.made))

    @cached_property
    def _reserve_s(self) -> float:
        """Seconds that the comparison with the default will probably take."""
        verdict = self.verdict
        if verdict.gain_relative is not None:
            gain = abs(log1p(verdict.gain_relative))
        else:
            size = abs(float(np.mean(verdict.default_scores))) or 1.0
            gain = abs(verdict.difference or 0.0) / size
        gain = max(gain + log1p(-self.margin), gain / 2)
        test = pair_test(self.campaign.prepared.study, verdict.candidates + 1)
        needed = pairs_needed(gain, self._scatter, test) or test.pairs_max
        return _CAUTION * needed * self.campaign.pair_s((self._default, self.best))

    def _against_default(self) -> Verdict:
        """The smallest configuration in turns with the default: it is recommended only if that shows a gain.

        The test counts as that of a further candidate of the run.
        """
        campaign, study = self.campaign, self.campaign.prepared.study
        runs = [one.configuration for one in campaign.trials if one.purpose is Purpose.REDUCE]
        beside = [one for two in pairwise(runs) if self._default in two for one in two]
        earlier = [one for one in dict.fromkeys(beside) if one not in (self._default, self.best)]
        before = [*earlier, self.configuration].index(self.configuration)
        number = self.verdict.candidates + 1 + before
        pairs = Pairs(self._default, self.configuration, Purpose.REDUCE).recall(campaign)
        turn = (self._default, self.configuration)

        def over(_: InTurns) -> bool:
            return pairs.best_fails or campaign.load_s_for(turn) == 0

        found = compare_in_turns(
            pairs.taken(campaign),
            study.objective.direction,
            pair_test(study, number),
            known=tuple(pairs.scores),
            over=over,
            told=lambda now: campaign.listener(Event("compared", _told(now))),
        )
        return replace(conclude(study, pairs, found), candidates=number)

    def _worth(self, name: str, kept: Names) -> ParameterWorth:
        """What the best loses without this parameter, and without those that are not kept."""
        found = self.changed.keeping([one for one in kept if one != name])
        if found is None:
            return ParameterWorth(name)
        if found[1] == self._default:
            return self._worth_of_all(name)
        step = self.steps.get(found[1])
        if step is None or step.pairs == 0:
            return ParameterWorth(name)
        return ParameterWorth(
            name,
            loss_relative=_negative(step.gain_relative),
            loss_low=_negative(step.gain_high),
            loss_high=_negative(step.gain_low),
            loss=_negative(step.difference),
        )

    def _worth_of_all(self, name: str) -> ParameterWorth:
        """Without it the default is left: what the best loses then, by the last comparison."""
        verdict, sign = self.verdict, self.campaign.prepared.study.objective.sign

        def loss(gain: float | None) -> float | None:
            return None if gain is None or 1 + sign * gain <= 0 else gain / (1 + sign * gain)

        limits = loss(verdict.gain_low), loss(verdict.gain_high)
        return ParameterWorth(name, loss(verdict.gain_relative), *limits, loss=verdict.difference)

    def _note(self, kept: int, verdict: Verdict | None, *, is_over: bool) -> str:
        """How it ended, one sentence."""
        whole = len(self.changed.effects)
        short = any(step.ended in ("time", "unlikely") for step in self.steps.values() if not step.accepted)
        if verdict is None:
            if is_over or short:
                return "the budget left too little time to prove that fewer parameters do as well"
            return f"all {whole} parameters that the best configuration changes are needed"
        said = f"{kept} of {whole} changed parameters do as well, within {self.margin:.3g} of the best"
        if verdict.kind != "improved":
            return f"{said}; but they are not proven to beat the default, so the best stays recommended"
        if is_over:
            return f"{said}; the budget ended before the rest was tried"
        return said


def _told(now: InTurns) -> dict[str, object]:
    gain = now.gain
    found: dict[str, object] = {"pairs": now.made}
    return found if gain is None else found | gain.estimates() | {"p_value": gain.p_value}


def _negative(value: float | None) -> float | None:
    return None if value is None else -value
