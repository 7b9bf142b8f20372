"""One comparison in turns: same numbers, same sign, same decision, whoever asks."""

from __future__ import annotations

from itertools import count, repeat
from types import SimpleNamespace

import numpy as np
import pytest

from ascar.capes.session.proof import ComparedPhase, judge
from ascar.errors import InputError
from ascar.objective import Objective
from ascar.pairs import Pairs
from ascar.pilot.turns import (
    ESTIMATES,
    Gain,
    PairTest,
    alternating,
    compare_in_turns,
    drawn,
    taking_turns,
)
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.sharp import About, Action, Journal, Judge, RuleSet, verify
from ascar.sharp.live_comparison import kept_if_better
from ascar.sharp.matching import RuleWatcher, WatchOptions
from ascar.sharp.matching.choice import Choice
from ascar.sharp.trials.bench import FRESH, RuleRun
from ascar.space import Configuration
from ascar.study import Study
from ascar.verification import conclude, pair_test
from rules_at_work import RulesAtWork

BEFORE, AFTER = (RuleSet.uniform(Action(100, 0, tau)) for tau in (20_000, 0))
DEFAULT, BEST = Configuration({"depth": 1}), Configuration({"depth": 64})
TEST = PairTest(level=0.05, margin=0.005, pairs_min=8, pairs_max=8)
PAIRS = 8

NOISE = np.random.default_rng(5).normal(0, 1, (2, PAIRS))
SCALES = {
    "positive": (100.0, 120.0),
    "negative": (-120.0, -100.0),
    "mixed": (-10.0, 10.0),
    "around zero": (0.0, 20.0),
}


def scores(scale: str, *, rises: bool) -> tuple[list[float], list[float]]:
    """Of the reference and of the candidate, which is above it, or below."""
    ends = SCALES[scale] if rises else SCALES[scale][::-1]
    return tuple((end + noise).tolist() for end, noise in zip(ends, NOISE, strict=True))


def offline(reference, candidate, objective):
    study = Study.parse(f"""
        [study]
        name = "turns"
        objective = "{objective.text}"
        budget = "1 min"
        [target]
        kind = "simulated"
        [verify]
        p_value = {TEST.level}
        runs_min = {PAIRS}
        runs_max = {PAIRS}
        """)
    pairs = Pairs(DEFAULT, BEST)
    for one, other in zip(reference, candidate, strict=True):
        score = {DEFAULT: one, BEST: other}
        for configuration in pairs.turn():
            pairs.take(Trial(1, configuration, Purpose.VERIFY, TrialState.COMPLETE, score[configuration]))
    test = pair_test(study)
    found = compare_in_turns((), study.objective.direction, test, known=pairs.scores)
    return conclude(study, pairs, found), found.improved


class Scripted:
    """Runs whose metrics are written down."""

    identity = "scripted"

    def __init__(self, reference, candidate):
        self.reference, self.candidate = reference, candidate

    def run(self, trials):
        for one in trials:
            side = self.reference if one.rules is None else self.candidate
            yield RuleRun({"tp": side[one.repeat - FRESH]}, (), one.rules)


def searched(reference, candidate, objective, tmp_path):
    bench = Scripted(reference, candidate)
    with Journal(tmp_path / "journal", About("", "", objective.text, "", ""), "new") as journal:
        found = verify(Judge(bench, objective, journal), AFTER, TEST)
    return found.gain, found.improved


class AtWork(RulesAtWork):
    """A system at work whose intervals bring what is written down."""

    def __init__(self, reference, candidate, kept):
        self.sides = {kept: iter(reference), AFTER: iter(candidate)}
        super().__init__(kept)

    def collect(self, rules, settle_s, measure_s):
        self.passes(rules, settle_s + measure_s)
        return {"client": [next(self.sides[rules])]}


def learned(reference, candidate, objective):
    system = AtWork(reference, candidate, BEFORE)
    after, found, broken = kept_if_better(system, objective, BEFORE, AFTER)
    assert broken == ""
    assert (after == AFTER) == (system.kept == AFTER) == found.improved
    return found.gain, found.improved


class Chosen:
    """Chooses the same rules for everything."""

    def distance(self, one, other):
        return 0.0

    def choose(self, features, without):
        return None if without else Choice("after", AFTER, 0.1, 0.05, "w", "w", 0.0)


def watched(reference, candidate, objective):
    system = AtWork(reference, candidate, None)
    events = []
    RuleWatcher(system, Chosen(), objective, WatchOptions(), TEST, listener=events.append, bounds=()).cycle()
    (last,) = (one for one in events if one.kind in ("verified", "rolled-back"))
    assert (last.kind == "verified") == (system.kept == AFTER)
    return last.shown.gain, last.shown.improved


def proved(reference, candidate, objective):
    phases = [
        ComparedPhase(side == "candidate", tuple([{"reference": one, "candidate": other}[side]] * 3))
        for pair, (one, other) in enumerate(zip(reference, candidate, strict=True))
        for side in alternating(pair)
    ]
    found = judge(phases, objective, TEST.level)
    gain = SimpleNamespace(
        gain_relative=found.gain,
        **{key: getattr(found, key) for key in ESTIMATES if key != "gain_relative"},
    )
    return gain, found.claim == "gain"


@pytest.mark.parametrize("rises", [True, False])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("scale", SCALES)
def test_all_callers_see_the_same(scale, direction, rises, tmp_path):
    """A proven gain is above zero and kept, wherever it is shown; a loss below zero, and put back."""
    objective = Objective.parse(f"{direction} tp")
    sides = scores(scale, rises=rises)
    is_better = rises == (direction == "maximize")
    expected = Gain.of(*sides, direction, TEST.level)
    found = {
        "offline": offline(*sides, objective),
        "search": searched(*sides, objective, tmp_path),
        "learn": learned(*sides, objective),
        "watch": watched(*sides, objective),
        "online": proved(*sides, objective),
    }
    assert {caller: improved for caller, (_, improved) in found.items()} == dict.fromkeys(found, is_better)
    for caller, (gain, _) in found.items():
        assert (gain.gain_relative, gain.difference) == (expected.gain_relative, expected.difference), caller
        assert (gain.gain_relative is None) == (gain.gain_low is None) == (scale != "positive"), caller
        assert (gain.difference > 0) == is_better, caller
        shown = objective.gained(gain)
        assert shown.endswith("more" if rises else "less"), caller


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("scale", SCALES)
def test_words_have_the_sign_of_the_decision(scale, direction):
    for rises in (True, False):
        gain = Gain.of(*scores(scale, rises=rises), direction, 0.01)
        better = rises == (direction == "maximize")
        assert gain.decision == ("better" if better else "worse")
        assert gain.words.startswith("+" if better else "-")
        assert "(99% interval " in gain.words
        assert ("%" in gain.figure(gain.estimate)) == (scale == "positive")
        low, high = gain.interval
        assert low < gain.estimate < high
        assert low > 0 if better else high < 0


def test_a_share_is_of_the_reference_and_a_difference_in_the_unit():
    gain = Gain.of([100, 101, 99, 100], [50, 50.5, 49.5, 50], "minimize", 0.01)
    assert gain.gain_relative == pytest.approx(0.5)
    assert gain.difference == pytest.approx(50)
    below = Gain.of([-10, -11, -9, -10], [-5, -6, -4, -5.001], "maximize", 0.01)
    assert (below.scale, below.gain_relative) == ("difference", None)
    assert below.difference == pytest.approx(5, abs=0.01)
    nothing = Gain.of([0.0] * 9, [0.0] * 9, "maximize", 0.01, 0.01)
    assert (nothing.difference, nothing.decision) == (0, "equivalent")
    open_still = Gain.of([1, 2], [2, 1], "maximize", 0.01)
    assert open_still.decision == "open"


def test_equal_systems_are_seldom_told_apart_on_the_scale_of_differences():
    rng = np.random.default_rng(3)
    test = PairTest(level=0.05, margin=0, pairs_min=2, pairs_max=20)
    wrong = 0
    for _ in range(200):
        pairs = iter(rng.normal(0, 1, (20, 2)).tolist())
        wrong += compare_in_turns(map(tuple, pairs), "maximize", test).ended == "separated"
    assert wrong <= 0.05 * 200 + 7


def test_the_first_of_each_pair_alternates_or_is_drawn():
    order = []
    runs = taking_turns(lambda side: float(len(order.append(side) or order)))
    assert [next(runs) for _ in range(3)] == [(1, 2), (4, 3), (5, 6)]
    assert order == ["reference", "candidate", "candidate", "reference", "reference", "candidate"]
    one, same, other = (list(map(drawn(seed), range(40))) for seed in (1, 1, 2))
    assert one == same != other
    assert set(one) == {alternating(0), alternating(1)}


def test_it_ends_by_what_comes_first():
    apart = map(tuple, zip(count(1.0), count(9.0), strict=False))
    early = compare_in_turns(apart, "maximize", PairTest(pairs_min=4))
    assert (early.ended, early.kind) == ("separated", "improved")
    assert early.made >= 4
    seen = []
    same = compare_in_turns(repeat((5.0, 5.0)), "maximize", PairTest(), told=seen.append)
    assert (same.ended, same.kind, same.made) == ("equivalent", "default-is-fine", 8)
    assert [one.made for one in seen] == list(range(1, 9))
    assert "less than 1.0%" in same.note
    noise = [(float(one), float(other)) for one, other in np.random.default_rng(1).normal(9, 3, (20, 2))]
    most = compare_in_turns(iter(noise), "maximize", PairTest(pairs_max=9))
    assert (most.ended, most.made, most.kind) == ("runs-max", 9, "undecided")
    late = compare_in_turns(iter(noise), "maximize", PairTest(), over=lambda now: now.made == 3)
    assert (late.ended, late.made) == ("time", 3)
    known = compare_in_turns(iter(noise[5:]), "maximize", PairTest(pairs_max=9), known=noise[:5])
    assert known.gain == most.gain


def test_a_run_without_a_score_ends_it_or_is_left_out():
    ran = []

    def run(side):
        ran.append(side)
        return None if len(ran) == 5 else 1.0

    failed = compare_in_turns(taking_turns(run), "maximize", PairTest())
    assert (failed.ended, failed.kind) == ("failures", "not-verified")
    assert (failed.made, len(failed.reference)) == (3, 2)
    assert len(ran) == 5, "the other side of a pair that cannot be compared is not run"
    on = PairTest(failure_ends=False, margin=0)
    some = compare_in_turns(iter([(1.0, None), (None, 2.0), *[(1.0, 2.0)] * 9]), "maximize", on)
    assert (some.ended, some.improved, some.reference) == ("separated", True, (1.0,) * 6)
    none = compare_in_turns(repeat((None, 1.0)), "maximize", on)
    assert (none.ended, none.made, none.gain) == ("failures", 8, None)


def test_refused():
    with pytest.raises(InputError, match="pairs = 1: must be from 2"):
        PairTest(pairs_max=1)
    with pytest.raises(InputError, match="pairs_min = 1"):
        PairTest(pairs_min=1)
    with pytest.raises(InputError, match="2 runs of the reference, 3 of the candidate"):
        Gain.of([1, 2], [1, 2, 3], "maximize", 0.01)
    with pytest.raises(InputError):
        Gain.of([1, float("nan")], [1, 2], "maximize", 0.01)
