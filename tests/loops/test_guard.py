"""`[guard]` in the offline loop: what it forbids is not recommended, and trials wait for windows."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from ascar import prepared_study
from ascar.checking import check_study
from ascar.cli.studies import find_space
from ascar.errors import InputError, Refused
from ascar.history import History
from ascar.loops.offline import tune
from ascar.results.trial import Purpose
from ascar.study import Study
from studies import goals

SQLITE = """
[study]
name = "nightly"
objective = "maximize throughput_ops_per_s"
budget = "12 s"
[target]
kind = "sqlite"
[workload]
kind = "sqlite-transactions"
rows = 100
[measurement]
load_min = "200 ms"
load_max = "300 ms"
reading = "100 ms"
[stop]
trials = 4
[verify]
runs_min = 2
runs_max = 2
[[guard.window]]
from = "22:00"
to = "06:00"
"""


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "history.sqlite") as opened:
        yield opened


def test_a_ceiling_excludes_what_is_faster_but_breaks_it(history):
    ceiling = '[[guard.ceiling]]\nmetric = "latency_ms_p99"\nmaximum = 80\n'
    outcome = tune(Study.parse(goals('"maximize throughput_ops_per_s"', rest=ceiling)), history)
    trials = history.run(outcome.run_id).trials()
    too_slow = [trial for trial in trials if trial.metrics["latency_ms_p99"] > 80]
    assert too_slow, "depths above 34 are slower than 80 ms, and were tried"
    assert all(trial.unmet == ("latency_ms_p99 <= 80",) for trial in too_slow)
    assert outcome.recommended["depth"] < 40


def test_a_rule_over_parameters_is_never_tried_and_one_over_metrics_never_recommended(history):
    rules = (
        '[[guard.rule]]\nforbid = "depth > 40 and useless == 2"\nwhy = "it stalls"\n'
        '[[guard.rule]]\nforbid = "depth > 20 and latency_ms_p99 > 80"\nwhy = "too slow"\n'
    )
    outcome = tune(Study.parse(goals('"maximize throughput_ops_per_s"', rest=rules)), history)
    trials = history.run(outcome.run_id).trials()
    assert not [
        one for one in trials if one.configuration["depth"] > 40 and one.configuration["useless"] == 2
    ]
    slow = [one for one in trials if one.configuration["depth"] > 40]
    assert slow
    assert all(one.unmet == ("not (depth > 20 and latency_ms_p99 > 80): too slow",) for one in slow)


def test_a_metric_that_nobody_reports_is_named_at_the_first_trial(history):
    for rest in (
        '[[guard.floor]]\nmetric = "iops"\nminimum = 1\n',
        '[[guard.rule]]\nforbid = "iops < 3"\nwhy = ""\n',
    ):
        with pytest.raises(InputError, match="'iops'.*throughput_ops_per_s"):
            tune(Study.parse(goals('"maximize throughput_ops_per_s"', rest=rest)), history)
    assert not history.runs(), "nothing was tried"


class Clock:
    """A time of the day that stands still but for waits, and moves by hours at each trial."""

    def __init__(self, monkeypatch):
        self.now = datetime(2026, 11, 22, 21, 0).astimezone()
        self.waits: list[tuple[datetime, float]] = []
        monkeypatch.setattr(prepared_study.Day, "time", lambda _: self.now)
        monkeypatch.setattr(prepared_study.Day, "wait", lambda _, seconds: self._wait(seconds))

    def _wait(self, seconds: float) -> None:
        self.waits.append((self.now, seconds))
        self.now += timedelta(seconds=seconds)


@pytest.mark.slow
def test_trials_wait_for_the_window_with_the_default_in_force_and_the_budget_waits_too(history, monkeypatch):
    clock, heard, applied = Clock(monkeypatch), [], []

    def listen(event):
        heard.append(event)
        if event.kind == "trial-started":
            applied.append(clock.now)
            assert clock.now.hour >= 22 or clock.now.hour < 6
        if event.kind == "trial-finished":
            clock.now += timedelta(hours=3)

    outcome = tune(Study.parse(SQLITE), history, listener=listen)
    assert len(applied) == sum(outcome.counts.values()) > 4
    waits = [event.data["until"] for event in heard if event.kind == "waiting"]
    assert waits[0].startswith("2026-11-22 22:00")
    assert len(waits) == len(set(waits)), "each is told once"
    assert len({one.date() for one, _ in clock.waits}) >= 2, "days passed"
    trials = history.run(outcome.run_id).trials()
    assert any(one.purpose is Purpose.VERIFY for one in trials), "and the verification found time"
    assert [one.purpose for one in trials[:2]] == [Purpose.DEFAULT] * 2


def test_a_check_is_refused_outside_of_the_windows(monkeypatch):
    clock = Clock(monkeypatch)
    with pytest.raises(Refused, match=r"guard.window: allows no change before 2026-11-22 22:00"):
        check_study(Study.parse(SQLITE), lambda _: None)
    clock.now = clock.now.replace(hour=23)
    assert check_study(Study.parse(SQLITE), lambda _: None).parameters


def test_a_space_is_shown_without_what_the_guard_forbids(tmp_path):
    file = tmp_path / "study.toml"
    counts = []
    for rest in ("", '[[guard.rule]]\nforbid = "depth > 40"\nwhy = "it stalls"\n'):
        file.write_text(goals(rest=rest))
        counts.append(find_space(str(file)).count())
    assert counts == [64 * 3, 40 * 3]


@pytest.mark.slow
def test_an_interrupt_ends_the_wait_and_the_study_goes_on_later(history, monkeypatch):
    clock = Clock(monkeypatch)

    def interrupted(_, seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(prepared_study.Day, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(Study.parse(SQLITE), history)
    clock.now = clock.now.replace(hour=23)
    assert tune(Study.parse(SQLITE), history, resume=True).counts


def test_simulated_time_has_no_windows(history, monkeypatch):
    Clock(monkeypatch)
    window = '[[guard.window]]\nfrom = "22:00"\nto = "06:00"\n'
    heard = []
    tune(Study.parse(goals(rest=window)), history, listener=lambda event: heard.append(event.kind))
    assert "waiting" not in heard
