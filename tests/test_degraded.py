"""The load once more while a part of the system fails: what is told of it, and what can go wrong."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.degraded import degraded_metrics
from ascar.errors import StageFailed, StudyError
from ascar.history import History
from ascar.loops.offline import tune
from ascar.results.measurement import Readings, Series
from ascar.study import Study
from ascar.systems.simulated import SimulatedSystem
from studies import goals


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Part:
    """A target with a part that fails, as its load sees it."""

    call_max_s = 60.0
    workspace = None

    def __init__(self, clock: Clock, degraded_s: float = 8.0) -> None:
        self.clock, self.degraded_s = clock, degraded_s
        self.done: list[tuple[str, float]] = []

    def degrade(self) -> None:
        self.done.append(("degrade", self.clock()))

    def repair(self) -> None:
        self.done.append(("repair", self.clock()))

    def recover(self) -> None:
        self.done.append(("recover", self.clock()))
        self.clock.now_s += 3.0


class Load:
    """Reads once a second; `hangs_after_s`: it gives no reading from then on."""

    def __init__(self, clock: Clock, hangs_after_s: float = 1e9) -> None:
        self.clock, self.hangs_after_s = clock, hangs_after_s

    def run(self, workspace, pace):
        begun_s, seconds = self.clock(), []
        while (age_s := self.clock() - begun_s) < pace.load_max_s:
            self.clock.now_s += 1.0
            if age_s + 1 > self.hangs_after_s:
                continue
            seconds.append(age_s + 1)
            series = {"rate": Series.of(seconds, np.arange(len(seconds), dtype=float))}
            if pace.asks(seconds[-1]) and pace.may_end(series):
                break
        series = {"rate": Series.of(seconds, np.arange(len(seconds), dtype=float))} if seconds else {}
        return Readings(series, {"latency_ms_p99": 7.0}, self.clock() - begun_s, "time")


def test_a_part_fails_after_the_first_reading_and_comes_back_at_half_time():
    clock = Clock()
    target = Part(clock)
    found = degraded_metrics(target, Load(clock), 1.0, clock)
    assert target.done == [("degrade", 1.0), ("repair", 4.0), ("recover", 8.0)]
    assert found == {"degraded_latency_ms_p99": 7.0, "degraded_rate": 3.5, "recovery_s": 7.0}


def test_a_load_that_hangs_until_the_repair_is_helped_when_it_ends():
    clock = Clock()
    target = Part(clock)
    found = degraded_metrics(target, Load(clock, hangs_after_s=2.0), 1.0, clock)
    assert target.done == [("degrade", 1.0), ("repair", 8.0), ("recover", 8.0)]
    assert found["recovery_s"] == 3.0


def test_a_load_without_a_reading_proves_nothing():
    clock = Clock()
    target = Part(clock)
    with pytest.raises(StageFailed, match="ended before anything could fail"):
        degraded_metrics(target, Load(clock, hangs_after_s=0.0), 1.0, clock)
    assert target.done == []


@pytest.mark.parametrize("method", ["degrade", "repair", "recover"])
def test_what_a_target_raises_fails_the_trial_and_names_the_method(monkeypatch, method):
    clock = Clock()

    def broken(self):
        raise ZeroDivisionError("osd.0")

    monkeypatch.setattr(Part, method, broken)
    with pytest.raises(StageFailed, match=rf"{method}\(\) of the system raised ZeroDivisionError: osd.0"):
        degraded_metrics(Part(clock), Load(clock), 1.0, clock)


def test_where_nothing_fails_the_load_does_not_run_again():
    clock = Clock()
    target = Part(clock, degraded_s=0.0)
    assert degraded_metrics(target, Load(clock), 1.0, clock) == {}
    assert (target.done, clock()) == ([], 0.0)


@pytest.fixture
def failing(monkeypatch):
    """The simulated system with a part that fails."""
    done: list[str] = []
    monkeypatch.setattr(SimulatedSystem, "degraded_s", 4.0, raising=False)
    for method in ("degrade", "repair", "recover"):
        monkeypatch.setattr(
            SimulatedSystem, method, lambda self, method=method: done.append(method), raising=False
        )
    return done


STUDY = goals('"maximize throughput_ops_per_s"', more='constraints = ["degraded_latency_ms_p99 <= 80"]')


def test_a_study_may_bound_what_clients_notice_of_a_failure(failing, tmp_path):
    with History(tmp_path / "history.sqlite") as history:
        outcome = tune(Study.parse(STUDY), history)
        trials = [one for one in history.run(outcome.run_id).trials() if one.score is not None]
    whole = [one for one in trials if "recovery_s" in one.metrics]
    assert whole
    assert all("degraded" in one.stage_s for one in whole)
    assert failing == ["degrade", "repair", "recover"] * (len(failing) // 3)
    slow = [one for one in whole if one.metrics["degraded_latency_ms_p99"] > 80]
    assert slow, "depths above 34 are slower than 80 ms, and were tried"
    assert all(one.unmet == ("degraded_latency_ms_p99 <= 80",) for one in slow)
    assert outcome.recommended["depth"] < 40


def test_without_a_failure_such_a_bound_is_refused_at_once(tmp_path):
    with (
        History(tmp_path / "history.sqlite") as history,
        pytest.raises(
            StudyError, match="needs the metric 'degraded_latency_ms_p99', which this load does not report"
        ),
    ):
        tune(Study.parse(STUDY), history)
