"""Contestants in turns, on a synthetic clock: no test here runs anything."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.pilot import ComparisonTerms, Contest, ContestPlan, Limits, Round, run_contest
from ascar.pilot.contest import means_of_subsessions
from ascar.pilot.interleaving import orders, round_value


class Machine:
    """Contestants on one clock, whose speed may drift; each round takes a second.

    Args:
        means: of each contestant's readings.
        sd: of a round, over the mean.
        drift: what the whole machine's speed moves by from round to round, over the mean.
        seed: of all noise.
    """

    def __init__(self, means, sd=0.05, drift=0.0, seed=0):
        self.now_s = 0.0
        self.ran = []
        self._rng = np.random.default_rng(seed)
        self._shared, self._drift, self._sd = 0.0, drift, sd
        self.runners = [self._runner(index, mean) for index, mean in enumerate(means)]

    def clock(self):
        return self.now_s

    def _runner(self, index, mean):
        def run(work_amount, left_s):
            assert work_amount is None
            if left_s < 1.0:
                self.now_s += left_s
                return None
            self.now_s += 1.0
            self.ran.append(index)
            self._shared += self._drift * self._rng.normal()
            value = mean * (1 + self._shared + self._sd * self._rng.normal())
            return Round(1.0, None, {"mb_per_s": value})

        return run


def _contest(machine, *, terms=None, limits=None, on_block=None, **order):
    limits = limits or Limits(session_s=1e9, rounds_max=5000)
    plan = ContestPlan("mb_per_s", terms or ComparisonTerms(), limits, **order)
    return run_contest(machine.runners, plan, on_block, machine.clock)


@pytest.mark.parametrize("seed", range(8))
def test_two_percent_under_five_percent_of_noise_are_put_in_order(seed):
    session = _contest(Machine([100, 102], seed=seed))
    (pair,) = session.standing.pairs
    assert session.reached
    assert session.standing.order == (1, 0)
    assert pair.verdict == "separated"
    assert 1.0 < pair.ratio_low <= pair.ratio <= pair.ratio_high
    assert pair.p_value < 0.01
    assert len(session.blocks) < 1000
    assert session.standing.ranks == (1, 2)


@pytest.mark.parametrize("seed", range(4))
def test_equal_ones_are_shown_not_to_differ_by_more_than_the_margin(seed):
    session = _contest(Machine([100, 100], sd=0.02, seed=seed))
    (pair,) = session.standing.pairs
    assert session.reached
    assert session.ended == "everything is decided"
    assert pair.verdict == "equivalent"
    assert 0.99 < pair.ratio_low < pair.ratio_high < 1.01
    assert session.standing.ranks == (1, 1)


@pytest.mark.slow
def test_the_stated_error_holds_though_every_block_is_looked_at():
    wrong, sessions = 0, 300
    terms = ComparisonTerms(p=0.1, margin=1e-9, rounds_min=2)
    for seed in range(sessions):
        session = _contest(
            Machine([100, 100], seed=seed), terms=terms, limits=Limits(1e9, rounds_max=60), warm_up=0
        )
        wrong += session.standing.pairs[0].verdict == "separated"
    # 10% of 300 is 30, with a standard deviation of 5.2; stopping at Welch's p < 0.1 would give about 45%.
    assert wrong <= 40


def test_three_equal_ones_keep_it_too():
    wrong, terms = 0, ComparisonTerms(p=0.1, margin=1e-9, rounds_min=2)
    for seed in range(150):
        session = _contest(
            Machine([100, 100, 100], seed=seed), terms=terms, limits=Limits(1e9, rounds_max=40), warm_up=0
        )
        wrong += any(pair.verdict == "separated" for pair in session.standing.pairs)
    assert wrong <= 25


def test_what_the_machine_does_to_both_cancels():
    """The drift is many times the difference: the means of either alone would never tell."""
    session = _contest(Machine([100, 102], sd=0.01, drift=0.005, seed=3))
    assert session.standing.order == (1, 0)
    assert session.reached
    assert len(session.blocks) < 200


def test_one_that_is_decided_against_its_neighbours_rests():
    machine = Machine([100, 150, 101], sd=0.03, seed=1)
    session = _contest(machine)
    assert session.reached
    assert session.standing.order == (1, 2, 0)
    counts = [machine.ran.count(index) for index in range(3)]
    assert counts[0] == counts[2] > 2 * counts[1]
    assert any(1 not in block for block in session.blocks)
    assert len(session.contest.values(1)) == sum(1 in block for block in session.blocks)


def test_a_limit_ends_it_with_what_there_is():
    machine = Machine([100, 100.1])
    session = _contest(machine, limits=Limits(session_s=41.5, rounds_max=1000))
    assert not session.reached
    assert session.ended == "the limit of 41.5 s was reached"
    # 20 whole blocks of 2 s, of which the first warms up; the half one that was cut off is not used.
    assert len(session.blocks) == 19
    assert all(set(block) == {0, 1} for block in session.blocks)
    (pair,) = session.standing.pairs
    assert pair.verdict == "undecided"
    assert pair.more > 100


def test_the_number_of_rounds_is_limited_too():
    session = _contest(Machine([100, 100.1]), limits=Limits(1e9, rounds_max=12), warm_up=3)
    assert session.ended == "the limit of 12 rounds of each was reached"
    assert len(session.blocks) == 12


def test_warm_up_is_run_and_not_used():
    machine = Machine([100, 130], sd=0.001)
    session = _contest(machine, warm_up=4)
    assert len(machine.ran) == 2 * (4 + len(session.blocks))
    assert len(session.blocks) == 10  # as many as there must be at least


def test_what_is_told_after_each_block_narrows_and_foresees_the_end():
    seen = []
    session = _contest(Machine([100, 102], sd=0.02, seed=5), on_block=seen.append, warm_up=0)
    assert [len(state.blocks) for state in seen] == list(range(1, len(session.blocks) + 1))
    assert all(not state.ended for state in seen[:-1])
    assert seen[-1].ended
    assert seen[-1].left_s is None
    foreseen = [state.left_s for state in seen[8:-1]]
    assert all(left_s is not None and left_s > 0 for left_s in foreseen)
    # Halfway through, it is right within a factor of five.
    halfway = seen[len(seen) // 2]
    really_s = session.seconds - halfway.seconds
    assert really_s / 5 < halfway.left_s < really_s * 5


def test_lower_may_be_better():
    session = _contest(Machine([100, 110], sd=0.01), terms=ComparisonTerms(lower_is_better=True))
    assert session.standing.order == (0, 1)
    assert session.standing.pairs[0].ratio == pytest.approx(100 / 110, rel=0.02)


def test_constant_readings_are_compared():
    session = _contest(Machine([7, 7, 9], sd=0.0))
    assert session.standing.order == (2, 0, 1)
    assert [pair.verdict for pair in session.standing.pairs] == ["separated", "equivalent"]


def test_two_that_read_zero_every_time_do_not_differ():
    session = _contest(Machine([0, 0]))
    (pair,) = session.standing.pairs
    assert (pair.verdict, pair.ratio, pair.samples) == ("equivalent", None, 10)
    assert session.reached


def test_readings_around_zero_have_no_ratio_and_no_crash():
    contest, rng = Contest(2, ComparisonTerms()), np.random.default_rng(1)
    for _ in range(50):
        contest.add({0: rng.normal(), 1: rng.normal()})
    (pair,) = contest.standing().pairs
    assert pair.verdict == "undecided"
    assert pair.more is None
    assert pair.ratio_low is None


def test_every_block_is_the_mirror_image_of_the_one_before_it():
    found = list(itertools.islice(orders(4, seed=3), 40))
    assert all(a == b[::-1] for a, b in zip(found[::2], found[1::2], strict=True))
    assert all(sorted(order) == [0, 1, 2, 3] for order in found)
    assert len(set(found)) > 10
    assert found == list(itertools.islice(orders(4, seed=3), 40))
    assert found != list(itertools.islice(orders(4, seed=4), 40))


def test_a_mean_on_its_own_has_an_interval_that_holds_at_all_looks():
    covered = 0
    for seed in range(100):
        rng, contest = np.random.default_rng(seed), Contest(2, ComparisonTerms())
        inside = True
        for n in range(40):
            contest.add({0: rng.normal(100, 5), 1: 1.0})
            found = contest.measurement(0)
            assert found.n == n + 1
            if found.ci_low is not None:
                inside &= found.ci_low <= 100 <= found.ci_high
        covered += inside
    assert covered >= 90  # 95 are promised; the standard deviation of that is 2.2
    assert found.ci_low is not None
    assert found.method == "always-valid interval"


def test_one_reading_has_no_interval():
    contest = Contest(2, ComparisonTerms())
    contest.add({0: 1.0, 1: 2.0})
    assert contest.measurement(0).ci_low is None
    assert contest.standing().pairs[0].verdict == "undecided"


def test_correlated_rounds_are_merged_and_independent_ones_are_not():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(2, 400))
    walk = np.zeros(400)
    for i in range(1, 400):
        walk[i] = 0.8 * walk[i - 1] + noise[0, i]
    a, b, size = means_of_subsessions(100 + noise[0], 100 + noise[1])
    assert (len(a), len(b), size) == (400, 400, 1)
    a, b, size = means_of_subsessions(100 + walk, 100 + noise[1])
    assert size >= 4
    assert len(a) == len(b) == 400 // size
    shared = means_of_subsessions(100 + walk + noise[0], 100 + walk + noise[1])
    assert shared[2] == 1  # what both share has cancelled


def test_the_level_is_divided_among_all_pairs_that_may_become_neighbours():
    assert ComparisonTerms(p=0.06).level(2) == 0.06
    assert ComparisonTerms(p=0.06).level(3) == pytest.approx(0.02)
    assert ComparisonTerms(p=0.06).level(4) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"p": 0.0}, "p = 0.0"),
        ({"margin": 0.0}, "margin = 0.0"),
        ({"margin": 1.0}, "margin = 1.0"),
        ({"rounds_min": 0}, "rounds_min = 0"),
    ],
)
def test_terms_are_checked(values, told):
    with pytest.raises(InputError, match=told):
        ComparisonTerms(**values)


def test_presets():
    assert (
        ComparisonTerms.of("quick").margin
        > ComparisonTerms.of("normal").margin
        > ComparisonTerms.of("strict").margin
    )
    assert ComparisonTerms.of("strict", margin=0.2).margin == 0.2
    with pytest.raises(InputError, match="quick, normal, strict"):
        ComparisonTerms.of("huge")


def test_one_alone_is_no_contest():
    with pytest.raises(InputError, match="at least two"):
        run_contest(Machine([1]).runners, ContestPlan("mb_per_s"))


def test_a_round_is_its_reading_or_the_stable_mean_of_its_unit_readings():
    units = np.concatenate([np.full(40, 50.0), np.full(200, 100.0)]) + np.random.default_rng(1).normal(
        size=240
    )
    assert round_value(Round(1.0, None, {"x": 3.0}), "x") == 3.0
    assert round_value(Round(1.0, None, {"x": 3.0}, {"x": units}), "x") == pytest.approx(100, abs=0.5)
    with pytest.raises(InputError, match="no reading of 'y'; it has x"):
        round_value(Round(1.0, None, {"x": 3.0}), "y")


def test_a_reading_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="finite"):
        Contest(2, ComparisonTerms()).add({0: 1.0, 1: float("nan")})
