"""What a load leaves undone is charged to it: rates, scores, their intervals, abandoned trials, studies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.charging import Charge, charges, deferred_share, uncharged
from ascar.errors import StudyError
from ascar.history import History
from ascar.loops.offline import tune
from ascar.results.measurement import Readings, Series
from ascar.results.trial import Purpose, TrialState
from ascar.study import Study

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.results.outcome import Outcome
    from ascar.results.trial import Trial

READINGS = Readings(
    {"ops_per_s": Series.of([1, 2], [10, 30]), "latency_ms_mean": Series.of([1, 2], [5, 6])},
    {"ops_per_s": 20.0, "latency_ms_p99": 7.0, "operations": 40.0, "duration_s": 2.0},
    load_s=2.0,
)
SECONDS = st.floats(0, 1e6, allow_nan=False)
AMOUNTS = st.dictionaries(st.sampled_from(["dirty_bytes", "wal_bytes"]), SECONDS)

TRAP = """
[study]
name = "trap"
objective = "{objective}"
budget = "{budget}"
[target]
kind = "simulated"
metrics = {{ throughput_ops_per_s = "1000 + if(expire > 30, 500, 0)", latency_ms_p99 = "9 - expire / 100" }}
deferred = "{deferred}"
cycle_s = "expire"
run_relative_sd = 0.01
[space.parameters.expire]
kind = "ordinal"
values = [5, 30, 600]
default = 30
cost = "dyn-kernel"
[measurement]
charge_deferred = {charge}
[optimizer]
kind = "random"
"""


def tuned(
    tmp_path: Path,
    *,
    charge: bool = True,
    deferred: str = "if(expire > 30, 0.5, 0.01)",
    objective: str = "maximize throughput_ops_per_s",
    budget: str = "90 min",
) -> tuple[Outcome, list[Trial]]:
    told = TRAP.format(charge=str(charge).lower(), deferred=deferred, objective=objective, budget=budget)
    with History(tmp_path / "history.sqlite") as history:
        outcome = tune(Study.parse(told), history)
        return outcome, list(history.run(outcome.run_id).trials())


def test_rates_count_over_the_time_of_all_the_work():
    charge = Charge(2.0, {"dirty_bytes": 100.0}, tail_s=0.5, drain_s=2.5)
    charged = charge.charged(READINGS)
    assert charged.series["ops_per_s"].values.tolist() == pytest.approx([4, 12])
    assert charged.metrics["ops_per_s"] == pytest.approx(8)
    assert charge.metrics == {"deferred_dirty_bytes": 100.0, "deferred_s": 3.0, "load_s": 2.0}


def test_latencies_and_counts_are_left_and_the_duration_of_a_command_grows():
    charged = Charge(2.0, {"dirty_bytes": 100.0}, tail_s=0.5, drain_s=2.5).charged(READINGS)
    assert charged.series["latency_ms_mean"].values.tolist() == [5, 6]
    assert charged.metrics["latency_ms_p99"] == 7
    assert charged.metrics["operations"] == 40
    assert charged.metrics["duration_s"] == 5


def test_without_deferred_work_nothing_is_charged_and_nothing_is_told():
    charge = Charge.of(READINGS, {}, {})
    assert not charge.is_due
    assert charge.metrics == {}
    assert charge.charged(READINGS) is READINGS


def test_what_was_there_before_is_not_the_loads():
    charge = Charge.of(READINGS, {"dirty_bytes": 300.0}, {"dirty_bytes": 400.0})
    assert charge.left == {"dirty_bytes": 100.0}
    assert charge.owned == pytest.approx(0.25)
    assert not Charge.of(READINGS, {"dirty_bytes": 300.0}, {"dirty_bytes": 200.0}).is_due


def test_a_system_that_was_even_is_drained_whatever_it_tells():
    # Metadata that a journal holds back is in no count of dirty pages.
    assert Charge.of(READINGS, {"dirty_bytes": 0.0}, {"dirty_bytes": 0.0}).is_due


@given(SECONDS, AMOUNTS, AMOUNTS, SECONDS)
def test_a_charge_only_takes(
    load_s: float, before: dict[str, float], after: dict[str, float], drain_s: float
):
    made = Charge.of(Readings({}, {}, load_s, tail_s=drain_s / 2), before, after)
    charge = replace(made, drain_s=drain_s)
    assert 0 <= charge.owned <= 1
    assert 0 <= charge.factor <= 1
    assert all(amount >= 0 for amount in charge.left.values())
    if charge.left and load_s > 1e-3:
        assert uncharged(charge.metrics) == pytest.approx(charge.factor)
        assert deferred_share(charge.metrics) == pytest.approx(1 - charge.factor, abs=1e-9)


def test_formulas_that_feel_the_charge():
    assert charges(("throughput_ops_per_s",))
    assert charges(("latency_ms_p99", "deferred_s"))
    assert charges(("duration_s",))
    assert not charges(("latency_ms_p99", "operations"))


def test_a_configuration_that_merely_defers_gains_only_where_nobody_charges(tmp_path: Path):
    # While the load runs it is 50% faster; with what it leaves, 1500 / 1.5 is 1000, as much as the default.
    naive, _ = tuned(tmp_path / "naive", charge=False)
    assert naive.verdict.kind == "improved"
    assert naive.verdict.gain_relative == pytest.approx(0.5, abs=0.03)
    outcome, trials = tuned(tmp_path / "charged", deferred="if(expire > 30, 0.5, 0)")
    assert outcome.verdict.kind != "improved"
    assert outcome.stage_s["drain"] > 0
    others = [trial for trial in trials if trial.configuration["expire"] == 600 and trial.score is not None]
    assert others
    assert all(trial.score == pytest.approx(1000, rel=0.1) for trial in others)


def test_a_gain_that_is_no_deferral_stays(tmp_path: Path):
    outcome, _ = tuned(tmp_path, deferred="0.2")
    assert outcome.verdict.kind == "improved"
    assert outcome.verdict.gain_relative == pytest.approx(0.5, abs=0.03)


def test_the_interval_is_charged_with_the_score(tmp_path: Path):
    _, trials = tuned(tmp_path, deferred="1")
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    for trial in complete:
        assert trial.measurement is not None
        assert trial.measurement.ci_low is not None
        assert trial.measurement.ci_high is not None
        assert trial.measurement.ci_low <= 0.5 * 1530
        steady = slice(trial.measurement.stable_start, trial.measurement.stable_end)
        mean = float(np.mean(trial.series["throughput_ops_per_s"].values[steady]))
        assert trial.score == pytest.approx(mean)
        assert trial.metrics["throughput_ops_per_s"] == pytest.approx(mean)


def test_an_abandoned_trial_is_drained_and_its_score_is_charged(tmp_path: Path):
    worse = TRAP.replace("if(expire > 30, 500, 0)", "if(expire == 30, 0, -800)")
    told = worse.format(
        charge="true", deferred="1", objective="maximize throughput_ops_per_s", budget="10 min"
    )
    told = told.replace("[measurement]", '[measurement]\nload_min = "20 s"\nload_max = "20 s"')
    with History(tmp_path / "history.sqlite") as history:
        outcome = tune(Study.parse(told), history)
        pruned = [trial for trial in history.run(outcome.run_id).trials() if trial.state is TrialState.PRUNED]
    assert pruned
    for trial in pruned:
        assert trial.stage_s["drain"] == pytest.approx(trial.metrics["load_s"])
        assert trial.score == pytest.approx(100, rel=0.1)
        assert trial.measurement is not None
        assert trial.measurement.mean == trial.score


def test_one_that_ends_sooner_what_it_begins_is_not_abandoned_for_its_rate(tmp_path: Path):
    # The default: 1000 while it runs, 500 with what it leaves. The other: 800, and it leaves nothing.
    text = TRAP.replace("1000 + if(expire > 30, 500, 0)", "if(expire == 5, 800, 1000)")
    told = text.format(
        charge="true",
        deferred="if(expire == 5, 0, 1)",
        objective="maximize throughput_ops_per_s",
        budget="30 min",
    )
    with History(tmp_path / "history.sqlite") as history:
        outcome = tune(Study.parse(told), history)
    assert outcome.verdict.kind == "improved"
    assert outcome.recommended["expire"] == 5


def test_work_without_end_is_a_failed_trial_by_name(tmp_path: Path):
    outcome, trials = tuned(tmp_path, deferred="if(expire > 30, 1000, 0)")
    failed = [trial for trial in trials if trial.failure is not None]
    assert failed
    assert {trial.failure.stage for trial in failed if trial.failure is not None} == {"drain"}
    assert all("of deferred work were left" in trial.failure.message for trial in failed if trial.failure)
    assert all(trial.score is None for trial in failed)
    assert outcome.recommended["expire"] != 600


def test_runs_of_the_last_comparison_span_three_cycles(tmp_path: Path):
    outcome, trials = tuned(tmp_path, deferred="0.1 * expire / (expire + 1)", budget="24 h")
    verified = [trial for trial in trials if trial.purpose is Purpose.VERIFY]
    assert min(trial.metrics["load_s"] for trial in verified) >= 3 * 600
    assert "each run spans 3 of the longest cycle of such work, 10 min" in outcome.verdict.note
    assert all(trial.metrics["load_s"] <= 10 for trial in trials if trial.purpose is Purpose.SEARCH)


def test_a_budget_too_small_for_three_cycles_is_said_and_held(tmp_path: Path):
    outcome, trials = tuned(tmp_path, deferred="0.1", budget="10 min")
    assert "the budget is too small for 3, loads of 30 min" in outcome.verdict.note
    assert sum(trial.total_s for trial in trials) <= 600 * 1.05
    assert outcome.verdict.runs_per_side >= 5


def test_where_little_is_deferred_runs_are_as_long_as_the_study_says(tmp_path: Path):
    outcome, trials = tuned(tmp_path, deferred="0.02", budget="10 min")
    assert "undone" not in outcome.verdict.note
    assert all(trial.metrics["load_s"] <= 10 for trial in trials)


def test_an_objective_that_does_not_feel_the_charge_says_so(tmp_path: Path):
    outcome, _ = tuned(tmp_path, objective="minimize latency_ms_p99")
    assert "which the objective does not feel" in outcome.verdict.note


def test_the_key_is_true_or_false():
    study = {"name": "x", "objective": "maximize a_per_s", "budget": "1 min"}
    target = {"kind": "simulated", "metrics": {"a_per_s": "1"}}
    with pytest.raises(StudyError, match=r"measurement.charge_deferred = 'no': must be true or false"):
        Study.of({"study": study, "target": target, "measurement": {"charge_deferred": "no"}})


def test_without_charging_nothing_is_drained(tmp_path: Path):
    outcome, trials = tuned(tmp_path, charge=False)
    assert "drain" not in outcome.stage_s
    assert all(trial.metrics["deferred_s"] == 0 for trial in trials if trial.score is not None)
    assert all(trial.metrics["deferred_work_s"] > 0 for trial in trials if trial.score is not None)
