"""As little as is needed: whole studies on simulated systems, kind and unkind."""

from __future__ import annotations

import msgspec
import pytest

from ascar.errors import StudyError
from ascar.history import History
from ascar.loops.offline import tune, verify
from ascar.results.encode import json_ready
from ascar.results.outcome import Outcome
from ascar.results.trial import Purpose, TrialState
from ascar.study import Study


def study(formula, *, seed=1, budget="60 min", run_sd=0.02, trials=40, count=8, levels=None, **tables):
    """A study of integers from 0 to 4, of which the formula names few."""
    level = levels or {"kind": "integer", "low": 0, "high": 4, "default": 0, "cost": "dyn-kernel"}
    space = {"parameters": {f"p{index}": level for index in range(count)}} | tables.pop("space", {})
    target = {"kind": "simulated", "metrics": {"score": formula}, "noise_relative_sd": 0.05, "seed": seed}
    return Study.of(
        {
            "study": {"name": "few", "objective": "maximize score", "budget": budget, "seed": seed},
            "target": target | {"run_relative_sd": run_sd} | tables.pop("target", {}),
            "space": space,
            "optimizer": {"kind": "random"},
            "stop": {"trials": trials},
            **tables,
        }
    )


STRONG = "1000 * (1 + 0.1 * p3)"
TOGETHER = "1000 * (1 + if(p2 >= 2 and p5 >= 2, 0.4, if(p2 >= 2 or p5 >= 2, -0.1, 0)))"


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "history.sqlite") as opened:
        yield opened


def test_what_brings_nothing_goes_back_to_the_default(history):
    outcome = tune(study(STRONG), history)
    found = outcome.parsimony
    assert found is not None
    assert found.kept == ("p3",)
    assert found.recommended
    assert outcome.verdict.kind == "improved"
    assert outcome.best is not None
    assert outcome.best.configuration == outcome.recommended
    assert {name for name, value in outcome.recommended.items() if value != 0} == {"p3"}
    assert outcome.verdict == found.verdict
    assert found.best_verdict.gain_relative is not None
    (worth,) = found.worth
    assert worth.loss_low is not None
    assert worth.loss_low > 0.1
    assert found.gain_kept_low is not None
    assert found.gain_kept_high is not None
    assert found.gain_kept_low <= 1.0 <= found.gain_kept_high
    assert 0.9 < found.gain_kept_confidence < 1


def test_two_that_only_help_together_are_both_kept_with_what_each_brings(history):
    outcome = tune(study(TOGETHER), history)
    found = outcome.parsimony
    assert found is not None
    assert set(found.kept) == {"p2", "p5"}
    for worth in found.worth:
        assert worth.loss_low is not None
        assert worth.loss_low > 0.03


def test_every_comparison_is_with_the_best_itself_and_the_levels_add_up_to_the_study_s(history):
    outcome = tune(study(TOGETHER), history)
    found = outcome.parsimony
    assert found is not None
    trials = history.run(outcome.run_id).trials(readings=False)
    runs = [one for one in trials if one.purpose is Purpose.REDUCE]
    best = [one for one in runs if dict(one.configuration) == found.best]
    assert len(best) == sum(step.pairs for step in found.steps)
    assert sum((1 - step.confidence) / 2 for step in found.steps) <= 0.01 + 1e-9
    for step in found.steps:
        if step.accepted:
            assert step.gain_low is not None
            assert step.gain_low > -found.margin


def test_a_run_is_recalled_when_it_goes_on(history):
    first = tune(study(TOGETHER), history)
    count = len(history.run(first.run_id).trials(readings=False))
    again = tune(study(TOGETHER), history, resume=True)
    assert again.parsimony is not None
    assert first.parsimony is not None
    assert (again.parsimony.kept, again.parsimony.steps) == (first.parsimony.kept, first.parsimony.steps)
    assert again.recommended == first.recommended
    assert len(history.run(first.run_id).trials(readings=False)) == count


@pytest.mark.parametrize("after", [1, 4, 23])
def test_an_interrupted_reduction_goes_on(history, after):
    seen: list[int] = []

    def interrupt(event):
        if event.kind == "trial-started" and event.trial.purpose is Purpose.REDUCE:
            seen.append(event.trial.number)
            if len(seen) > after:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(study(TOGETHER), history, listener=interrupt)
    outcome = tune(study(TOGETHER), history, resume=True)
    assert outcome.parsimony is not None
    assert set(outcome.parsimony.kept) == {"p2", "p5"}
    numbers = [one.number for one in history.run(outcome.run_id).trials(readings=False)]
    assert len(numbers) == len(set(numbers))


def test_the_outcome_comes_back_from_the_history_and_old_ones_open(history):
    outcome = tune(study(STRONG), history)
    assert history.run(outcome.run_id).outcome().parsimony == outcome.parsimony
    assert json_ready(outcome)["parsimony"]["kept"] == ["p3"]
    assert (
        next(field for field in msgspec.structs.fields(Outcome) if field.name == "parsimony").default is None
    )


def test_the_last_comparison_of_the_recommended_keeps_the_chain(history):
    first = tune(study(STRONG), history)
    run = history.run(first.run_id)
    second = verify(msgspec.structs.replace(run.study, budget_s=600.0), history, run, first.recommended)
    assert second.parsimony == first.parsimony
    assert second.recommended == first.recommended


def test_the_margin_is_that_of_the_last_comparison_where_none_is_given():
    assert study(STRONG, verify={"margin": 0.02}).recommend_margin == 0.02
    assert study(STRONG, verify={"margin": 0.02}, recommend={"margin": 0.0}).recommend_margin == 0.0


def test_what_is_proven_stays_in_the_history_when_an_interrupt_comes_in_mid_chain(history):
    steps: list[int] = []
    runs: list[int] = []

    def interrupt(event):
        if event.kind == "reducing":
            steps.append(1)
        if event.kind == "trial-started":
            runs.append(event.trial.number)
            if len(steps) == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(study(STRONG), history, listener=interrupt)
    (row,) = history.runs()
    run = history.run(row.id)
    assert run.state == "interrupted"
    kept = run.outcome()
    assert kept.verdict.kind == "improved"
    assert kept.parsimony is not None
    assert kept.parsimony.recommended
    assert kept.best is not None
    assert kept.recommended != kept.best.configuration
    changed = {name for name, value in kept.recommended.items() if value != 0}
    assert "p3" in changed
    assert len(changed) < len(kept.parsimony.best)
    assert tune(study(STRONG), history, resume=True).recommended["p3"] > 0


def test_an_interrupt_before_anything_is_left_out_keeps_the_verdict(history):
    def interrupt(event):
        if event.kind == "reducing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(study(STRONG), history, listener=interrupt)
    (row,) = history.runs()
    assert history.run(row.id).outcome().verdict.kind == "improved"


def test_quiet_runs_take_three_pairs_a_comparison(history):
    found = tune(study(STRONG, run_sd=0.001, target={"noise_relative_sd": 0.001}), history).parsimony
    assert found is not None
    assert found.kept == ("p3",)
    assert min(step.pairs for step in found.steps if step.accepted) == 3


def test_another_margin_is_no_other_study(history):
    first = tune(study(STRONG, recommend={"margin": 0.0}), history)
    assert first.parsimony is None
    second = tune(study(STRONG, recommend={"margin": 0.05}), history, resume=True)
    assert second.run_id == first.run_id
    assert second.parsimony is not None
    assert second.parsimony.margin == 0.05


@pytest.mark.parametrize("margin", [-0.01, 0.95])
def test_a_margin_out_of_range_is_refused(margin):
    with pytest.raises(StudyError, match=r"recommend\.margin"):
        study(STRONG, recommend={"margin": margin})


def test_without_time_left_the_best_stays_and_the_budget_holds(history):
    for seed in range(2):
        outcome = tune(study(STRONG, seed=seed, budget="4 min", trials=60), history)
        assert sum(outcome.stage_s.values()) <= 240 * 1.05
        found = outcome.parsimony
        if outcome.verdict.kind == "improved" and found is not None and not found.recommended:
            assert outcome.best is not None
            assert outcome.recommended == outcome.best.configuration
            assert "budget" in found.note or "needed" in found.note or "stays" in found.note


@pytest.mark.slow
def test_noise_of_ten_percent_accepts_nothing_that_costs(history):
    # A wrong acceptance (a true loss above the margin) may happen once in a hundred studies.
    wrong = 0
    for seed in range(3):
        found = tune(study(TOGETHER, seed=seed, run_sd=0.1, budget="40 min"), history).parsimony
        if found is not None and found.recommended:
            wrong += not {"p2", "p5"} <= set(found.kept)
    assert wrong == 0


def test_parameters_that_a_constraint_couples_stay_together(history):
    # With p3 set, p1 must be too: it brings nothing of itself.
    outcome = tune(study(STRONG, space={"constraints": ["p3 <= p1"]}), history)
    found = outcome.parsimony
    assert found is not None
    assert set(found.kept) == {"p1", "p3"}
    assert outcome.recommended["p3"] <= outcome.recommended["p1"]


def test_a_smaller_configuration_whose_runs_fail_is_not_recommended(history):
    fails = {"fails_when": "p3 >= 2 and p1 == 0"}
    outcome = tune(study(STRONG, target=fails), history)
    found = outcome.parsimony
    assert found is not None
    assert set(found.kept) == {"p1", "p3"}
    assert any(step.ended == "failures" for step in found.steps)
    trials = history.run(outcome.run_id).trials(readings=False)
    assert any(one.purpose is Purpose.REDUCE and one.state is TrialState.FAILED for one in trials)


@pytest.mark.slow
def test_minimised_and_negative_scores(history):
    smaller = tune(
        study("1000 / (1 + 0.1 * p3)", study={"name": "few", "objective": "minimize score", "budget": "1 h"}),
        history,
    )
    assert smaller.parsimony is not None
    assert smaller.parsimony.kept == ("p3",)
    below = tune(study("0 - 1000 / (1 + 0.1 * p3)"), history)
    assert below.parsimony is not None
    assert below.parsimony.kept == ("p3",)
    assert below.parsimony.steps[0].gain_relative is None


def test_the_dear_ones_go_first_where_importance_is_alike(history):
    from ascar.objective import Objective
    from ascar.parsimony.effects import Changed
    from ascar.space import study_space

    dear = {"kind": "integer", "low": 0, "high": 4, "default": 0, "cost": "reformat-restore"}
    cheap = dear | {"cost": "dyn-kernel"}
    from ascar.prepared_study import PreparedStudy

    wanted = study(STRONG, space={"parameters": {"a": dear, "b": cheap, "p3": cheap}}, count=0)
    space = study_space(wanted, PreparedStudy.open(wanted).target.space)
    best = space.validate({"a": 4, "b": 4, "p3": 4})
    changed = Changed.of(space, best, [], Objective.parse("maximize score"), 0.03)
    assert changed.ordered[-1] == "a"
    assert changed.guess == 1
