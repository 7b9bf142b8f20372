"""Objectives of section 3.1.5 against values reckoned by hand."""

from __future__ import annotations

import math

import pytest

from ascar.errors import AscarError, InputError
from ascar.sharp import FORMS, SimulatedBench, objective_of
from ascar.sharp.objectives import alpha_fairness
from ascar.sharp.trials.bench import metrics_of
from ascar.simulation import Cluster, preset, with_settings

METRICS = {"tp": 40.0, "stdev": 10.0, "throughput_mb_per_s": 200.0, "jain_index": 0.8, "latency_ms_p99": 70.0}


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("throughput", 200.0),
        ("throughput-cv:0.26", 40.0),
        ("throughput-cv:0.25", 0.0),  # strictly below the limit
        ("tp-stdev:1", 30.0),
        ("tp-stdev:-0.5", 45.0),
        ("inverse-stdev:0.25", 0.75 * 40 + 0.25 / 10),
        ("power:2,0.5,3", 2 * math.sqrt(40) - 30),
        ("log:5,10,0.1", 5 * math.log10(40) - 1),
        ("jain", 0.8),
        ("latency:99", 70.0),
        ("maximize tp / stdev", 4.0),
    ],
)
def test_forms_of_the_thesis(text: str, score: float) -> None:
    assert objective_of(text).score(METRICS) == pytest.approx(score)


def test_latency_is_minimised_and_all_else_maximised() -> None:
    assert objective_of("latency:99").sign == -1
    given = {name: ":" + ",".join("2" for _ in form.parameters) for name, form in FORMS.items()}
    others = [name for name in FORMS if name != "latency"]
    assert all(objective_of(name + given[name].rstrip(":")).sign == 1 for name in others)


def test_alpha_fairness() -> None:
    assert alpha_fairness([1, 4], 0) == 5  # the total
    assert alpha_fairness([1, 4], 0.5) == pytest.approx(2 * (1 + 2))
    assert alpha_fairness([2, 8], 1) == pytest.approx(math.log(16))  # proportional fairness
    assert alpha_fairness([2, 8], 2) == pytest.approx(-(1 / 2 + 1 / 8))
    assert alpha_fairness([0, 8], 2) < -1e5  # nothing for one client is finite, and far below all else
    assert objective_of("alpha-fairness:0.5").unit == "alpha_fairness_0p5"


def test_metrics_are_those_of_the_run() -> None:
    scenario = with_settings(preset("random-write"), ["duration_s=3", "warmup_s=1", "clients.count=2"])
    outcome = Cluster(scenario).run()
    metrics = metrics_of(outcome, objective_of("alpha-fairness:2").formula.names)
    every = [value for series in outcome.clients_mb_per_s for value in series]
    tp = sum(every) / len(every)
    assert metrics["tp"] == pytest.approx(tp)
    assert metrics["stdev"] == pytest.approx(math.sqrt(sum((one - tp) ** 2 for one in every) / len(every)))
    assert metrics["cv"] == pytest.approx(metrics["stdev"] / tp)
    shares = [sum(series) / len(series) for series in outcome.clients_mb_per_s]
    assert metrics["alpha_fairness_2"] == pytest.approx(-sum(1 / share for share in shares))
    assert metrics["latency_ms_p999"] >= metrics["latency_ms_p90"] > 0


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "speed", "tp-stdev", "tp-stdev:", "tp-stdev:1,2", "tp-stdev:x", "tp-stdev:nan",
        "tp-stdev:1e999", "tp-stdev:1 + jain_index", "alpha-fairness:-1", "alpha-fairness:1e9",
        "maximize", "maximize tp -", "maximize __import__('os')", "throughput:1", "x" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_objective_is_refused(text: str) -> None:
    with pytest.raises(InputError) as told:
        objective_of(text)
    assert len(told.value.message) < 2_000


def test_a_metric_that_no_run_has_is_refused_before_any_run() -> None:
    with pytest.raises(AscarError, match="'speed'; metrics are"):
        SimulatedBench(preset("random-write"), objective_of("maximize speed"))
