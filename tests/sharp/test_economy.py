"""Our schedule and its parts: races, the model of actions, splits along one indicator, a first phase."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.sharp import (
    About,
    Action,
    Interval,
    Journal,
    Judge,
    Observed,
    RuleRun,
    RuleSet,
    SearchLimits,
    SearchPlan,
    objective_of,
    rehearsed,
    search,
)
from ascar.sharp.plan import FIRST, PARTS
from ascar.sharp.schedules.action_model import Actions, promising
from ascar.sharp.schedules.economy import SWEPT
from ascar.sharp.schedules.racing import Field, limit, race
from ascar.sharp.schedules.scouting import Scout, usual_window
from ascar.sharp.trials.bench import RuleTrial

MEANS = (60_000, 70_000, 500)


@dataclass(frozen=True)
class Landscape:
    """A bench whose scores are known: each rule is followed in its part of three indicators.

    A state is (ack, send, ratio). The best window is 4 where the ratio is below 500 and 24 elsewhere; gaps
    cost. Noise is shared by what has the same repeat, and partly its own.
    """

    shared: float = 3.0
    own: float = 0.3
    shift: float = 0.0

    @property
    def identity(self):
        return f"landscape {self.shared} {self.own} {self.shift}"

    def run(self, trials):
        for trial in trials:
            yield self.result(trial)

    def result(self, trial):
        states = [
            (ack, send, ratio)
            for ack in (40_000, 80_000)
            for send in (50_000, 90_000)
            for ratio in (300, 700)
        ]
        uses = [0] * len(trial.rules.rules)
        score = 0.0
        for state in states:
            at = next(
                number
                for number, rule in enumerate(trial.rules.rules)
                if all(part.contains(value) for part, value in zip(rule.region, state, strict=False))
            )
            uses[at] += 100
            action = trial.rules.rules[at].action
            window = usual_window(action) if action.m100 < 100 else 8.0
            wanted = (4.0 if state[2] < 500 else 24.0) * 2**self.shift
            score += 100 / len(states) * (1 - 0.1 * math.log2(window / wanted) ** 2 - action.tau_us / 1e6)
        noise = np.random.default_rng(trial.repeat).normal(0, self.shared)
        noise += np.random.default_rng([trial.repeat, crc32(trial.rules.text().encode())]).normal(0, self.own)
        rules = tuple(
            replace(rule, observed=Observed(count, MEANS))
            for rule, count in zip(trial.rules.rules, uses, strict=True)
        )
        return RuleRun({"score": score + noise}, (score,), RuleSet(rules))


@pytest.fixture
def judging():
    with ExitStack() as stack:

        def make(bench, path, plan=None, **settings):
            wanted = objective_of("maximize score")
            journal = stack.enter_context(Journal(path, About.of(bench, wanted, plan or SearchPlan())))
            return Judge(bench, wanted, journal, **settings)

        yield make


def true_score(rules):
    return Landscape(0, 0).result(_Trial(rules)).metrics["score"]


def swept(judge):
    return all(judge.journal.known(RuleTrial(one.bare())) is not None for one in SWEPT)


@dataclass(frozen=True)
class _Trial:
    rules: RuleSet
    repeat: int = 0


def test_the_one_indicator_that_matters_is_found_and_both_halves_improved(judging, tmp_path):
    judge = judging(Landscape(), tmp_path / "journal")
    found = search(judge, SearchPlan())
    assert found.stopped == "no-gain"
    assert judge.evaluations < 350
    rules = found.best.rules.rules
    axes = {axis for rule in rules for axis, part in enumerate(rule.region) if part.lo > 100}
    assert 2 in axes
    assert true_score(found.best.rules) > 98  # of 100; the best single window has 80
    assert true_score(RuleSet.uniform(Action(0, 1_000, 0))) < 85


@pytest.mark.slow
@pytest.mark.parametrize("part", [None, *PARTS])
def test_it_does_without_any_part(judging, tmp_path, part):
    plan = SearchPlan(without=frozenset() if part is None else frozenset([part]))
    judge = judging(Landscape(), tmp_path / "journal", plan, limits=SearchLimits(1_500))
    found = search(judge, plan)
    assert true_score(found.best.rules) > 75
    assert judge.evaluations <= 1_500


def test_without_common_numbers_every_rule_set_has_its_own(judging, tmp_path):
    plan = SearchPlan(without=frozenset(["common-numbers"]))
    path = tmp_path / "journal"
    judge = judging(Landscape(), path, plan, limits=SearchLimits(40))
    search(judge, plan)
    first, *others = [line for line in path.read_text().splitlines()[1:] if '"repeat"' in line]
    repeats = [int(line.split('"repeat":')[1].split(",")[0]) for line in (first, *others)]
    assert min(repeats) >= 50
    assert len(set(repeats)) == len(repeats)


def test_a_race_finds_the_best_and_spares_the_bad_ones(judging, tmp_path):
    judge = judging(Landscape(), tmp_path / "journal")
    field = Field(judge)
    (reference,) = field.run([RuleSet.uniform(Action(0, 800, 0))], 3)
    starters = field.tried([RuleSet.uniform(Action(0, 100 * window, 0)) for window in (1, 2, 10, 64)])
    winner = race(field, reference, starters)
    assert winner.rules.rules[0].action == Action(0, 1_000, 0)
    assert len(winner.scores) >= 3
    runs = [len(field.latest(one).scores) for one in starters]
    assert runs[0] == runs[3] == 1
    assert race(field, winner, starters[:2]).rules == winner.rules


def test_equal_ones_rarely_win_a_race(judging, tmp_path):
    # The same but for a gap too short to matter: whoever is called the winner is called so by chance.
    wins = 0
    for number in range(40):
        judge = judging(Landscape(own=1.0), tmp_path / f"{number}")
        field = Field(judge)
        (reference,) = field.run([RuleSet.uniform(Action(0, 800, 1_000 * number))], 3)
        (other,) = field.tried([RuleSet.uniform(Action(0, 800, 1_000 * number + 1))])
        wins += race(field, reference, [other]).rules == other.rules
    assert wins <= 10


def test_limits_hold_at_all_laps_together():
    rng = np.random.default_rng(1)
    laps = np.arange(1, 9)
    limits = np.array([limit(2.0, int(lap)) for lap in laps])
    means = rng.normal(0, 2.0, (4_000, 8)).cumsum(1) / laps
    missed = (np.abs(means) > limits).any(1).mean()
    assert 0.01 < missed < 0.2


def test_the_model_names_the_best_action_of_a_smooth_landscape(judging, tmp_path):
    judge = judging(Landscape(shared=0, own=0.01), tmp_path / "journal")
    field = Field(judge)
    (best,) = field.run([RuleSet.uniform(Action(0, 800, 0))], 3)
    field.tried(list(SWEPT))
    actions = Actions(8.0)
    named = promising(actions, field.variants(best.rules, 0), best, 4)
    assert len({one.action for one in named}) == 4
    assert any(usual_window(one.action) in (10, 12) for one in named)
    assert all(one.improvement >= 0 for one in named)


def test_actions_lead_where_they_say():
    actions = Actions(8.0)
    for action in actions.every():
        assert actions.leading_to(actions.leads_to(action), action.m100, action.tau_us) == action
    assert actions.columns(actions.every()).shape == (len(set(actions.every())), 3)
    assert all(action.tau_us == 0 for action in actions.near(Action(0, 400, 0)))
    assert actions.leads_to(Action(-1, 100, 0)) == 9.0
    assert usual_window(Action(50, 200, 0)) == 4.0
    assert usual_window(Action(100, 0, 0)) == 8.0
    assert usual_window(Action(0, 25_600, 0)) == 64.0


def test_no_rule_is_split_twice_along_an_indicator_nor_where_nothing_was_seen(judging, tmp_path):
    judge = judging(Landscape(), tmp_path / "journal")
    scout = Scout(Field(judge))
    (best,) = scout.field.run([RuleSet.uniform(Action(0, 1_000, 0))], 3)
    cuts = [scout.cut(best) for _ in range(3)]
    assert all(cut is not None and len(cut.rules.rules) == 2 for cut in cuts)
    # The ratio explains most; of the others nothing is to be won.
    assert cuts[0].rules.rules[0].region[2] == Interval(100, 500)
    assert len({cut.rules for cut in cuts}) == 3
    assert scout.cut(best) is None


def test_runs_of_the_whole_count_for_its_halves(judging, tmp_path):
    judge = judging(Landscape(), tmp_path / "journal")
    field = Field(judge)
    (best,) = field.run([FIRST], 3)
    halves = replace(best, rules=SWEPT[0])
    assert field.adopt(halves) is halves
    before = judge.evaluations
    assert field.run([SWEPT[0]], 3) == [halves]
    assert judge.evaluations == before


def test_what_a_simulation_found_is_where_the_search_begins(judging, tmp_path):
    plan = rehearsed(judging(Landscape(shift=0.3), tmp_path / "first"), SearchPlan())
    assert plan.others and plan.hoped > 0.1
    judge = judging(Landscape(), tmp_path / "second", plan, limits=SearchLimits(40))
    found = search(judge, plan)
    assert not swept(judge)
    assert true_score(found.best.rules) > 95
    alone = judging(Landscape(), tmp_path / "alone", limits=SearchLimits(40))
    assert true_score(search(alone, SearchPlan()).best.rules) < true_score(found.best.rules)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [3.0, -4.0])
def test_a_simulation_that_misleads_costs_a_sweep_and_no_more(judging, tmp_path, shift):
    """Its windows are eight times too wide, or as narrow as can be."""
    plan = rehearsed(judging(Landscape(shift=shift), tmp_path / "first"), SearchPlan())
    judge = judging(Landscape(), tmp_path / "second", plan)
    found = search(judge, plan)
    assert swept(judge)
    assert true_score(found.best.rules) > 95


def test_a_simulation_in_which_nothing_was_better_tells_nothing(judging, tmp_path):
    first = judging(Landscape(), tmp_path / "first", limits=SearchLimits(3))
    plan = rehearsed(first, SearchPlan())
    assert (plan.others, plan.hoped) == ((), None)
    judge = judging(Landscape(), tmp_path / "second", plan)
    search(judge, plan)
    assert swept(judge)


def test_wrong_plans_are_refused(judging, tmp_path):
    with pytest.raises(InputError, match="only 'sharp' has two phases"):
        rehearsed(judging(Landscape(), tmp_path / "first", SearchPlan("remy")), SearchPlan("remy"))
    with pytest.raises(InputError, match="without = 'speed'"):
        SearchPlan(without=frozenset(["speed"]))
    with pytest.raises(InputError, match="begins with one rule set"):
        SearchPlan("remy", others=(FIRST,))
    assert SearchPlan(without=frozenset(["sweep", "racing"])).name == "sharp without racing without sweep"
