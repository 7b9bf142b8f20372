"""After an improvement is proven: the best configuration in turns with ones that change less."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import log1p
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec.structs import replace

from ascar.events import Event
from ascar.pairs import Pairs, Scatter
from ascar.parsimony.comparison import LossComparison
from ascar.parsimony.effects import Changed
from ascar.parsimony.groups import Shrinking
from ascar.parsimony.worth import gain_kept, still_better, worth_of, worth_of_all
from ascar.pilot.pairs_needed import pairs_needed
from ascar.pilot.turns import compare_in_turns
from ascar.results.outcome import StoppedEarly
from ascar.results.parsimony import Parsimony
from ascar.results.trial import Purpose
from ascar.verification import conclude, pair_test

if TYPE_CHECKING:
    from ascar.campaign import Campaign
    from ascar.pilot.turns import InTurns
    from ascar.results.outcome import Outcome
    from ascar.results.parsimony import ParameterWorth, ReductionEnd, ReductionStep
    from ascar.results.trial import Trial
    from ascar.results.verdict import Verdict
    from ascar.space import Configuration

    Names = tuple[str, ...]

# The comparison with the default takes more pairs than those that will probably do.
_CAUTION = 1.25
# Shares of the time left that one comparison may take, and of the margin that the loss itself may probably
# be: what takes longer, or would use up the margin, is put off to the next round.
_ROUNDS = ((0.2, 1 / 3), (0.5, 2 / 3), (1.0, 1.0))
_End = Literal["done", "budget", "stopped"]
_ENDS: dict[_End, str] = {
    "done": "",
    "budget": "; the budget ended before the rest was tried",
    "stopped": "; the run was stopped before the rest was tried",
}


def reduce(campaign: Campaign, outcome: Outcome) -> Outcome:
    """Leave out of a proven improvement what does not earn its place, within the budget that is left.

    It is safe to repeat: comparisons that the run has are taken up, not made again. What is proven is kept
    in the history at once, so that whatever ends the run leaves it there.

    Args:
        campaign: the campaign, after the last comparison.
        outcome: what it came to.

    Returns:
        The outcome with what to recommend, and how it came to that; the given one where there is nothing to
        leave out.

    Raises:
        StoppedEarly: interrupted; it holds the outcome with what is proven so far.
    """
    best, margin = outcome.best, campaign.prepared.study.recommend_margin
    if best is None or outcome.verdict.kind != "improved" or not best.purpose.of_search or margin == 0:
        return outcome
    reduction = _Reduction(campaign, outcome, best.configuration, margin)
    if len(reduction.changed.effects) < 2:
        return outcome
    return reduction.run()


class _Over(Exception):  # no error: the budget is spent
    """The budget holds no further pair."""


@dataclass(slots=False)
class _Reduction:
    """The comparisons with one best configuration.

    Attributes:
        campaign: the campaign that carries out the runs.
        outcome: what it came to before.
        best: what every smaller configuration is compared with.
        margin: the loss that is accepted.
        steps: the comparisons so far.
        configuration: the smallest one that is proven good enough.
    """

    campaign: Campaign
    outcome: Outcome
    best: Configuration
    margin: float
    steps: dict[Configuration, ReductionStep] = field(default_factory=dict["Configuration", "ReductionStep"])
    configuration: Configuration = field(init=False)
    _kept: Names = field(init=False)
    _round: tuple[float, float] = _ROUNDS[0]
    _started_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.configuration, self._kept = self.best, self.changed.ordered
        self._started_s = self.campaign.elapsed_s

    @cached_property
    def changed(self) -> Changed:
        """What there is to leave out, by the trials of the search."""
        prepared = self.campaign.prepared
        searched = [one for one in self.campaign.trials if not one.purpose.of_comparison]
        return Changed.of(prepared.space, self.best, searched, prepared.study.objective, self.margin)

    @property
    def _verdict(self) -> Verdict:
        return self.outcome.verdict

    @property
    def _sign(self) -> int:
        return self.campaign.prepared.study.objective.sign

    def run(self) -> Outcome:
        """Make the comparisons, and say what they came to."""
        verdict: Verdict | None = None
        end: _End = "done"
        try:
            end = self._shrunk()
            verdict = self._against_default() if self.configuration != self.best else None
        except KeyboardInterrupt:
            end = "stopped"
        found = self._found(verdict, end)
        outcome = self._outcome(found)
        if end == "stopped":
            self.campaign.keep(outcome)
            raise StoppedEarly(self.campaign.accounted(outcome))
        told = {"note": found.note, "kept": found.kept, "left_out": found.left_out}
        self.campaign.listener(Event("reduced", told))
        return outcome

    def _shrunk(self) -> _End:
        """Leave out as much as possible, as far as the budget reaches."""
        shrinking = Shrinking(self._kept, self._good)
        try:
            for self._round in _ROUNDS:
                shrinking.run(self.changed.guess)
                if not any(step.ended == "unlikely" for step in self.steps.values()):
                    break
        except _Over:
            return "budget"
        return "done"

    def _outcome(self, found: Parsimony) -> Outcome:
        """What the run comes to with the smallest configuration that is proven."""
        outcome = replace(self.outcome, parsimony=found)
        if not found.recommended:
            return outcome
        outcome = replace(outcome, recommended=self.configuration)
        if found.verdict is None or found.verdict.kind != "improved":
            return outcome  # the verdict is about the best; what the smaller one loses is known
        return replace(outcome, verdict=found.verdict, best=self._standing)

    @property
    def _standing(self) -> Trial | None:
        """The latest usable trial of the smallest configuration."""
        trials = [one for one in self.campaign.trials if one.configuration == self.configuration]
        return next((one for one in reversed(trials) if one.usable), None)

    def _found(self, verdict: Verdict | None, end: _End) -> Parsimony:
        pairs = sum(step.pairs for step in self.steps.values())
        made = sum(one.total_s for one in self.campaign.trials if one.purpose is Purpose.REDUCE)
        step = self.steps.get(self.configuration)
        recommended = False
        if step is not None:
            known = "undecided" if verdict is None else verdict.kind
            by_both = known == "undecided" and still_better(self._verdict, step, self._sign)
            recommended = known == "improved" or by_both
        return Parsimony(
            best=dict(self.best),
            kept=self._kept,
            left_out=tuple(name for name in self.changed.ordered if name not in self._kept),
            margin=self.margin,
            steps=tuple(step for step in self.steps.values() if step.pairs),
            worth=tuple(self._worth(name) for name in self._kept),
            verdict=verdict,
            best_verdict=self._verdict,
            recommended=recommended,
            note=self._note(verdict, end, recommended=recommended),
            pairs=pairs + (0 if verdict is None else verdict.runs_per_side),
            seconds=max(made, self.campaign.elapsed_s - self._started_s),
            **({} if step is None else gain_kept(self._verdict, step, self._sign)),
        )

    def _good(self, kept: Names) -> Names | None:
        """Whether the best with only these parameters changed is good enough; what is kept then."""
        found = self.changed.keeping(kept)
        if found is None:
            return None
        names, configuration = found
        if configuration in (self.best, self.configuration, self._default):
            return None
        step = self.steps.get(configuration)
        if step is None or step.ended == "unlikely":
            step = self.steps[configuration] = self._compared(configuration)
        if step.accepted:
            self.configuration, self._kept = configuration, names
            self.campaign.keep(self._outcome(self._found(None, "stopped")))
            return names
        if step.ended == "time":
            raise _Over
        return None

    @property
    def _default(self) -> Configuration:
        return self.campaign.prepared.space.default()

    def _level(self, configuration: Configuration) -> float:
        """Of a two-sided test; a wrong acceptance takes half of it, and all of them the study's together."""
        runs = (one.configuration for one in self.campaign.trials if one.purpose is Purpose.REDUCE)
        tried = [one for one in dict.fromkeys(runs) if one not in (self.best, self._default)]
        number = 1 + [*tried, configuration].index(configuration)
        return 2 * self.campaign.prepared.study.verify.p_value / (number * (number + 1))

    def _compared(self, configuration: Configuration) -> ReductionStep:
        """Run the best and a smaller configuration in turns, until it is accepted or given up."""
        left_out = self._left_out(configuration)
        level, (patience, likely) = self._level(configuration), self._round
        comparison = LossComparison(self.campaign, self.best, configuration, self.margin, level, likely)
        source = comparison.pairs.taken(self.campaign)
        allowed_s = patience * (self.campaign.left_s - self._reserve_s)
        ends_s, said = self.campaign.elapsed_s + allowed_s, False
        while (ended := comparison.ended or self._out_of_budget(comparison, ends_s)) is None:
            if not said:
                said = True
                self.campaign.listener(Event("reducing", {"left_out": left_out}))
            next(source)
        return comparison.step(left_out, ended)

    def _left_out(self, configuration: Configuration) -> Names:
        """The parameters that are at the default here, and not in the smallest one accepted so far."""
        return tuple(
            name
            for name in self.changed.ordered
            if configuration.get(name) != self.best[name] and self.configuration.get(name) == self.best[name]
        )

    def _out_of_budget(self, comparison: LossComparison, ends_s: float) -> ReductionEnd | None:
        """Whether the next pair does not fit, or those that would accept it probably take too long."""
        turn = (self.best, comparison.smaller)
        pair_s = self.campaign.pair_s(turn)
        if self.campaign.load_s_for(turn) == 0 or pair_s > self.campaign.left_s - self._reserve_s:
            return "time"
        more = comparison.more_pairs
        return "unlikely" if more is None or more * pair_s > ends_s - self.campaign.elapsed_s else None

    @cached_property
    def _reserve_s(self) -> float:
        """Seconds that the comparison with the default will probably take."""
        verdict = self._verdict
        if verdict.gain_relative is not None:
            gain = abs(log1p(verdict.gain_relative))
        else:
            size = abs(float(np.mean(verdict.default_scores))) or 1.0
            gain = abs(verdict.difference or 0.0) / size
        gain = max(gain + log1p(-self.margin), gain / 2)
        test = pair_test(self.campaign.prepared.study, verdict.candidates + 1)
        needed = pairs_needed(gain, Scatter.pooled(self.campaign.trials).sd, test) or test.pairs_max
        return _CAUTION * needed * self.campaign.pair_s((self._default, self.best))

    def _against_default(self) -> Verdict:
        """The smallest configuration in turns with the default, as a further candidate of the run."""
        campaign, study = self.campaign, self.campaign.prepared.study
        runs = [one.configuration for one in campaign.trials if one.purpose is Purpose.REDUCE]
        beside = [one for two in pairwise(runs) if self._default in two for one in two]
        earlier = [one for one in dict.fromkeys(beside) if one not in (self._default, self.best)]
        before = [*earlier, self.configuration].index(self.configuration)
        number = self._verdict.candidates + 1 + before
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

    def _worth(self, name: str) -> ParameterWorth:
        """What the best loses without this parameter, and without those that are not kept."""
        found = self.changed.keeping([one for one in self._kept if one != name])
        if found is not None and found[1] == self._default:
            return worth_of_all(name, self._verdict, self._sign)
        return worth_of(name, None if found is None else self.steps.get(found[1]))

    def _note(self, verdict: Verdict | None, end: _End, *, recommended: bool) -> str:
        """How it ended, one sentence."""
        whole = len(self.changed.effects)
        short = any(step.ended in ("time", "unlikely") for step in self.steps.values() if not step.accepted)
        if self.configuration == self.best:
            if end == "stopped":
                return "the run was stopped before fewer parameters were proven to do as well"
            if end == "budget" or short:
                return "the budget left too little time to prove that fewer parameters do as well"
            return f"all {whole} parameters that the best configuration changes are needed"
        kept = f"{len(self._kept)} of {whole} changed parameters"
        said = f"{kept} do as well, within {self.margin:.3g} of the best"
        if not recommended:
            said += "; but they are not proven to beat the default, so the best stays recommended"
        elif verdict is None or verdict.kind != "improved":
            said += "; the verdict is that of the best"
        return said + _ENDS[end]


def _told(now: InTurns) -> dict[str, object]:
    gain = now.gain
    found: dict[str, object] = {"pairs": now.made}
    return found if gain is None else found | gain.estimates() | {"p_value": gain.p_value}
