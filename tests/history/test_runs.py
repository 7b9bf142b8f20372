"""Begin, go on, end, list, purge."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from ascar.errors import HistoryError, InputError, Refused, StudyError
from ascar.history import History, RunState, default_path
from ascar.results.encode import json_ready
from ascar.results.outcome import Outcome
from ascar.results.trial import Failure, Purpose, TrialState
from ascar.results.verdict import Verdict
from ascar.space import Configuration
from ascar.study import Study

VERDICT = Verdict("improved", 0.5, 0.4, 0.6, 1e-5, 3, (3.0, 3.1, 2.9), (2.0, 2.1, 1.9), 0.01, "Welch")


@pytest.fixture
def default(space) -> Configuration:
    return space.default()


def outcome_of(run, trials, best) -> Outcome:
    return Outcome(
        run_id=run.id,
        study=run.name,
        best=best,
        default=trials[0],
        recommended=best.configuration,
        verdict=VERDICT,
        stage_s={"load": 4.0, "other": 1.5},
        counts={TrialState.COMPLETE: 2},
        stopped="2 trials were made",
        machine=run.machine,
    )


def test_an_outcome_is_rebuilt_from_the_history(history, study, space, default, configuration, make):
    with history.begin(study, space, {"kernel": "6.1", "memory_bytes": 1}) as run:
        run.finish_trial(make.complete(1, default, 100, Purpose.DEFAULT))
        run.finish_trial(make.complete(2, configuration, 200))
        trials = run.trials(readings=False)
        outcome = outcome_of(run, trials, trials[1])
        run.finish(outcome)
    read = history.run("mail.server_1")
    assert read.state is RunState.COMPLETE
    assert json_ready(read.outcome()) == json_ready(outcome)
    assert read.outcome().verdict == VERDICT
    assert read.outcome().recommended == configuration
    assert read.study == study
    assert read.space == space
    assert read.objective == study.objective


def test_an_unfinished_run_has_an_outcome_that_claims_nothing(
    history, study, space, default, configuration, make
):
    with history.begin(study, space, {}) as run:
        run.finish_trial(make.complete(1, default, 100, Purpose.DEFAULT))
        run.finish_trial(replace(make.complete(2, configuration, 500), unmet=("latency_ms_p99 <= 1",)))
        run.finish_trial(make.complete(3, configuration, 200))
        run.finish_trial(make.complete(4, configuration, 900, Purpose.VERIFY))
    outcome = history.run(run.id).outcome()
    assert outcome.verdict.kind == "not-verified"
    assert outcome.recommended == default
    assert outcome.best is not None
    assert outcome.best.number == 3
    assert outcome.stage_s["load"] == 8.0


def test_a_run_without_trials_has_an_outcome(history, study, space):
    with history.begin(study, space, {}):
        pass
    outcome = history.run(study.name).outcome()
    assert (outcome.best, outcome.default, outcome.recommended) == (None, None, space.default())
    assert not outcome.counts


def test_minimizing_turns_the_best_round(history, space, default, make):
    text = '[study]\nname = "m"\nobjective = "minimize latency_ms"\nbudget = "1 min"\n[target]\n'
    study = Study.parse(text)
    with history.begin(study, space, {}) as run:
        for number, score in enumerate([5.0, 7.0, 3.0, 4.0, 1.0], start=1):
            trial = make.complete(number, default, score)
            run.finish_trial(replace(trial, unmet=("x",)) if score == 1.0 else trial)
        steps = run.best_so_far()
    assert [(step.number, step.score) for step in steps] == [(1, 5.0), (3, 3.0)]
    assert steps[1].elapsed_s == pytest.approx(3 * 2.6)
    assert history.runs("m")[0].best_score == 3.0
    outcome = history.run("m").outcome()
    assert outcome.best is not None
    assert outcome.best.score == 3.0


def test_resume_goes_on_where_it_was_left(history, study, space, configuration, make):
    with history.begin(study, space, {"kernel": "6.1"}) as run:
        assert run.next_number() == 1
        run.finish_trial(make.complete(1, configuration))
        run.start_trial(make.running(2, configuration))
    assert run.state is RunState.INTERRUPTED
    with history.resume(study) as again:
        assert again.id == run.id
        assert again.state is RunState.RUNNING
        assert [trial.state for trial in again.trials()] == [TrialState.COMPLETE, TrialState.INTERRUPTED]
        assert again.crashed() == []
        assert again.crash_count(configuration) == 0
        assert again.next_number() == 3
        assert again.machine == {"kernel": "6.1"}


def test_a_comment_does_not_make_another_study(history, study, space):
    with history.begin(study, space, {}) as run:
        pass
    with history.resume(Study.parse("# a comment\n" + study.text)) as again:
        assert again.id == run.id


def test_resume_refuses_a_changed_study_and_names_the_key(history, study, space):
    with history.begin(study, space, {}) as run:
        pass
    changed = Study.parse(study.text.replace("noise = 0.1", "noise = 0.2").replace("10 min", "20 min"))
    with pytest.raises(StudyError) as refused:
        history.resume(changed)
    assert "noise: was 0.1, is now 0.2" in refused.value.message
    assert "budget" not in refused.value.message
    assert f"run {run.id}" in refused.value.message
    added = Study.parse(study.text + "[optimizer]\nkind = 'random'\n")
    with pytest.raises(StudyError, match=re.escape("optimizer.kind: was absent, is now 'random'")):
        history.resume(added)
    assert history.runs()[0].state is RunState.INTERRUPTED


def test_resume_takes_another_budget_stop_and_verify(history, study, space):
    with history.begin(study, space, {}) as run:
        pass
    longer = Study.parse(
        study.text.replace("10 min", "20 min") + "[stop]\ntrials = 3\n[verify]\nmargin = 0.1\n"
    )
    with history.resume(longer) as again:
        assert again.id == run.id
        assert again.study.budget_s == 1200
    assert history.run(run.id).text == longer.text


def test_resume_needs_something_to_go_on_with(history, study, space):
    with pytest.raises(StudyError, match="no run to go on with"):
        history.resume(study)
    with history.begin(study, space, {}):  # the refusal gave the lock back
        pass


def test_a_complete_run_goes_on_and_keeps_what_it_came_to_until_it_ends_again(history, study, space):
    with history.begin(study, space, {}) as run:
        run.finish(replace(run.outcome(), stopped="first"))
    with history.resume(study) as again:
        assert (again.id, again.state, again.outcome().stopped) == (run.id, RunState.RUNNING, "first")
    assert (history.run(run.id).state, history.run(run.id).outcome().stopped) == (
        RunState.INTERRUPTED,
        "first",
    )


def test_resume_takes_the_latest(history, study, space):
    ids = []
    for _ in range(3):
        with history.begin(study, space, {}) as run:
            ids.append(run.id)
    with history.resume(study) as again:
        assert again.id == ids[-1]


def test_a_crash_of_the_machine_is_told_from_a_killed_loop(path, clock, study, space, configuration, make):
    with History(path, clock.moment()) as history:
        run = history.begin(study, space, {})
        run.finish_trial(make.complete(1, configuration))
        run.start_trial(make.running(2, configuration))
        history._runs.clear()  # neither closed nor finished, as after a power cut
        run._lock.release()
    other = Configuration({"fs": "ext4", "read_ahead_kb": 128})
    for crash in (1, 2):
        clock.boot_id = f"boot-{crash + 1}"
        with History(path, clock.moment()) as history:
            run = history.resume(study)
            assert run.crashed() == [configuration]
            assert run.crash_count(configuration) == crash
            assert run.crash_count(other) == 0
            last = run.trials()[-1]
            assert last.state is TrialState.INTERRUPTED
            assert last.failure is not None
            assert last.failure.stage == "machine"
            run.start_trial(make.running(run.next_number(), configuration))
            history._runs.clear()
            run._lock.release()
    clock.boot_id = "boot-4"
    with History(path, clock.moment()) as history, history.resume(study) as run:
        assert run.crash_count(configuration) == 3
        quarantined = replace(
            make.running(run.next_number(), configuration),
            state=TrialState.QUARANTINED,
            failure=Failure("machine", "the machine went down"),
        )
        run.start_trial(quarantined)
        run.finish_trial(quarantined)
        assert run.crashed() == []  # dealt with


def test_a_loop_killed_on_the_same_boot_is_no_crash(path, clock, study, space, configuration, make):
    with History(path, clock.moment()) as history:
        run = history.begin(study, space, {})
        run.start_trial(make.running(1, configuration))
        history._runs.clear()
        run._lock.release()
    with History(path, clock.moment()) as history:
        assert history.runs()[0].state is RunState.INTERRUPTED  # it says running, but nobody runs it
        with history.resume(study) as run:
            assert run.trials()[0].failure is None
            assert run.crashed() == []


def test_an_error_leaves_the_run_interrupted_and_comes_through(history, study, space, configuration, make):
    with pytest.raises(KeyboardInterrupt), history.begin(study, space, {}) as run:
        run.start_trial(make.running(1, configuration))
        raise KeyboardInterrupt
    assert run.state is RunState.INTERRUPTED
    assert run.trials()[0].state is TrialState.INTERRUPTED


def test_closing_twice_does_nothing_more(history, study, space):
    run = history.begin(study, space, {})
    run.finish(run.outcome())
    run.close()
    run.close()
    assert run.state is RunState.COMPLETE


def test_a_closed_run_is_not_written_to(history, study, space, configuration, make):
    with history.begin(study, space, {}) as run:
        pass
    for write in (
        lambda: run.start_trial(make.running(1, configuration)),
        lambda: run.finish_trial(make.complete(1, configuration)),
        lambda: run.finish(run.outcome()),
        lambda: history.run(run.id).finish(run.outcome()),
    ):
        with pytest.raises(AssertionError, match="begun or resumed"):
            write()


def test_a_number_is_given_once(history, study, space, configuration, make):
    with history.begin(study, space, {}) as run:
        run.start_trial(make.running(1, configuration))
        with pytest.raises(HistoryError):
            run.start_trial(make.running(1, configuration))


def test_trials_being_run_are_not_among_the_ended(history, study, space, configuration, make):
    with history.begin(study, space, {}) as run:
        run.start_trial(make.running(1, configuration))
        assert run.trials() == []
        found = run.trial(1)
        assert found is not None
        assert found.state is TrialState.RUNNING
        assert found.started_at.startswith("2026-01-01T")
        assert run.trial(2) is None


def test_listing(history, study, space, default, configuration, make):
    assert history.runs() == []
    with history.begin(study, space, {}) as first:
        first.finish_trial(make.complete(1, configuration, 50))
        failed = replace(
            make.running(2, configuration), state=TrialState.FAILED, failure=Failure("load", "x")
        )
        first.finish_trial(failed)
        first.finish(first.outcome())
    second = history.begin(study, space, {})
    latest, earliest = history.runs()
    assert (latest.id, latest.state, latest.pid is not None) == (second.id, RunState.RUNNING, True)
    assert (earliest.state, earliest.pid, earliest.best_score) == (RunState.COMPLETE, None, 50)
    assert earliest.counts == {TrialState.COMPLETE: 1, TrialState.FAILED: 1}
    assert earliest.finished_at > earliest.started_at
    assert history.runs("nobody") == []


def test_runs_are_found_by_id_and_by_name(history, space):
    named_like_a_number = Study.parse(
        '[study]\nname = "77"\nobjective = "maximize x"\nbudget = "1 s"\n[target]\n'
    )
    with history.begin(named_like_a_number, space, {}) as run:
        pass
    assert history.run(run.id).id == history.run(str(run.id)).id == history.run("77").id == run.id
    for unknown in (99, "99", "nobody", "9" * 30, "", "x' OR 1=1 --"):
        with pytest.raises(InputError, match="not in the history"):
            history.run(unknown)


def test_an_empty_history_says_so(history):
    with pytest.raises(InputError, match="nothing yet"):
        history.run("x")


def test_purge_removes_all_or_nothing(history, study, space, configuration, make, path):
    ids = []
    for kernel in ("5", "6"):
        with history.begin(study, space, {"kernel": kernel}) as run:
            run.finish_trial(make.complete(1, configuration))
            ids.append(run.id)
    with pytest.raises(InputError, match="run 99"):
        history.purge([ids[0], 99])
    assert len(history.runs()) == 2
    assert history.purge([ids[0], ids[0]]) == 1
    assert [run.id for run in history.runs()] == [ids[1]]
    with history._database.read() as connection:
        for table in ("run", "trial", "metric", "reading", "machine"):
            rows = connection.exec_driver_sql(f"SELECT * FROM {table}").all()
            assert len(rows) == (2 if table == "metric" else 1), table
    with pytest.raises(HistoryError, match="purged"):
        run_of_old = history.run(ids[1])
        history.purge([ids[1]])
        _ = run_of_old.state
    with history.begin(study, space, {}) as new:
        assert new.id > max(ids)  # an id never comes to mean another run


def test_a_run_under_way_is_not_purged(history, study, space):
    with history.begin(study, space, {}) as run, pytest.raises(Refused, match="running it"):
        history.purge([run.id])
    assert history.purge([run.id]) == 1


def test_the_same_machine_is_described_once(history, study, space):
    for _ in range(2):
        with history.begin(study, space, {"kernel": "6.1", "cpus": 2}):
            pass
    with history._database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM machine").scalar() == 1
    assert list(history.run(study.name).machine) == ["kernel", "cpus"]


def test_where_the_history_is(monkeypatch, tmp_path):
    monkeypatch.setenv("ASCAR_HISTORY", str(tmp_path / "x.sqlite"))
    assert default_path() == tmp_path / "x.sqlite"
    with History():
        assert (tmp_path / "x.sqlite").exists()
    monkeypatch.setenv("ASCAR_HISTORY", "postgresql+psycopg://user@host/ascar")
    assert default_path() == "postgresql+psycopg://user@host/ascar"
    monkeypatch.delenv("ASCAR_HISTORY")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "ascar" / "history.sqlite"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_path() == tmp_path / "home" / ".local" / "state" / "ascar" / "history.sqlite"


def test_what_is_public_is_listed():
    import ascar.history

    public = {name for name in vars(ascar.history) if not name.startswith("_")}
    modules = {path.stem for path in Path(ascar.history.__file__).parent.glob("*.py")}
    assert set(ascar.history.__all__) == public - modules
