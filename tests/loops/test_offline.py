"""The offline loop on simulated systems: whole studies in virtual time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from ascar.errors import InputError, WorkError
from ascar.history import History
from ascar.loops.offline import tune
from ascar.results.trial import Purpose, TrialState
from ascar.study import Study

if TYPE_CHECKING:
    from ascar.events import Event

STUDY = """
[study]
name = "simulated"
objective = "maximize throughput_ops_per_s"
budget = "{budget}"
seed = {seed}
{constraints}
[target]
kind = "simulated"
metrics = {{ throughput_ops_per_s = "{formula}", latency_ms_p99 = "depth" }}
noise_relative_sd = 0.05
run_relative_sd = 0.02
seed = {seed}
{target}
[space.parameters.depth]
kind = "integer"
low = 1
high = 64
default = 1
cost = "dyn-kernel"
[optimizer]
kind = "random"
[verify]
p_value = 0.01
"""


def study(
    formula: str = "1000 + 10 * depth",
    *,
    seed: int = 1,
    budget: str = "3 min",
    constraints: str = "",
    target: str = "",
) -> Study:
    return Study.parse(
        STUDY.format(formula=formula, seed=seed, budget=budget, constraints=constraints, target=target)
    )


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "history.sqlite") as opened:
        yield opened


def test_a_real_gain_is_found_verified_and_recommended(history):
    outcome = tune(study(), history)
    assert outcome.verdict.kind == "improved"
    assert outcome.verdict.gain_low is not None
    assert outcome.verdict.gain_low > 0
    assert outcome.best is not None
    assert outcome.recommended == outcome.best.configuration
    assert outcome.recommended["depth"] > 32


@pytest.mark.slow
def test_where_nothing_matters_the_default_is_fine_nearly_always(history):
    # The level is 1%; among 12 studies of pure noise more than one claim would be a one-in-150 event.
    kinds = [tune(study("1000", seed=seed, budget="90 s"), history).verdict.kind for seed in range(12)]
    assert kinds.count("improved") <= 1


def test_a_constraint_on_results_keeps_the_fastest_from_being_recommended(history):
    outcome = tune(study(constraints='constraints = ["latency_ms_p99 <= 20"]'), history)
    assert outcome.recommended["depth"] <= 20
    assert outcome.verdict.kind == "improved"
    broken = [trial for trial in history.run(outcome.run_id).trials() if trial.unmet]
    assert broken, "some trials must have broken the constraint for this test to mean anything"


def test_failures_are_recorded_and_the_study_goes_on(history):
    outcome = tune(study(target='fails_when = "depth > 40"'), history)
    assert outcome.counts[TrialState.FAILED] > 0
    assert outcome.recommended["depth"] <= 40
    failed = [t for t in history.run(outcome.run_id).trials() if t.state is TrialState.FAILED]
    assert all(trial.score is None and trial.failure is not None for trial in failed)


def test_a_default_that_cannot_be_measured_ends_the_study(history):
    with pytest.raises(WorkError, match="the default configuration cannot be measured"):
        tune(study(target='fails_when = "depth < 2"'), history)


def test_a_metric_that_nobody_reports_is_bad_input(history):
    wrong = Study.parse(study().text.replace("maximize throughput_ops_per_s", "maximize iops"))
    with pytest.raises(InputError, match=r"needs the metric 'iops'.*it reports"):
        tune(wrong, history)


def test_the_budget_holds_and_the_verification_fits_into_it(history):
    outcome = tune(study(budget="2 min"), history)
    assert sum(outcome.stage_s.values()) <= 120 * 1.05
    assert outcome.verdict.runs_per_side >= 5


def test_verification_runs_alternate_after_the_search(history):
    outcome = tune(study(), history)
    trials = history.run(outcome.run_id).trials()
    purposes = [trial.purpose for trial in trials]
    first = purposes.index(Purpose.VERIFY)
    assert set(purposes[:first]) == {Purpose.DEFAULT, Purpose.SEARCH}
    assert set(purposes[first:]) == {Purpose.VERIFY}
    assert len(purposes) - first == 2 * outcome.verdict.runs_per_side


def test_an_interrupted_run_resumes_without_losing_a_trial(history):
    seen: list[int] = []

    def interrupt(event: Event) -> None:
        if event.kind == "trial-started" and len(seen) == 6:
            raise KeyboardInterrupt
        if event.kind == "trial-finished" and event.trial is not None:
            seen.append(event.trial.number)

    with pytest.raises(KeyboardInterrupt):
        tune(study(), history, listener=interrupt)
    recalled: list[Event] = []
    outcome = tune(study(), history, resume=True, listener=recalled.append)
    assert recalled[0].data["trials_recalled"] >= 6
    told = [event.trial.number for event in recalled if event.kind == "trial-recalled" and event.trial]
    assert told[:6] == seen
    kept = [trial.number for trial in history.run(outcome.run_id).trials()]
    assert kept[:6] == seen
    assert outcome.verdict.kind == "improved"


def test_the_same_seed_proposes_the_same(history):
    def tried(run_id: int) -> list[object]:
        return [trial.configuration for trial in history.run(run_id).trials()][:10]

    first, second = tune(study(), history), tune(study(), history)
    assert tried(first.run_id) == tried(second.run_id)


def test_a_change_budget_is_kept_by_the_search(history):
    expensive = """[space]
change_budget = { reformat-restore = 3 }
[space.parameters.block]
kind = "integer"
low = 1
high = 8
default = 1
cost = "reformat-restore"
[space.parameters.depth]"""
    text = study("1000 + 10 * depth + 50 * block").text.replace("[space.parameters.depth]", expensive)
    outcome = tune(Study.parse(text), history)
    trials = [one for one in history.run(outcome.run_id).trials() if one.purpose is not Purpose.VERIFY]
    blocks = [one.configuration["block"] for one in trials]
    changes = sum(one != other for one, other in pairwise(blocks))
    assert len(trials) > 10
    assert 1 <= changes <= 3
