"""`ascar.tune`: functions, files and tables; what it returns; its errors."""

from __future__ import annotations

import random
import time

import pytest

import ascar
from ascar.errors import StudyError
from ascar.results.trial import Purpose

SPACE = ascar.Space((ascar.integer("depth", (1, 64), default=4), ascar.boolean("compress", default=False)))
SIMULATED = {
    "study": {"name": "cache", "objective": "maximize ops_per_s", "budget": "10 min", "seed": 3},
    "target": {"kind": "simulated", "metrics": {"ops_per_s": "1000 - 3 * abs(depth - 32)"}},
    "space": {
        "parameters": {"depth": {"kind": "integer", "low": 1, "high": 64, "default": 4, "cost": "dyn-app"}}
    },
    "stop": {"trials": 20},
}


@pytest.fixture
def history(tmp_path):
    with ascar.History(tmp_path / "history.sqlite") as opened:
        yield opened


def speed(configuration):
    level = 1000 - 3 * abs(configuration["depth"] - 32) + 50 * configuration["compress"]
    return level + random.Random(configuration["depth"]).gauss(0, 1)


def test_a_function_is_tuned_and_its_gain_verified(history):
    outcome = ascar.tune(
        speed, SPACE, budget="1 min", stop={"trials": 40}, history=history, study={"seed": 1}
    )
    assert outcome.verdict.kind == "improved"
    assert outcome.recommended["compress"] is True
    assert 20 <= outcome.recommended["depth"] <= 44
    assert outcome.study == "speed"
    assert [trial.number for trial in outcome.trials] == list(range(1, len(outcome.trials) + 1))
    run = history.run("speed")
    assert run.outcome().recommended == outcome.recommended
    assert run.study.target == {"kind": "function", "name": "speed", "space": run.study.target["space"]}


def test_what_the_function_returns_by_name_are_metrics(history):
    def both(configuration):
        return {"ops_per_s": 10.0 * configuration["depth"], "latency_ms": configuration["depth"] / 2}

    outcome = ascar.tune(
        both,
        SPACE,
        ["maximize ops_per_s", "minimize latency_ms"],
        budget="20 s",
        history=history,
        stop={"trials": 8},
        study={"name": "two", "constraints": ["latency_ms <= 20"]},
    )
    assert outcome.study == "two"
    assert all(trial.unmet == () for trial in outcome.trials if trial.configuration["depth"] <= 40)
    assert outcome.trials[0].metrics["latency_ms"] == 2


def test_what_it_yields_are_unit_readings_and_a_bad_trial_ends_early(history):
    calls = []

    def readings(configuration):
        noise = random.Random(len(calls))
        for _ in range(10_000):
            calls.append(configuration["depth"])
            yield noise.gauss(100.0 + configuration["depth"], 1)

    outcome = ascar.tune(
        readings,
        SPACE,
        budget="1 min",
        history=history,
        measurement={"load_min": "50 ms", "load_max": "1 s"},
        stop={"trials": 6},
        verify={"runs_max": 5},
    )
    first = outcome.trials[0]
    assert first.purpose is Purpose.DEFAULT
    assert len(first.series["value"]) >= 4
    assert first.measurement is not None
    assert first.measurement.ci_low is not None
    assert len(calls) < 10_000 * len(outcome.trials)


def test_what_it_raises_is_a_failed_trial_with_its_reason(history):
    def fragile(configuration):
        if configuration["depth"] > 20:
            raise ValueError("too deep\nfor this")
        return configuration["depth"]

    outcome = ascar.tune(fragile, SPACE, budget="20 s", history=history, stop={"trials": 15})
    failed = [trial for trial in outcome.trials if trial.failure is not None]
    assert failed
    assert failed[0].failure.message == "load: fragile raised ValueError: too deep"
    assert "in fragile" in failed[0].failure.stderr
    assert outcome.recommended["depth"] <= 20


def test_one_that_hangs_is_interrupted_and_the_search_goes_on(history):
    def hangs(configuration):
        if configuration["depth"] > 20:
            while True:
                time.sleep(0.01)
        return configuration["depth"]

    options = {"stop": {"trials": 8}, "target": {"call_max": "200 ms"}, "history": history}
    outcome = ascar.tune(hangs, SPACE, budget="30 s", **options)
    failed = [trial for trial in outcome.trials if trial.failure is not None]
    assert failed
    assert failed[0].failure.message == (
        "load: hangs took longer than 0.2 s and was interrupted; see target.call_max"
    )
    assert outcome.recommended["depth"] <= 20
    with pytest.raises(StudyError, match="target.call_max = 'soon'"):
        ascar.tune(hangs, SPACE, target={"call_max": "soon"}, history=history)
    with pytest.raises(StudyError, match="target.cal_max: unknown key"):
        ascar.tune(hangs, SPACE, target={"cal_max": "1 s"}, history=history)


def test_a_noisy_function_has_intervals_and_its_gain_a_test(history):
    source = random.Random(1)

    def noisy(configuration):
        for _ in range(200):
            yield speed(configuration) * source.gauss(1.0, 0.1)

    outcome = ascar.tune(
        noisy, SPACE, budget="60 s", stop={"trials": 20}, verify={"runs_max": 30}, history=history
    )
    assert outcome.verdict.kind == "improved"
    assert outcome.verdict.gain_low > 0
    measured = [one.measurement for one in outcome.trials if one.measurement is not None]
    assert all(one.ci_low < one.mean < one.ci_high for one in measured if one.ci_low is not None)
    assert any(one.ci_low is not None for one in measured)


@pytest.mark.parametrize("told", [float("nan"), "fast", None, {"value": [1, 2]}, {"value": float("inf")}])
def test_what_is_no_number_is_a_failure_never_a_score(history, told):
    with pytest.raises(ascar.WorkError, match=r"must be a finite number"):
        ascar.tune(lambda configuration: told, SPACE, budget="5 s", history=history)


def test_a_function_needs_its_space_and_a_study_none(history):
    with pytest.raises(ascar.InputError, match="^space: missing; give the configurations"):
        ascar.tune(speed)
    with pytest.raises(ascar.InputError, match="a study has its own"):
        ascar.tune(SIMULATED, SPACE)
    with pytest.raises(ascar.InputError, match="'throughput'.*reports value|value"):
        ascar.tune(speed, SPACE, "maximize throughput", budget="5 s", history=history)


def test_a_study_is_tuned_from_tables_a_file_or_itself(tmp_path, history):
    study = ascar.Study.of(SIMULATED)
    file = tmp_path / "study.toml"
    file.write_text(study.text)
    outcomes = [ascar.tune(source, history=history) for source in (SIMULATED, study, file, str(file))]
    assert len({one.recommended for one in outcomes}) == 1
    assert {one.verdict.kind for one in outcomes} == {"improved"}
    assert ascar.Study.of(file).digest == study.digest


def test_keys_given_in_the_call_replace_those_of_the_study(history):
    outcome = ascar.tune(SIMULATED, budget="20 min", stop={"trials": 5}, history=history)
    assert sum(trial.purpose is Purpose.SEARCH for trial in outcome.trials) <= 5
    study = ascar.Study.of(SIMULATED, study={"seed": 9})
    assert (study.seed, study.name) == (9, "cache")


def test_errors_are_those_of_the_command_line(tmp_path, ascar_command):
    file = tmp_path / "study.toml"
    file.write_text(
        '[study]\nname = "x"\nobjective = "maximize a"\nbudgt = "1 min"\n[target]\nkind = "simulated"\n'
    )
    with pytest.raises(StudyError) as told:
        ascar.tune(file)
    assert f"error: {told.value.message}" in ascar_command("tune", file)
    with pytest.raises(StudyError, match="use numbers, texts, booleans"):
        ascar.Study.of({"study": {"name": object()}})


def test_a_study_of_a_function_says_that_only_python_can_run_it(history, tmp_path, ascar_command):
    ascar.tune(speed, SPACE, budget="5 s", stop={"trials": 3}, history=history)
    file = tmp_path / "study.toml"
    file.write_text(history.run("speed").study.text)
    with pytest.raises(StudyError, match="the Python function speed cannot be found from here"):
        ascar.tune(file)


def test_an_unfinished_function_study_goes_on(history):
    calls = 0

    def interrupted(configuration):
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return configuration["depth"]

    options = {"budget": "1 min", "stop": {"trials": 10}, "history": history, "study": {"seed": 5}}
    with pytest.raises(KeyboardInterrupt):
        ascar.tune(interrupted, SPACE, **options)
    outcome = ascar.tune(interrupted, SPACE, resume=True, **options)
    assert len({trial.number for trial in outcome.trials}) == len(outcome.trials)
    assert outcome.trials[5].state is ascar.TrialState.INTERRUPTED


def test_progress_is_shown_where_it_is_wanted(history, capsys):
    options = {"budget": "5 s", "stop": {"trials": 3}, "history": history}
    ascar.tune(speed, SPACE, **options)
    assert capsys.readouterr().err == ""
    ascar.tune(speed, SPACE, progress=True, **options)
    said = capsys.readouterr().err
    assert "study speed, run 2" in said
    assert "trial 1 (default)" in said
    ascar.tune(speed, SPACE, progress=False, **options)
    assert capsys.readouterr().err == ""


def test_it_shows_itself_in_a_notebook(history):
    page = ascar.tune(speed, SPACE, budget="1 min", stop={"trials": 20}, history=history)._repr_html_()
    assert "than the default" in page
    assert "Recommended configuration" in page
    assert page.count("<svg") == 2
    assert "<script" not in page


def test_optimizers_are_asked_and_told():
    for name in ("RandomSearch", "SimulatedAnnealing", "GaussianSearch"):
        optimizer = getattr(ascar.optimizers, name)(SPACE, seed=1)
        for _ in range(5):
            configuration = optimizer.ask()
            assert SPACE.is_valid(configuration)
            optimizer.tell(ascar.Evaluation(configuration, ascar.TrialState.COMPLETE, -speed(configuration)))
