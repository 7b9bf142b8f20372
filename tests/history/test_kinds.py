"""Sessions and searches for rules are runs of the same history."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import msgspec
import pytest

from ascar.errors import HistoryError, InputError, Refused
from ascar.history import BegunRun, History, RunKind, RunState
from ascar.results.rule_search import RuleVerification, SharpSearchResult
from ascar.results.rule_sets import RuleSetResult, SharpLearnResult
from ascar.results.session import SessionOutcome
from ascar.space import Space

OUTCOME = SessionOutcome(
    session="mail.server_1",
    study="mail.server_1",
    seconds=12.5,
    stopped="time",
    setting={"vm.dirty_ratio": 5},
    defaults={"vm.dirty_ratio": 20},
    proof=None,
    broken_pairs=0,
    restarts={"agent": 0},
    verdicts={"applied": 3},
    refusals={},
    first_tick=4,
    last_tick=40,
)
NOTHING = dict.fromkeys(
    (
        *("best_mean", "default_mean", "difference", "difference_low", "difference_high"),
        *("gain_relative", "gain_low", "gain_high", "p_value"),
    )
)
RESULT = SharpSearchResult(
    scenario="random-write",
    also=0,
    first_in=None,
    first_evaluations=0,
    objective="maximize throughput_mb_per_s",
    schedule="sharp",
    stopped="evaluations",
    evaluations=30,
    epochs=2,
    rounds=3,
    elapsed_s=1.5,
    best=None,
    course=(),
    verification=RuleVerification(kind="not-verified", **NOTHING, pairs=0, note="too few"),
    out="rules.txt",
)

LEARNED = SharpLearnResult(
    objective="maximize throughput_mb_per_s",
    ticks=100,
    settings=7,
    before="a" * 12,
    rules="b" * 12,
    rule_set=RuleSetResult(updates_per_second=0, rules=()),
    improved=True,
    gain_relative=0.2,
    gain_low=0.1,
    gain_high=0.3,
    difference=20.0,
    difference_low=10.0,
    difference_high=30.0,
    pairs=9,
)
CONCLUSIONS = {RunKind.SESSION: OUTCOME, RunKind.SEARCH: RESULT, RunKind.LEARNING: LEARNED}


def begun(kind=RunKind.SESSION, name="mail.server_1", place="/a"):
    digest = hashlib.sha256(place.encode()).hexdigest()
    return BegunRun(kind, name, digest, "maximize throughput_ops_per_s", 7, "text", Space())


@pytest.mark.parametrize(("kind", "conclusion"), CONCLUSIONS.items())
def test_what_it_came_to_is_read_back(history, kind, conclusion):
    with history.recording(begun(kind), {"kernel": "6.1"}) as run:
        assert history.run(run.id, None).conclusion() is None
        run.conclude(conclusion)
    found = history.run(run.id, kind)
    assert found.conclusion() == conclusion
    assert (found.kind, found.state, found.machine) == (kind, RunState.COMPLETE, {"kernel": "6.1"})
    (listed,) = history.runs()
    assert (listed.kind, listed.name, listed.state) == (kind, "mail.server_1", RunState.COMPLETE)


def test_learned_rules_that_broke_a_bound_are_listed_by_that(history):
    broken = msgspec.structs.replace(LEARNED, improved=False, broken="group_share_min = 0.7: must be >= 0.9")
    with history.recording(begun(RunKind.LEARNING), {}) as run:
        run.conclude(broken)
    (listed,) = history.runs()
    assert (listed.verdict.kind, listed.verdict.note) == ("not-verified", broken.broken)


def test_a_study_and_a_session_of_one_name_are_told_apart(history, study, space):
    with history.begin(study, space, {}) as first, history.recording(begun(), {}) as second:
        second.conclude(OUTCOME)
    assert history.run(study.name).id == first.id
    assert history.run(study.name, None).id == second.id
    with pytest.raises(InputError, match=f"run {second.id}: is a session, where a study is wanted"):
        history.run(second.id)
    with history.resume(study) as again:
        assert again.id == first.id


def test_bad_input_leaves_no_run_and_an_interruption_leaves_one(history):
    with pytest.raises(InputError), history.recording(begun(), {}):
        raise InputError("no")
    assert history.runs() == []
    with pytest.raises(KeyboardInterrupt), history.recording(begun(), {}):
        raise KeyboardInterrupt
    (left,) = history.runs()
    assert left.state is RunState.INTERRUPTED


def test_an_interrupted_search_goes_on_in_its_own_run_and_survives_bad_input(history):
    search = begun(RunKind.SEARCH, "rules.txt")
    with pytest.raises(KeyboardInterrupt), history.recording(search, {}):
        raise KeyboardInterrupt
    with pytest.raises(InputError), history.recording(search, {}, go_on=True):
        raise InputError("of another search")
    with history.recording(search, {}, go_on=True) as run:
        run.conclude(RESULT)
    with history.recording(search, {}, go_on=True) as another:
        assert another.id != run.id, "a search that has ended does not go on"
    assert [one.id for one in history.runs()] == [another.id, run.id]


def test_the_same_place_is_locked_and_another_is_not(history, path, clock):
    with history.recording(begun(), {}), History(path, clock.moment()) as second:
        with pytest.raises(Refused, match="session 'mail.server_1': process .* has been running it"):
            second.begin_run(begun(), {})
        with second.recording(begun(place="/b"), {}):
            pass


KILLED = """
import os, sys
from pathlib import Path
from ascar.history import BegunRun, History, RunKind
from ascar.space import Space

begun = BegunRun(RunKind.SESSION, "mail", "d" * 64, "maximize ops", 7, "text", Space())
with History(Path(sys.argv[1])) as history, history.recording(begun, {}):
    os.kill(os.getpid(), 9)
"""


def test_one_that_was_killed_is_interrupted(path):
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -9
    with History(path) as history:
        (left,) = history.runs()
        assert left.state is RunState.INTERRUPTED
        assert history.purge([left.id]) == 1


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_all_kinds_are_exported_and_imported(history, study, space, configuration, make, tmp_path, suffix):
    with history.begin(study, space, {}) as run:
        run.finish_trial(make.complete(1, configuration))
    for kind, conclusion in CONCLUSIONS.items():
        with history.recording(begun(kind, kind.value), {}) as run:
            run.conclude(conclusion)
    file = tmp_path / f"all.{suffix}"
    history.export([1, 2, 3, 4], file)
    with History(tmp_path / "other.sqlite") as other:
        assert other.import_runs(file) == [1, 2, 3, 4]
        assert [other.run(number, None).kind for number in (1, 2, 3, 4)] == list(RunKind)
        assert other.run(2, None).conclusion() == OUTCOME
        assert other.run(3, None).conclusion() == RESULT
        assert other.run(4, None).conclusion() == LEARNED
        assert {one.id: one.verdict.kind for one in other.runs() if one.verdict}[4] == "improved"


def test_a_conclusion_of_another_shape_is_refused_and_named(history, tmp_path):
    with history.recording(begun(), {}) as run:
        run.conclude(OUTCOME)
    history.export([run.id], tmp_path / "one.json")
    document = json.loads((tmp_path / "one.json").read_text())
    document["runs"][0]["outcome"]["seconds"] = "long"
    (tmp_path / "one.json").write_text(json.dumps(document))
    with History(tmp_path / "other.sqlite") as other:
        with pytest.raises(InputError, match="seconds"):
            other.import_runs(tmp_path / "one.json")
        assert other.runs() == []
    with history._database.write() as connection:
        connection.exec_driver_sql("UPDATE run SET outcome = '[1]'")
    with pytest.raises(HistoryError, match="put back a copy"):
        history.run(run.id, None).conclusion()
    assert history.runs() == []
    assert [(one.id, one.damage) for one in history.listed()] == [(run.id, (f"run {run.id} ({run.name})",))]


def test_the_trials_of_a_study_keep_who_proposed_them(history, study, space, configuration, make):
    from ascar.results.trial import Origin

    proposed = msgspec.structs.replace(
        make.complete(1, configuration), origin=Origin.EXTERNAL, reason="the neighbour of the best"
    )
    with history.begin(study, space, {}) as run:
        run.finish_trial(proposed)
        (found,) = run.trials()
        assert (found.origin, found.reason) == (Origin.EXTERNAL, "the neighbour of the best")
