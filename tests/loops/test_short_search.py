"""A budget of few loads: the search makes them shorter, and so does the last comparison, equally."""

from __future__ import annotations

from statistics import fmean

import pytest

from ascar.history import History
from ascar.loops.offline import tune
from ascar.results.trial import Purpose
from ascar.study import Study

STUDY = """
[study]
name = "few-loads"
objective = "maximize throughput_ops_per_s"
budget = "{budget}"
[target]
kind = "simulated"
metrics = {{ throughput_ops_per_s = "1000 + 10 * depth" }}
noise_relative_sd = 0.05
run_relative_sd = 0.01
{target}
[space.parameters.depth]
kind = "integer"
low = 1
high = 64
default = 1
cost = "dyn-kernel"
[measurement]
load_min = "{least}"
load_max = "20 s"
interval_width = 0.001
abandon = 0.0
"""


@pytest.fixture
def trials(tmp_path):
    with History(tmp_path / "history.sqlite") as history:

        def made(budget: str, *, least: str = "3 s", target: str = "", text: str = STUDY):
            outcome = tune(Study.parse(text.format(budget=budget, least=least, target=target)), history)
            return outcome, history.run(outcome.run_id).trials()

        yield made


def loads(trials, purpose: Purpose) -> list[float]:
    return [trial.stage_s["load"] for trial in trials if trial.purpose is purpose]


def test_a_search_of_few_loads_makes_them_shorter_and_compares_at_one_length(trials):
    outcome, made = trials("5 min")
    default, *again = loads(made, Purpose.DEFAULT)
    searched = loads(made, Purpose.SEARCH)
    assert default == pytest.approx(20)
    assert len(searched) >= 12
    assert max(searched) < 13
    assert len(again) == 2
    assert fmean(again) == pytest.approx(fmean(searched), abs=1)
    compared = loads(made, Purpose.VERIFY)[:10]
    assert 3 <= min(compared) == pytest.approx(max(compared))
    assert outcome.verdict.runs_per_side >= 5
    assert outcome.verdict.kind == "improved"
    assert sum(outcome.stage_s.values()) <= 300 * 1.05


def test_a_load_that_ends_with_the_reading_after_the_limit_is_a_shorter_one(trials):
    # Twelve readings are enough, and nine end a load whose limit is 8.6 s: a quarter less, and no more.
    few = STUDY.replace("interval_width = 0.001", 'interval_width = 0.9\nreading = "1 s"\nreadings_min = 12')
    made = trials("405 s", text=few)[1]
    assert loads(made, Purpose.DEFAULT) == [pytest.approx(12), pytest.approx(9), pytest.approx(9)]
    assert max(loads(made, Purpose.SEARCH)) == pytest.approx(9)


def test_loads_keep_their_length_where_the_budget_holds_a_search_of_them(trials):
    _, made = trials("40 min")
    assert min(loads(made, Purpose.SEARCH)) == pytest.approx(20)
    assert len(loads(made, Purpose.DEFAULT)) == 2


def test_loads_are_never_shorter_than_the_study_says(trials):
    _, made = trials("8 min", least="20 s")
    assert min(loads(made, Purpose.SEARCH)) == pytest.approx(20)
    _, made = trials("90 s", least="5 s")
    assert min(loads(made, Purpose.SEARCH)) >= 5


def test_a_short_load_that_flatters_or_hurts_moves_no_comparison_within_the_search(trials):
    # The first seconds of every run reach a third of the level: runs of one length are compared.
    outcome, _ = trials("5 min", target='warm_up = "12 s"\nwarm_up_from = 0.3')
    assert outcome.verdict.kind == "improved"
    assert outcome.recommended["depth"] > 40
    assert outcome.verdict.gain_low < 0.62 < outcome.verdict.gain_high + 0.15


@pytest.mark.parametrize("budget", ["5 min", "40 min", "4 min"])
def test_a_run_that_goes_on_keeps_the_length_whatever_its_budget_is_now(trials, tmp_path, budget):
    lengths = []
    with History(tmp_path / "resumed.sqlite") as history:
        study = Study.parse(STUDY.format(budget="5 min", least="3 s", target=""))

        def interrupt(event):
            if event.kind == "trial-finished":
                lengths.append(event.trial.stage_s["load"])
                if len(lengths) == 6:
                    raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            tune(study, history, listener=interrupt)
        resumed = Study.parse(STUDY.format(budget=budget, least="3 s", target=""))
        outcome = tune(resumed, history, resume=True)
        searched = loads(history.run(outcome.run_id).trials(), Purpose.SEARCH)
    assert max(searched) - min(searched) < 1
    assert searched[0] == pytest.approx(lengths[-1], abs=1)


def test_a_load_that_cannot_be_ended_early_is_not_called_shorter(tmp_path):
    # Formulas of one value over the whole run have no readings to end it by.
    text = STUDY.format(budget="6 min", least="3 s", target="")
    with History(tmp_path / "whole.sqlite") as history:
        study = Study.parse(text.replace('load_max = "20 s"', 'load_max = "20 s"\nreading = "20 s"'))
        outcome = tune(study, history)
        made = history.run(outcome.run_id).trials()
    assert len(loads(made, Purpose.DEFAULT)) == 2
    assert min(loads(made, Purpose.SEARCH)) == pytest.approx(20)
