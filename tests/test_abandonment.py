"""Loads that are ended early: only for being worse, however often one looks, warm or not."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from ascar.abandonment import READINGS_MIN, AbandonmentFinding, AbandonmentRule, BestTrial, run_margin
from ascar.history import History
from ascar.loops.offline import tune
from ascar.objective import Objective
from ascar.pilot import analyze
from ascar.results.measurement import Series
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.space import Configuration
from ascar.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from ascar.events import Event

    Values = NDArray[np.float64]

MORE, LESS = Objective.parse("maximize throughput"), Objective.parse("minimize throughput")
LEVEL, READINGS = 0.01, 40


def series(values: Values) -> Series:
    return Series(0.25 * np.arange(1, len(values) + 1), np.ascontiguousarray(values))


def trial(number: int, values: Values, purpose: Purpose = Purpose.SEARCH, which: int | None = None) -> Trial:
    measured = analyze(values)
    return Trial(
        number=number,
        configuration=Configuration({"which": number if which is None else which}),
        purpose=purpose,
        state=TrialState.COMPLETE,
        score=measured.mean,
        measurement=measured,
        series={"throughput": series(values)},
        stage_s={"load": 0.25 * len(values)},
    )


def rival_of(runs: list[Values], objective: Objective = MORE, level: float = LEVEL) -> BestTrial | None:
    return BestTrial.of([trial(number + 1, run) for number, run in enumerate(runs)], objective, level)


def abandoned(rival: BestTrial | None, values: Values) -> tuple[int, AbandonmentFinding] | None:
    """After how many readings, and why; None: carried through."""
    assert rival is not None
    rule, readings = AbandonmentRule(rival), series(values)
    for n in range(1, len(values) + 1):
        found = rule.look(Series(readings.seconds[:n], readings.values[:n]))
        if found is not None:
            return n, found
    return None


def steady(rng: np.random.Generator, level: float = 1000, sd: float = 0.05, n: int = READINGS) -> Values:
    return level * (1 + sd * rng.standard_normal(n))


def autoregressive(rng: np.random.Generator, rho: float) -> Values:
    noise, value = np.empty(READINGS), rng.standard_normal()
    for at in range(READINGS):
        value = rho * value + np.sqrt(1 - rho**2) * rng.standard_normal()
        noise[at] = value
    return 1000 * (1 + 0.1 * noise)


def ramp(rng: np.random.Generator) -> Values:
    return steady(rng) * np.minimum(1, 0.5 + 0.5 * np.arange(1, READINGS + 1) / 10)


def step(rng: np.random.Generator) -> Values:
    return steady(rng) * np.where(np.arange(READINGS) < 10, 0.5, 1.0)


KINDS: dict[str, Callable[[np.random.Generator], Values]] = {
    "independent": steady,
    "AR(1) 0.6": lambda rng: autoregressive(rng, 0.6),
    "AR(1) 0.9": lambda rng: autoregressive(rng, 0.9),
    "ramp": ramp,
    "step": step,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_equally_good_candidates_are_abandoned_no_oftener_than_stated(kind):
    """The worst case: the best of ten runs that are all as good; runs differ by 3%."""
    wrong, studies = 0, 200
    for study in range(studies):
        rng = np.random.default_rng([study, 17])
        runs = [KINDS[kind](rng) * (1 + 0.03 * rng.standard_normal()) for _ in range(11)]
        rival = rival_of(runs[:10])
        wrong += rival is not None and abandoned(rival, runs[10]) is not None
    assert wrong <= 6, f"1% of {studies} is 2, with a standard deviation of 1.4"


def test_a_ramp_of_the_candidate_alone_is_no_reason():
    wrong = 0
    for study in range(200):
        rng = np.random.default_rng([study, 18])
        rival = rival_of([steady(rng) for _ in range(10)])
        wrong += abandoned(rival, ramp(rng)) is not None
    assert wrong <= 6


def test_better_candidates_are_never_abandoned():
    for study in range(100):
        rng = np.random.default_rng([study, 19])
        assert abandoned(rival_of([steady(rng) for _ in range(5)]), steady(rng, 1200)) is None


@pytest.mark.parametrize(("level", "share", "saved"), [(900, 0.0, 0.0), (600, 0.9, 0.5), (400, 0.99, 0.6)])
def test_the_worse_a_candidate_the_sooner_it_is_abandoned(level, share, saved):
    """Of loads of 40 readings; those of the trials before were as long."""
    caught: list[float] = []
    for study in range(60):
        rng = np.random.default_rng([study, 20])
        found = abandoned(rival_of([steady(rng) for _ in range(5)]), steady(rng, level))
        caught.append(0.0 if found is None else 1 - found[0] / READINGS)
    assert np.mean(np.array(caught) > 0) >= share
    assert np.mean(caught) >= saved


def test_where_less_is_better_the_higher_is_abandoned():
    rng = np.random.default_rng(5)
    runs = [steady(rng, 10) for _ in range(4)]
    assert abandoned(rival_of(runs, LESS), steady(rng, 5)) is None
    assert abandoned(rival_of(runs, LESS), steady(rng, 20)) is not None
    assert abandoned(rival_of(runs, MORE), steady(rng, 20)) is None


def test_scores_below_zero_are_compared_too():
    rng = np.random.default_rng(6)
    rival = rival_of([-steady(rng) for _ in range(4)])
    assert abandoned(rival, -steady(rng)) is None
    assert abandoned(rival, -steady(rng, 2500)) is not None


def test_readings_of_one_instant_tell_nothing_of_a_rise():
    rng = np.random.default_rng(6)
    rival = rival_of([steady(rng) for _ in range(4)])
    assert rival is not None
    bad = steady(rng, 100)
    assert rival.judge(series(bad)) is not None
    assert rival.judge(Series(np.full(len(bad), 5.0), bad)) is None


def test_what_is_said_of_an_abandoned_candidate():
    rng = np.random.default_rng(7)
    runs = [steady(rng) for _ in range(4)]
    rival = rival_of(runs)
    assert rival is not None
    found = abandoned(rival, steady(rng, 500))
    assert found is not None
    n, finding = found
    assert READINGS_MIN <= n < READINGS
    assert finding.seconds == 0.25 * n
    assert 0 < finding.worse_least < 0.5
    assert finding.worse_relative == pytest.approx(0.5, abs=0.05)
    assert finding.measurement.mean == pytest.approx(500, rel=0.1)
    assert finding.measurement.mean < rival.measurement.mean
    assert 0 <= finding.measurement.stable_start < finding.measurement.stable_end == n


def test_readings_of_a_warm_up_that_trials_had_are_left_aside():
    rng = np.random.default_rng(8)
    runs = [np.concatenate([steady(rng, 400, n=30), steady(rng, 1000, n=90)]) for _ in range(4)]
    rival = rival_of(runs)
    assert rival is not None
    assert rival.warm_up_s >= 0.25 * 28
    found = abandoned(rival, steady(rng, 300, n=120))
    assert found is not None
    assert found[0] >= 28 + READINGS_MIN


def test_looks_are_few():
    rng = np.random.default_rng(9)
    rival = rival_of([steady(rng) for _ in range(4)])
    assert rival is not None
    rule, looks = AbandonmentRule(rival), []
    values = series(steady(rng, n=400))
    for n in range(1, 401):
        before = rule._next
        rule.look(Series(values.seconds[:n], values.values[:n]))
        looks += [n] if rule._next != before else []
    assert looks[0] == READINGS_MIN
    assert len(looks) < 25
    assert all(late >= 1.2 * early for early, late in pairwise(looks))


def test_the_rival_is_the_best_usable_trial_of_the_search():
    rng = np.random.default_rng(10)
    default = trial(1, steady(rng, 1000), Purpose.DEFAULT)
    best = trial(2, steady(rng, 1500))
    breaking = replace(trial(3, steady(rng, 9000)), unmet=("latency_ms <= 5",))
    failed = replace(trial(4, steady(rng, 9000)), state=TrialState.FAILED)
    pruned = replace(trial(5, steady(rng, 9000)), state=TrialState.PRUNED)
    verified = trial(6, steady(rng, 9000), Purpose.VERIFY)
    bare = replace(trial(7, steady(rng, 1600)), series={})
    every = [default, best, breaking, failed, pruned, verified]
    rival = BestTrial.of(every, MORE, LEVEL)
    assert rival is not None
    assert rival.number == 2
    assert rival.load_s == pytest.approx(0.25 * READINGS)
    least = BestTrial.of(every, LESS, LEVEL)
    assert least is not None
    assert least.number == 1
    assert BestTrial.of([failed], MORE, LEVEL) is None
    assert BestTrial.of(every, MORE, 0.0) is None
    assert BestTrial.of([*every, bare], MORE, LEVEL) is None, "one number has no readings to be held against"


def test_the_margin_learns_from_repeated_runs_and_grows_with_luck():
    alone = run_margin([[1000.0]], 1, 0.005)
    # The t quantile of 8 degrees of freedom at 99.5%, 3.355, times sqrt(2) and 3%.
    assert alone == pytest.approx(3.355 * 2**0.5 * 0.03, rel=0.01)
    assert run_margin([[1000.0]] * 30, 30, 0.005) > 1.3 * alone
    quiet = [[1000.0, 1001, 999, 1000, 1002, 998, 1000, 1001] * 4]
    assert run_margin(quiet, 1, 0.005) < 0.5 * alone
    assert run_margin([[1000.0, 1400]], 1, 0.005) > 2 * alone
    assert run_margin([[1000.0]], 1, 0.05) < alone
    assert run_margin([[1000.0]], 1, 0.005, 0.04) == pytest.approx(alone * 5 / 3, rel=0.01)
    assert run_margin([[0.0, 0.0]], 1, 0.005) == alone


STUDY = """
[study]
name = "early"
objective = "maximize throughput_ops_per_s"
budget = "20 min"
seed = 3
[target]
kind = "simulated"
metrics = {{ throughput_ops_per_s = "1000 - 8 * abs(depth - 32)" }}
noise_relative_sd = 0.05
run_relative_sd = 0.01
[space.parameters.depth]
kind = "integer"
low = 1
high = 150
default = 40
cost = "dyn-kernel"
[measurement]
readings_min = 60
load_min = "15 s"
load_max = "30 s"
{abandon}
[optimizer]
kind = "{optimizer}"
[stop]
trials = 25
"""


def study(abandon: str = "", optimizer: str = "random") -> Study:
    return Study.parse(STUDY.format(abandon=abandon, optimizer=optimizer))


@pytest.fixture
def history(tmp_path: Path):
    with History(tmp_path / "history.sqlite") as opened:
        yield opened


def test_a_study_abandons_bad_configurations_and_says_so(history):
    events: list[Event] = []
    outcome = tune(study(), history, listener=events.append)
    trials = history.run(outcome.run_id).trials()
    pruned = [one for one in trials if one.state is TrialState.PRUNED]
    assert len(pruned) == outcome.counts[TrialState.PRUNED] >= 5
    assert {one.purpose for one in pruned} == {Purpose.SEARCH}
    by_number = {one.number: one for one in trials}
    for one in pruned:
        why = one.abandonment
        assert why is not None
        assert one.score is not None
        assert one.measurement is not None
        assert one.measurement.ci_low is not None
        rival = by_number[why.rival].score
        assert rival is not None
        assert one.score < rival
        assert why.worse_relative == pytest.approx(1 - one.score / rival, abs=0.05)
        assert len(one.series["throughput_ops_per_s"]) >= READINGS_MIN
        assert one.stage_s["load"] < 18  # most loads end after 15 s, or at the next look
        assert why.saved_s == pytest.approx(15 - one.stage_s["load"], abs=2)
        assert 1000 - 8 * abs(one.configuration["depth"] - 32) < 1000
    assert outcome.saved_s == pytest.approx(sum(one.abandonment.saved_s for one in pruned if one.abandonment))
    assert outcome.saved_s > 20
    assert outcome.best is not None
    assert outcome.best.state is TrialState.COMPLETE
    assert abs(outcome.best.configuration["depth"] - 32) < 15
    assert history.run(outcome.run_id).outcome().saved_s == outcome.saved_s


def test_nothing_is_abandoned_where_the_study_says_so(history):
    outcome = tune(study("abandon = 0.0"), history)
    assert TrialState.PRUNED not in outcome.counts
    assert outcome.saved_s == 0


@pytest.mark.parametrize("optimizer", ["genetic", "annealing", "gp", "auto"])
def test_every_optimizer_finds_the_best_with_half_of_the_trials_abandoned(history, optimizer):
    outcome = tune(study(optimizer=optimizer), history)
    assert outcome.counts.get(TrialState.PRUNED, 0) > 0
    assert outcome.best is not None
    assert abs(outcome.best.configuration["depth"] - 32) < 12


def test_a_configuration_that_is_measured_again_is_carried_through(history):
    outcome = tune(study(optimizer="auto"), history)
    seen: set[Configuration] = set()
    for one in history.run(outcome.run_id).trials():
        if one.state is TrialState.PRUNED:
            assert one.configuration not in seen
        if one.score is not None:
            seen.add(one.configuration)


def test_a_study_resumed_recalls_what_was_abandoned(history):
    def interrupt(event: Event) -> None:
        if event.kind == "trial-finished" and event.trial is not None and event.trial.number == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(study(), history, listener=interrupt)
    outcome = tune(study(), history, resume=True)
    trials = history.run(outcome.run_id).trials()
    pruned = [one for one in trials if one.state is TrialState.PRUNED]
    assert any(one.number <= 15 for one in pruned)
    assert outcome.saved_s == pytest.approx(sum(one.abandonment.saved_s for one in pruned if one.abandonment))
