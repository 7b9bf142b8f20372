"""A study goes on: after its end, after an interruption, undecided, weeks later, on another machine."""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import pytest

from ascar.errors import StudyError
from ascar.history import History
from ascar.loops.offline import tune, verify
from ascar.prepared_study import PreparedStudy
from ascar.results.trial import Purpose
from ascar.study import Study

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.events import Event

STUDY = """
[study]
name = "goes-on"
objective = "maximize throughput_ops_per_s"
budget = "{budget}"
seed = {seed}
[target]
kind = "simulated"
metrics = {{ throughput_ops_per_s = "1000 * if(fast, {ratio}, 1)" }}
noise_relative_sd = 0.05
run_relative_sd = {scatter}
{target}
[space.parameters.fast]
kind = "boolean"
default = false
cost = "dyn-kernel"
{more}
"""


def study(
    ratio: float = 1.06,
    *,
    budget: str = "2 min",
    scatter: float = 0.06,
    seed: int = 1,
    target: str = "",
    more: str = "[stop]\ntrials = 2",
) -> Study:
    text = STUDY.format(ratio=ratio, budget=budget, scatter=scatter, seed=seed, target=target, more=more)
    return Study.parse(text)


@pytest.fixture
def history(tmp_path: Path):
    with History(tmp_path / "history.sqlite") as opened:
        yield opened


def verified(history: History, run: int):
    return [one for one in history.run(run).trials(readings=False) if one.purpose is Purpose.VERIFY]


def test_an_undecided_study_says_what_would_decide_it_and_goes_on_with_its_pairs(history):
    first = tune(study(), history)
    assert (first.verdict.kind, first.verdict.ended) == ("undecided", "time")
    assert first.verdict.more_pairs
    assert first.recommended["fast"] is False
    before = first.verdict.runs_per_side
    second = tune(study(budget="1 h"), history, resume=True)
    assert second.run_id == first.run_id
    assert second.verdict.kind == "improved"
    assert second.verdict.runs_per_side > before
    assert second.verdict.default_scores[:before] == first.verdict.default_scores
    again = tune(study(budget="1 h"), history, resume=True)
    assert (again.verdict.kind, again.verdict.runs_per_side) == ("improved", second.verdict.runs_per_side)
    assert history.run(first.run_id).study.budget_s == 3600, "the run has the study as it is now"


def test_nothing_but_budget_stop_and_verify_may_differ(history):
    first = tune(study(), history)
    tune(study(more="[stop]\ntrials = 3\n[verify]\nmargin = 0.05"), history, resume=True)
    with pytest.raises(StudyError, match=r"target\.noise_relative_sd|target\.metrics"):
        tune(study(ratio=1.5), history, resume=True)
    with pytest.raises(StudyError, match=r"study\.seed: was 1, is now 2"):
        tune(study(seed=2), history, resume=True)
    assert history.run("goes-on").outcome().verdict == first.verdict or verified(history, first.run_id)


def test_what_a_run_came_to_stays_when_its_continuation_is_interrupted(history):
    first = tune(study(), history)

    def interrupt(event: Event) -> None:
        if event.kind == "compared" and event.data["pairs"] > first.verdict.runs_per_side:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(study(budget="1 h"), history, resume=True, listener=interrupt)
    assert history.run(first.run_id).outcome().verdict == first.verdict
    assert history.run(first.run_id).state == "interrupted"
    assert tune(study(budget="1 h"), history, resume=True).verdict.kind == "improved"


def test_the_last_comparison_alone_goes_on_and_is_recorded(history):
    first = tune(study(), history)
    run = history.run(first.run_id)
    assert first.best is not None
    chosen = msgspec.structs.replace(run.study, budget_s=1800.0)
    second = verify(chosen, history, run, first.best.configuration)
    assert second.verdict.kind == "improved"
    assert second.verdict.default_scores[: first.verdict.runs_per_side] == first.verdict.default_scores
    assert history.run(first.run_id).outcome().verdict == second.verdict
    assert history.run(first.run_id).outcome().recommended["fast"] is True


def test_two_trials_are_compared_without_changing_what_the_run_came_to(history):
    first = tune(study(1.3), history)
    run = history.run(first.run_id)
    best = first.best
    assert best is not None
    found = verify(run.study, history, run, run.space.default(), against=best)
    assert found.verdict.kind == "default-is-fine"
    assert found.verdict.against == best.number
    assert found.verdict.gain_relative is not None
    assert found.verdict.gain_relative < 0
    assert history.run(first.run_id).outcome().verdict == first.verdict


def test_another_machine_never_goes_on_with_the_pairs_of_the_first(history, monkeypatch):
    first = tune(study(), history)
    run = history.run(first.run_id)
    assert first.best is not None
    monkeypatch.setattr(
        "ascar.prepared_study.PreparedStudy.valid_for", lambda self: {"machine_id": "another", "workload": {}}
    )
    monkeypatch.setattr(run, "machine", {"machine_id": "first"})
    elsewhere = verify(run.study, history, run, first.best.configuration)
    assert elsewhere.run_id != first.run_id
    assert len(verified(history, elsewhere.run_id)) == 2 * elsewhere.verdict.runs_per_side
    assert elsewhere.verdict.default_scores[:1] != first.verdict.default_scores[:1]


def test_a_study_of_another_machine_is_not_resumed(history, monkeypatch):
    for machine in ("first", "second"):
        monkeypatch.setattr(
            "ascar.prepared_study.PreparedStudy.valid_for", lambda self, one=machine: {"machine_id": one}
        )
        if machine == "first":
            tune(study(), history)
        else:
            with pytest.raises(StudyError, match=r"machine_id: was first, is now second"):
                tune(study(), history, resume=True)


def test_a_candidate_that_fails_is_left_for_another(history):
    flaky = Study.parse(
        STUDY.format(ratio=1.2, budget="20 min", scatter=0.01, seed=3, target="", more="").replace(
            "if(fast, 1.2, 1)", "if(fast, 1.2, 1) * (1 + depth / 50)"
        )
        + """
        [space.parameters.depth]
        kind = "integer"
        low = 1
        high = 20
        default = 1
        cost = "dyn-kernel"
        """
    )
    broken = msgspec.structs.replace(flaky, target={**flaky.target, "fails_when": "depth > 12"})
    outcome = tune(broken, history)
    assert outcome.verdict.kind == "improved"
    assert outcome.recommended["depth"] <= 12


@pytest.mark.slow
def test_the_budget_holds_on_any_study(history):
    for seed in range(2):
        for budget_s in (60, 90, 300):
            chosen = study(1.01, budget=f"{budget_s} s", seed=seed, scatter=0.05, more="")
            outcome = tune(chosen, history)
            spent_s = sum(outcome.stage_s.values())
            assert spent_s <= 1.05 * budget_s
            if outcome.verdict.kind == "undecided":
                assert spent_s >= 0.9 * budget_s, (seed, budget_s, outcome.stopped)


def test_the_pairs_of_a_comparison_alternate_also_over_continuations(history):
    first = tune(study(), history)
    tune(study(budget="10 min"), history, resume=True)
    runs = [one.configuration["fast"] for one in verified(history, first.run_id)]
    firsts = runs[::2]
    assert all(one != other for one, other in zip(runs[::2], runs[1::2], strict=True))
    assert all(one != other for one, other in pairwise(firsts))


HARD = """
[study]
name = "hard"
objective = "{objective}"
budget = "{budget}"
seed = 1
{study}
[target]
kind = "simulated"
metrics = {{ x = "{formula}", y = "if(k == 0, 2, 1)" }}
noise_relative_sd = 0.05
run_relative_sd = {scatter}
[space.parameters.k]
kind = "integer"
low = 0
high = 1000000
default = 0
cost = "dyn-kernel"
[optimizer]
kind = "random"
{more}
"""


def hard(
    formula: str,
    *,
    objective: str = "maximize x",
    budget: str = "5 min",
    study: str = "",
    scatter: float = 0.03,
    more: str = "",
) -> Study:
    text = HARD.format(
        objective=objective, budget=budget, study=study, formula=formula, scatter=scatter, more=more
    )
    return Study.parse(text)


def test_a_space_in_which_all_is_many_times_worse_is_searched_to_its_end(history):
    outcome = tune(hard("1 + min(k, 4)", objective="minimize x"), history)
    assert outcome.verdict.kind == "default-is-fine"
    assert outcome.recommended["k"] == 0


def test_a_default_that_breaks_a_constraint_in_every_pair_ends_the_comparison(history):
    outcome = tune(hard("1000 + min(k, 20)", study='constraints = ["y <= 1.5"]'), history)
    assert outcome.verdict.kind == "not-verified"
    assert outcome.verdict.candidates > 1, "it does not ask the same comparison for ever"
    assert sum(outcome.stage_s.values()) <= 1.05 * 300


def test_what_has_all_the_pairs_that_are_allowed_makes_room_for_another(history):
    outcome = tune(hard("1000 + min(k, 20)", scatter=0.1, more="[verify]\nruns_max = 6"), history)
    assert outcome.verdict.kind in ("undecided", "default-is-fine")
    assert sum(outcome.stage_s.values()) <= 1.05 * 300
    compared = {one.configuration["k"] for one in verified(history, outcome.run_id)} - {0}
    assert len(compared) == outcome.verdict.candidates
    for k in compared:
        pairs = [one for one in verified(history, outcome.run_id) if one.configuration["k"] == k]
        assert len(pairs) <= 6


def test_equal_scores_without_any_noise_are_undecided_without_a_margin(history):
    quiet = hard("1000", scatter=0.0, budget="2 min", more="[verify]\nmargin = 0")
    silent = msgspec.structs.replace(quiet, target={**quiet.target, "noise_relative_sd": 0.0})
    verdict = tune(silent, history).verdict
    assert verdict.kind == "undecided"
    assert verdict.more_pairs is None, "no number of pairs would tell them apart"


def test_a_comparison_with_another_trial_adds_no_candidate(history):
    first = tune(hard("1000 + min(k, 20)", budget="2 min"), history)
    run = history.run(first.run_id)
    searched = [one for one in run.trials() if one.purpose is Purpose.SEARCH]
    one, other = [one for one in searched if first.best and one.configuration != first.best.configuration][:2]
    verify(run.study, history, run, one.configuration, against=other)
    again = tune(hard("1000 + min(k, 20)", budget="2 min"), history, resume=True)
    assert again.best is not None
    assert first.best is not None
    assert again.best.configuration == first.best.configuration


def test_a_budget_below_one_load_takes_one_load(history):
    outcome = tune(hard("1000 + k", budget="2 s"), history)
    assert outcome.verdict.kind == "not-verified"
    assert outcome.counts == {"complete": 1}


def test_what_went_before_is_part_of_the_budget_of_real_time(tmp_path):
    chosen = Study.parse(
        """
        [study]
        name = "real"
        objective = "maximize throughput_ops_per_s"
        budget = "100 s"
        [target]
        kind = "sqlite"
        """
    )
    now = 1000.0
    prepared = PreparedStudy.open(chosen, lambda: now, spent_s=7.0)
    assert 993.0 - 5.0 < prepared.start_s <= 993.0


def test_the_age_of_a_process_counts_from_its_start():
    text = (
        "import time; time.sleep(0.5); from ascar.cli.process_age import process_age_s as age; print(age())"
    )
    start_s = time.monotonic()
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert 0.5 <= float(done.stdout) <= time.monotonic() - start_s + 0.05
