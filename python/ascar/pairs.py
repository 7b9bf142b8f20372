"""Runs of two configurations in turns, pair by pair, and how much pairs scatter."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, sqrt
from statistics import fmean
from typing import TYPE_CHECKING

from ascar.optimizers.proposals import Proposal
from ascar.pilot.turns import alternating
from ascar.results.trial import Origin, Purpose, TrialState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ascar.campaign import Campaign
    from ascar.pilot.turns import Scores
    from ascar.results.trial import Trial
    from ascar.space import Configuration

# A candidate whose runs fail, or break a constraint, in more than this share of the pairs is not recommended.
_FAILURES_SHARE_MAX = 0.1
# What earlier comparisons show of the scatter counts as much as so many pairs at most.
_EARLIER_DOF_MAX = 10


@dataclass(slots=True)
class Pairs:
    """Runs of the default and of the best in turns, pair by pair.

    Attributes:
        default: the default configuration, which the best one must beat.
        best: the configuration that the search recommends.
        purpose: the purpose of the runs.
        made: the pairs, the default's run first.
    """

    default: Configuration
    best: Configuration
    purpose: Purpose = Purpose.VERIFY
    made: list[tuple[Trial, Trial]] = field(default_factory=list["tuple[Trial, Trial]"])
    _waiting: Trial | None = None

    def recall(self, campaign: Campaign, after: int = 0) -> Pairs:
        """Take in the pairs that the run has of these two already, of the trials after this number."""
        for trial in campaign.trials:
            if trial.purpose is self.purpose and trial.number > after:
                self.take(trial)
        return self

    def turn(self) -> tuple[Configuration, Configuration]:
        """The next pair; the first of each pair alternates, so that a drift favours neither.

        What is left of a pair that an interruption broke is dropped.
        """
        self._waiting = None
        sides = {"reference": self.default, "candidate": self.best}
        first, second = alternating(len(self.made))
        return sides[first], sides[second]

    def take(self, trial: Trial) -> None:
        """Take in a run that has ended: it makes a pair with the one before, if that was another's."""
        first, self._waiting = _beside(self._waiting, trial)
        if first is None:
            return
        sides = {one.configuration: one for one in (first, trial)}
        if self.default in sides and self.best in sides:
            self.made.append((sides[self.default], sides[self.best]))

    def taken(self, campaign: Campaign) -> Iterator[Scores]:
        """Run pair after pair, without end."""
        while True:
            turn = self.turn()
            load_max_s = campaign.load_s_for(turn)
            for configuration in turn:
                proposal = Proposal(configuration, Origin.VERIFICATION)
                self.take(campaign.attempt(proposal, self.purpose, load_max_s=load_max_s))
            yield self.latest

    @property
    def scores(self) -> list[Scores]:
        """The scores of each pair; None for a run that failed or broke a constraint."""
        return [_scores(*pair) for pair in self.made]

    @property
    def latest(self) -> Scores:
        """The scores of the last pair."""
        return _scores(*self.made[-1])

    @property
    def runs(self) -> list[tuple[Trial, Trial]]:
        """The pairs that can be compared."""
        return [(default, best) for default, best in self.made if default.usable and best.usable]

    @property
    def failed(self) -> int:
        """Runs that failed or broke a constraint."""
        return sum(not run.usable for pair in self.made for run in pair)

    @property
    def best_fails(self) -> bool:
        """Whether the best's runs fail, or break a constraint, too often for a recommendation."""
        failures = sum(not best.usable for _, best in self.made)
        return failures > max(1, _FAILURES_SHARE_MAX * len(self.made))


def _scores(default: Trial, best: Trial) -> Scores:
    return default.score if default.usable else None, best.score if best.usable else None


def _beside(waiting: Trial | None, trial: Trial) -> tuple[Trial | None, Trial | None]:
    """The run that one which has ended makes a pair with, if there is one, and the run that then waits."""
    if trial.state is TrialState.INTERRUPTED:
        return None, None
    if waiting is None or waiting.configuration == trial.configuration:
        return None, trial  # its partner is to come, or was interrupted
    return waiting, None


def paired(trials: Iterable[Trial]) -> Iterator[tuple[Trial, Trial]]:
    """Runs of the last comparison, pair by pair, whatever they compare."""
    waiting: Trial | None = None
    for trial in trials:
        first, waiting = _beside(waiting, trial)
        if first is not None:
            yield first, trial


@dataclass(frozen=True, slots=True)
class Scatter:
    """How much pairs of runs scatter.

    Attributes:
        sd: the standard deviation of a pair: of the ratio's logarithm, or of the difference as a share of the
            first side's size where some scores are not above zero.
        dof: its degrees of freedom; 0: nothing is known.
    """

    sd: float = 0.0
    dof: int = 0

    @classmethod
    def of(cls, changes: Sequence[float]) -> Scatter:
        """That of one comparison's pairs."""
        if len(changes) < 2:
            return cls()
        mean = fmean(changes)
        return cls(sqrt(sum((one - mean) ** 2 for one in changes) / (len(changes) - 1)), len(changes) - 1)

    @classmethod
    def pooled(cls, trials: Iterable[Trial]) -> Scatter:
        """That of all comparisons in these trials together, each about its own mean."""
        made: dict[tuple[Configuration, Configuration], list[tuple[float, float]]] = {}
        for one, other in paired(trial for trial in trials if trial.purpose.of_comparison):
            if one.usable and other.usable:
                two, scores = (one.configuration, other.configuration), (one.score or 0.0, other.score or 0.0)
                if (turned := (two[1], two[0])) in made:
                    two, scores = turned, (scores[1], scores[0])
                made.setdefault(two, []).append(scores)
        found = [cls.of(changes(pairs)) for pairs in made.values()]
        dof = sum(one.dof for one in found)
        return cls(sqrt(sum(one.dof * one.sd**2 for one in found) / dof), dof) if dof else cls()

    def with_earlier(self, earlier: Scatter) -> Scatter:
        """This scatter, with what earlier comparisons show of it, unless its own is the greater one.

        Of earlier ones a few pairs count: configurations that scatter more than others must not pass for
        quiet ones.
        """
        dof = min(earlier.dof, _EARLIER_DOF_MAX)
        if self.dof + dof == 0:
            return self
        sd = sqrt((self.dof * self.sd**2 + dof * earlier.sd**2) / (self.dof + dof))
        return self if self.dof > 0 and sd < self.sd else Scatter(sd, self.dof + dof)


def changes(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """From the first to the second of each pair: logarithms of ratios, or shares of the first side's size."""
    if all(one > 0 and other > 0 for one, other in pairs):
        return [log(other / one) for one, other in pairs]
    size = abs(fmean(one for one, _ in pairs)) or 1.0
    return [(other - one) / size for one, other in pairs]
