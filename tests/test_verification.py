"""The last comparison: in turns, tested after every pair, honest in both directions."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ascar.history import History
from ascar.loops.offline import tune
from ascar.pairs import Pairs
from ascar.pilot.turns import Gain, InTurns, compare_in_turns, mean_at_any_time
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.space import ChangeCost, Configuration, Space, ordinal
from ascar.study import Study
from ascar.systems.simulated import SimulatedSystem
from ascar.verification import conclude, pair_test

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.events import Event
    from ascar.results.verdict import Verdict

BEST, DEFAULT = Configuration({"depth": 64}), Configuration({"depth": 1})


def study(direction: str = "maximize", margin: float = 0.0) -> Study:
    return Study.parse(
        f"""
        [study]
        name = "verify"
        objective = "{direction} throughput_ops_per_s"
        budget = "1 min"
        [target]
        kind = "simulated"
        [verify]
        margin = {margin}
        """
    )


def run(configuration: Configuration, score: float | None, state: TrialState | None = None) -> Trial:
    ended = state or (TrialState.FAILED if score is None else TrialState.COMPLETE)
    return Trial(1, configuration, Purpose.VERIFY, ended, score)


def pairs_of(default: list[float | None], best: list[float | None]) -> Pairs:
    pairs = Pairs(DEFAULT, BEST)
    for one, other in zip(default, best, strict=True):
        scores = {DEFAULT: one, BEST: other}
        for configuration in pairs.turn():
            pairs.take(run(configuration, scores[configuration]))
    return pairs


def compared(chosen: Study, pairs: Pairs) -> InTurns:
    return compare_in_turns((), chosen.objective.direction, pair_test(chosen), known=pairs.scores)


def concluded(chosen: Study, pairs: Pairs) -> Verdict:
    return conclude(chosen, pairs, compared(chosen, pairs))


def test_the_sides_take_turns_and_the_first_of_each_pair_alternates():
    pairs = Pairs(DEFAULT, BEST)
    order: list[Configuration] = []
    for _ in range(3):
        for configuration in pairs.turn():
            order.append(configuration)
            pairs.take(run(configuration, 1.0))
    assert order == [DEFAULT, BEST, BEST, DEFAULT, DEFAULT, BEST]


def test_a_clear_gain_is_improved_with_its_interval():
    pairs = pairs_of([100, 101, 99, 100, 102], [130, 131, 129, 132, 130])
    verdict = concluded(study(), pairs)
    assert verdict.kind == "improved"
    assert verdict.gain_relative == pytest.approx(0.2988, abs=1e-3)
    assert verdict.gain_low is not None
    assert verdict.gain_high is not None
    assert 0 < verdict.gain_low < 0.2988 < verdict.gain_high
    assert verdict.p_value is not None
    assert verdict.p_value < 0.01
    assert (verdict.runs_per_side, verdict.ended) == (5, "separated")
    assert "at all looks together" in verdict.note
    assert "after 5 pairs" in verdict.note


def test_a_clear_loss_is_no_improvement():
    pairs = pairs_of([130, 131, 129, 132, 130], [100, 101, 99, 100, 102])
    verdict = concluded(study(), pairs)
    assert verdict.kind == "default-is-fine"
    assert verdict.gain_relative is not None
    assert verdict.gain_relative < 0


def test_less_is_a_gain_where_less_is_wanted():
    pairs = pairs_of([130, 131, 129, 132, 130], [100, 101, 99, 100, 102])
    verdict = concluded(study("minimize"), pairs)
    assert verdict.kind == "improved"
    assert verdict.gain_relative == pytest.approx(0.23, abs=0.01)
    assert verdict.gain_low is not None
    assert verdict.gain_high is not None
    assert 0 < verdict.gain_low < verdict.gain_relative < verdict.gain_high


def test_noise_is_not_a_gain():
    verdict = concluded(study(), pairs_of([100, 120, 90, 110], [104, 118, 95, 112]))
    assert verdict.kind == "undecided"
    assert verdict.p_value is not None
    assert verdict.p_value > 0.01
    assert "without a decision" in verdict.note


def test_sides_within_the_margin_are_equivalent():
    rng = np.random.default_rng(2)
    default, best = (list(rng.normal(100, 0.5, 12)) for _ in range(2))
    found = compared(study(margin=0.02), pairs_of(default, best))
    assert found.gain is not None
    assert (found.ended, found.gain.decision) == ("equivalent", "equivalent")
    assert found.gain.gain_high is not None
    assert found.gain.gain_high < 0.02
    verdict = concluded(study(margin=0.02), pairs_of(default, best))
    assert verdict.kind == "default-is-fine"
    assert "differ by less than 2.0%" in verdict.note
    undecided = compared(study(), pairs_of(default, best))
    assert undecided.gain is not None
    assert undecided.gain.decision == "open"


def test_a_machine_that_grows_slower_slows_both_sides():
    default: list[float | None] = [292, 204, 128, 109, 51]
    best: list[float | None] = [3641, 2854, 1742, 889, 258]
    verdict = concluded(study(), pairs_of(default, best))
    assert verdict.kind == "improved"
    assert verdict.gain_low is not None
    assert verdict.gain_low > 0


def test_scores_below_zero_are_compared_by_their_differences():
    verdict = concluded(study(), pairs_of([-10, -11, -9, -10, -10.5], [-5, -5.5, -4.8, -5, -5.2]))
    assert verdict.kind == "improved"
    assert (verdict.gain_relative, verdict.gain_low, verdict.gain_high) == (None, None, None)
    assert verdict.difference == pytest.approx(5.0, abs=0.01)
    assert 0 < verdict.difference_low < verdict.difference < verdict.difference_high


def test_too_many_failures_leave_nothing_to_say():
    pairs = pairs_of([100.0, None, None, 101.0, None], [130.0, None, None, None, None])
    verdict = concluded(study(), pairs)
    assert verdict.kind == "not-verified"
    assert "7 of 10 runs failed" in verdict.note
    assert verdict.default_scores == (100.0,)


def test_a_pair_with_a_failed_run_is_left_out_and_named():
    verdict = concluded(study(), pairs_of([100, 101, None, 99], [130, 131, 90, 129]))
    assert verdict.default_scores == (100, 101, 99)
    assert verdict.best_scores == (130, 131, 129)
    assert "1 runs failed" in verdict.note


def test_an_interrupted_pair_is_dropped_and_other_configurations_are_none_of_ours():
    pairs = Pairs(DEFAULT, BEST)
    pairs.take(run(DEFAULT, 1.0))
    pairs.take(run(BEST, None, TrialState.INTERRUPTED))
    pairs.take(run(Configuration({"depth": 7}), 5.0))
    assert pairs.scores == []
    for configuration in pairs.turn():
        pairs.take(run(configuration, 2.0))
    assert pairs.scores == [(2.0, 2.0)]


SIMULATED = """
[study]
name = "pairs"
objective = "maximize throughput_ops_per_s"
budget = "{budget}"
seed = {seed}
[target]
kind = "simulated"
metrics = {{ throughput_ops_per_s = "1000 * if(fast, {ratio}, 1)" }}
noise_relative_sd = 0.02
run_relative_sd = 0.015
seed = {seed}
[space.parameters.fast]
kind = "boolean"
default = false
cost = "dyn-kernel"
[stop]
trials = 1
[verify]
runs_min = {runs_min}
margin = {margin}
"""


def simulated(
    *, ratio: float, seed: int = 1, budget: str = "30 min", runs_min: int = 2, margin: float = 0
) -> Study:
    return Study.parse(
        SIMULATED.format(ratio=ratio, seed=seed, budget=budget, runs_min=runs_min, margin=margin)
    )


@pytest.fixture
def history(tmp_path: Path):
    with History(tmp_path / "history.sqlite") as opened:
        yield opened


def test_a_large_gain_takes_four_or_five_pairs(history):
    runs = [tune(simulated(ratio=1.38, seed=seed), history).verdict for seed in range(10)]
    assert {verdict.kind for verdict in runs} == {"improved"}
    assert {verdict.ended for verdict in runs} == {"separated"}
    assert max(verdict.runs_per_side for verdict in runs) <= 6
    assert min(verdict.runs_per_side for verdict in runs) >= 3
    assert tune(simulated(ratio=1.38, runs_min=8), history).verdict.runs_per_side == 8


def test_a_small_gain_takes_as_many_as_it_needs(history):
    verdict = tune(simulated(ratio=1.03), history).verdict
    assert (verdict.kind, verdict.ended) == ("improved", "separated")
    assert verdict.runs_per_side > 6


def test_it_ends_when_the_two_are_shown_to_be_equivalent(history):
    verdict = tune(simulated(ratio=1.002, margin=0.06), history).verdict
    assert verdict.kind == "default-is-fine"
    assert verdict.ended in ("equivalent", "not-better")
    assert verdict.runs_per_side < 30


def test_it_ends_undecided_when_the_time_is_spent(history):
    verdict = tune(simulated(ratio=1.01, budget="1 min", runs_min=5), history).verdict
    assert (verdict.kind, verdict.ended) == ("undecided", "time")
    assert verdict.runs_per_side >= 2
    assert verdict.more_pairs
    assert verdict.more_s
    late = tune(simulated(ratio=1.002, budget="24 s", runs_min=5), history)
    assert (late.verdict.kind, late.verdict.ended) == ("undecided", "time")
    assert sum(late.stage_s.values()) <= 24, "the budget holds, though there was no time for runs_min pairs"


def test_an_interrupted_verification_goes_on_with_its_pairs(history):
    def interrupt(event: Event) -> None:
        if event.kind == "compared" and event.data["pairs"] == 3:
            raise KeyboardInterrupt

    chosen = simulated(ratio=1.03, runs_min=8)
    with pytest.raises(KeyboardInterrupt):
        tune(chosen, history, listener=interrupt)
    outcome = tune(chosen, history, resume=True)
    trials = [t for t in history.run(outcome.run_id).trials() if t.purpose is Purpose.VERIFY]
    assert len(trials) == 2 * outcome.verdict.runs_per_side
    assert outcome.verdict.runs_per_side >= 8


def test_all_loads_of_the_comparison_are_equally_long(history):
    """But for a last pair, those of the search end when their mean is known well enough."""
    outcome = tune(simulated(ratio=1.02, runs_min=8), history)
    trials = history.run(outcome.run_id).trials()
    lengths = {p: [round(t.stage_s["load"], 3) for t in trials if t.purpose is p] for p in Purpose}
    assert len(set(lengths[Purpose.VERIFY])) == 1
    usual = [*lengths[Purpose.DEFAULT], *lengths[Purpose.SEARCH]]
    assert min(usual) <= lengths[Purpose.VERIFY][0] <= max(usual)


def test_runs_that_tell_the_bias_of_reuse_are_as_long_as_those_they_are_held_against(history, monkeypatch):
    monkeypatch.setattr(SimulatedSystem, "reuses_state", True, raising=False)
    monkeypatch.setattr(SimulatedSystem, "start_afresh", lambda _: None, raising=False)
    outcome = tune(simulated(ratio=1.38, runs_min=5), history)
    assert outcome.verdict.reuse_bias is not None
    trials = history.run(outcome.run_id).trials()
    lengths = [round(t.stage_s["load"], 3) for t in trials if t.purpose in (Purpose.VERIFY, Purpose.BIAS)]
    assert len(set(lengths)) == 1


def test_loads_that_end_by_themselves_are_as_long_as_their_work(history, monkeypatch):
    """No side is cut off at a length that is usual for both."""
    monkeypatch.setattr("ascar.systems.function._OVERRUN_S", 0.2)
    scatter = np.random.default_rng(1)

    def work(configuration: Configuration) -> dict[str, float]:
        seconds = 0.05 * float(configuration["steps"])
        time.sleep(seconds)
        return {"work_s": seconds * scatter.uniform(1, 1.01)}

    space = Space((ordinal("steps", (1, 2, 3, 12), default=12, cost=ChangeCost.DYN_APP),), name="work")
    lengths = {"load_min": "50 ms", "load_max": "1 min"}
    chosen = Study.of_function(work, space, "minimize work_s", "20 s", measurement=lengths)
    outcome = tune(chosen, history)
    assert (outcome.verdict.kind, outcome.verdict.ended) == ("improved", "separated")
    states = {t.state for t in history.run(outcome.run_id).trials() if t.purpose is Purpose.VERIFY}
    assert states == {TrialState.COMPLETE}


def test_events_tell_of_every_pair(history):
    seen: list[Event] = []
    verdict = tune(simulated(ratio=1.38), history, listener=seen.append).verdict
    compared = [event.data for event in seen if event.kind == "compared"]
    assert [data["pairs"] for data in compared] == list(range(1, verdict.runs_per_side + 1))
    assert compared[-1]["p_value"] == verdict.p_value
    assert compared[-1]["gain_low"] == verdict.gain_low


def looked_at(rng: np.random.Generator, ratio: float, relative_sd: float) -> tuple[bool, int]:
    """Whether two sides were told apart within 30 pairs, and after how many."""
    default = rng.normal(1.0, relative_sd, 30)
    best = ratio * rng.normal(1.0, relative_sd, 30)
    for pairs in range(5, 31):
        if Gain.of(list(default[:pairs]), list(best[:pairs]), "maximize", 0.01).decision != "open":
            return True, pairs
    return False, 30


def test_equal_sides_are_called_different_no_oftener_than_stated():
    rng = np.random.default_rng(11)
    wrong = sum(looked_at(rng, 1.0, 0.03)[0] for _ in range(600))
    assert wrong <= 13, "1% of 600 is 6, with a standard deviation of 2.4"


def test_gains_are_found_with_few_pairs():
    rng = np.random.default_rng(12)
    pairs = [looked_at(rng, 1.38, 0.015) for _ in range(200)]
    assert all(found for found, _ in pairs)
    assert max(count for _, count in pairs) <= 6


def test_limits_of_one_side_hold_at_any_time():
    missed = 0
    for seed in range(300):
        values = list(np.random.default_rng(seed).normal(10, 1, 20))
        limits = [mean_at_any_time(values[:n], 0.05) for n in range(1, 21)]
        known = [one for one in limits if one is not None]
        assert len(known) >= 15
        missed += any(not low <= 10 <= high for low, high in known)
    assert missed <= 27, "5% of 300 is 15, with a standard deviation of 3.8"
    widths = [one[1] - one[0] for one in known]
    assert sum(late < early for early, late in pairwise(widths)) > len(widths) / 2
