"""The library in the offline loop: proven gains are kept in it, and similar loads start from them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ascar import similar_loads
from ascar.errors import InputError
from ascar.history import History
from ascar.library import GainEntry, Library
from ascar.loops.offline import tune
from ascar.prepared_study import Day, PreparedStudy
from ascar.results.trial import Origin
from ascar.space import Space, categorical, integer
from ascar.study import Study
from studies import goals

SPACE = Space((integer("depth", (1, 64), default=1), categorical("mode", ("a", "b"), default="a")))
OBJECTIVE = "maximize value"


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "history.sqlite") as opened:
        yield opened


@pytest.fixture
def path(tmp_path):
    return tmp_path / "library.jsonl"


@pytest.fixture
def on_a_machine(monkeypatch):
    """A function stands for a system of this machine."""
    opened = PreparedStudy.open
    monkeypatch.setattr(
        PreparedStudy, "open", lambda *given, **named: replace(opened(*given, **named), day=Day())
    )


def study(scale=1.0, space=SPACE, **start):
    """A function whose value is five times as large with mode "b"."""
    draw = random.Random(3)

    def value(configuration):
        base = 5.0 if configuration.get("mode", "b") == "b" else 1.0
        return {"value": scale * base * draw.uniform(0.99, 1.01), "size": 100 * scale}

    tables = {"stop": {"trials": 8}, "start": start, "study": {"name": "load", "seed": 1}}
    return Study.of_function(value, space, OBJECTIVE, "20 s", **tables)


def test_a_proven_gain_is_kept_with_its_load_and_what_it_is_valid_for(history, path, on_a_machine):
    outcome = tune(study(), history, library=path)
    kept = Library.read(path)
    (found,) = kept.solutions.values()
    assert (found.kind, found.system, found.objective) == ("configuration", "function", OBJECTIVE)
    assert found.values == dict(outcome.recommended) and found.values["mode"] == "b"
    gain = kept.gain(found.id, found.workload, OBJECTIVE)
    assert gain.gain == outcome.verdict.gain_relative and gain.low > 0
    assert gain.pairs == outcome.verdict.runs_per_side
    signature = kept.workloads[found.workload].values
    assert signature["size"] == pytest.approx(100) and "change_s" not in signature


def test_the_configurations_of_the_most_similar_loads_are_tried_after_the_default(history, path):
    with Library.writing(path) as kept:
        for name, size, depth, low in (
            ("near", 110.0, 7, 0.1),
            ("far", 9e6, 9, 0.1),
            ("nothing gained", 100.0, 11, -0.1),
        ):
            kept.add_workload(name, {"value": 1.0, "size": size})
            found = kept.add_configuration({"depth": depth, "mode": "b"}, name, OBJECTIVE, "function")
            kept.add_gain(GainEntry(found.id, name, OBJECTIVE, 0.5, low, 0.9, 5))
        kept.add_workload("other", {"value": 1.0, "size": 100.0})
        for objective, system, values in (
            ("minimize value", "function", {"depth": 20}),
            (OBJECTIVE, "localfs", {"depth": 21}),
            (OBJECTIVE, "function", {"unrelated": 22}),
        ):
            found = kept.add_configuration(values, "other", objective, system)
            kept.add_gain(GainEntry(found.id, "other", objective, 0.5, 0.1, 0.9, 5))
    outcome = tune(study(library_trials=5), history, library=path)
    trials = history.run(outcome.run_id).trials()
    taken = [trial for trial in trials if trial.origin is Origin.LIBRARY]
    assert [trial.configuration["depth"] for trial in taken] == [7, 9]
    assert [trial.number for trial in taken] == [3, 4], "after two runs of the default"
    assert taken[0].reason.startswith("gained 50.0% on near, at a distance of 0.")


def test_what_is_not_valid_here_gives_way_to_the_nearest_that_is(history, path):
    with Library.writing(path) as kept:
        kept.add_workload("near", {"value": 1.0, "size": 100.0})
        found = kept.add_configuration({"depth": 900, "gone": True}, "near", OBJECTIVE, "function")
        kept.add_gain(GainEntry(found.id, "near", OBJECTIVE, 0.5, 0.1, 0.9, 5))
    outcome = tune(study(library_trials=1), history, library=path)
    (taken,) = [t for t in history.run(outcome.run_id).trials() if t.origin is Origin.LIBRARY]
    assert dict(taken.configuration) == {"depth": 64, "mode": "a"}


def test_without_a_library_a_study_starts_as_ever(history, path):
    outcome = tune(study(library_trials=3), history, library=path)
    assert outcome.verdict.kind == "improved"
    assert all(t.origin is not Origin.LIBRARY for t in history.run(outcome.run_id).trials())


def test_a_damaged_library_is_refused_before_anything_is_tried_but_only_if_it_is_asked_for(
    history, path, on_a_machine
):
    path.write_text("rubbish\n")
    with pytest.raises(InputError, match="line 1"):
        tune(study(library_trials=3), history, library=path)
    assert history.runs() == []
    events = []
    outcome = tune(study(), history, library=path, listener=events.append)
    assert outcome.verdict.kind == "improved"
    (event,) = [one for one in events if one.kind == "not-remembered"]
    assert "line 1" in event.data["reason"] and path.read_text() == "rubbish\n"


def test_a_library_that_another_process_writes_costs_no_study(history, path, monkeypatch, on_a_machine):
    monkeypatch.setattr(similar_loads, "_WAIT_S", 0.2)
    events = []
    with Library.writing(path):
        outcome = tune(study(), history, library=path, listener=events.append)
    assert outcome.verdict.kind == "improved"
    assert [e.kind for e in events if e.kind == "not-remembered"] == ["not-remembered"]
    assert history.run(outcome.run_id).outcome().verdict.kind == "improved"


def test_gains_of_virtual_time_are_not_kept(history, path):
    outcome = tune(Study.parse(goals('"maximize throughput_ops_per_s"')), history, library=path)
    assert outcome.verdict.kind == "improved"
    assert not path.exists()
