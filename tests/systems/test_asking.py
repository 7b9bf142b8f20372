"""Systems that lie, break, or tell garbage: the trial fails by name, and the study goes on."""

from __future__ import annotations

import select
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import StageFailed
from ascar.history import History
from ascar.loops.offline import tune
from ascar.results.trial import Change, TrialState
from ascar.space import ChangeCost, Space, integer
from ascar.study import Study
from ascar.systems import Sample
from ascar.systems.asking import apply_checked, entering, sample_checked
from ascar.systems.limit import OverLimit, time_limit
from ascar.systems.simulated import SimulatedSystem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration, Value

BAD_DEPTH = 3


class Wicked(SimulatedSystem):
    """A system with one bad setting; what is bad about it, `evil` says."""

    call_max_s = 0.5
    evil = ""
    left = 0

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__({"metrics": {"ops_per_s": "100 + depth"}, **options})
        self.space = Space((integer("depth", (1, 4), default=1, cost=ChangeCost.DYN_APP),), name="wicked")

    def __exit__(self, *_: object) -> None:
        type(self).left += 1
        super().__exit__(None, None, None)

    def _is_bad(self) -> bool:
        return self.current["depth"] == BAD_DEPTH

    def apply(self, configuration: Configuration) -> Change:
        change = super().apply(configuration)
        if self.evil == "hangs" and self._is_bad():
            time.sleep(60)
        while self.evil == "insists" and self._is_bad():
            with suppress(Exception):
                time.sleep(60)
        if self.evil == "dies" and self._is_bad():
            raise OSError("the socket is gone")
        return change

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        if self.evil == "lies" and self._is_bad():
            return {"depth": 2}
        if self.evil == "babbles" and self._is_bad():
            return {"breadth": 2}
        return super().read(names)

    def health(self, limit_s: float) -> None:
        if self.evil == "sick" and self._is_bad():
            raise StageFailed("health", f"no answer within {limit_s:g} s")

    def sample(self) -> Sample:
        if self.evil == "garbage" and self._is_bad():
            return Sample({"read_bytes": "many"})  # type: ignore[dict-item]
        if self.evil == "huge" and self._is_bad():
            return Sample({"read_bytes": 10**400})
        if self.evil == "silent" and self._is_bad():
            select.select([], [], [])
        if self.evil == "nan" and self._is_bad():
            return Sample(gauges={"dirty_bytes": float("nan")})
        if self.evil == "owes less than nothing" and self._is_bad():
            return Sample(deferred={"dirty_bytes": -1.0})
        return Sample({"read_bytes": 1.0}, deferred={"dirty_bytes": 0.0})

    def drain(self, limit_s: float) -> None:
        if self.evil == "never drains" and self._is_bad():
            select.select([], [], [])
        if self.evil == "breaks while it drains" and self._is_bad():
            raise OSError("the disk is gone")


EVILS = [
    ("hangs", "apply() of the system took longer than 0.5 s and was interrupted"),
    ("insists", "apply() of the system took longer than 0.5 s and was interrupted"),
    ("silent", "sample() of the system took longer than 0.5 s and was interrupted"),
    ("dies", "apply() of the system raised OSError: the socket is gone"),
    ("lies", "depth = 3 was set, but the system reads back 2"),
    ("babbles", "read() of the system returns 'breadth', which was not asked for"),
    ("sick", "no answer within 60 s"),
    ("garbage", "sample() of the system returns read_bytes = 'many'; must be a finite number"),
    ("huge", "sample() of the system returns read_bytes = 1000000"),
    ("owes less than nothing", "returns deferred dirty_bytes = -1.0; must be 0 or more"),
    ("never drains", "drain() of the system took longer than 0.5 s and was interrupted"),
    ("breaks while it drains", "drain() of the system raised OSError: the disk is gone"),
    ("nan", "sample() of the system returns dirty_bytes = nan; must be a finite number"),
]


@pytest.mark.parametrize(("evil", "said"), EVILS)
def test_the_trial_fails_by_name_and_the_study_goes_on(
    monkeypatch: pytest.MonkeyPatch, evil: str, said: str
) -> None:
    monkeypatch.setattr("ascar.systems.load", lambda *_: Wicked)
    monkeypatch.setattr(Wicked, "evil", evil)
    monkeypatch.setattr(Wicked, "left", 0)
    name = evil.replace(" ", "-")
    study = Study.parse(
        f'[study]\nname = "wicked-{name}"\nobjective = "maximize ops_per_s"\nbudget = "20 min"\nseed = 2\n'
        '[target]\nkind = "simulated"\n[stop]\ntrials = 8\n[optimizer]\nkind = "random"'
    )
    with History() as history:
        found = tune(study, history)
        trials = history.run(found.run_id).trials()
    assert found.counts[TrialState.FAILED] >= 1
    assert found.counts[TrialState.COMPLETE] >= 3
    failures = {trial.failure.message for trial in trials if trial.failure is not None}
    assert len(failures) == 1
    assert said in failures.pop()
    assert all(
        trial.configuration["depth"] == BAD_DEPTH for trial in trials if trial.state is TrialState.FAILED
    )
    assert Wicked.left == 1, "everything is put back once"


def test_what_is_in_force_is_said_without_an_error() -> None:
    with Wicked({}) as system:
        apply_checked(system, system.space.default())
        assert sample_checked(system).counters == {"read_bytes": 1.0}


class Stuck(Wicked):
    """It can be entered, and hangs when it is left."""

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        time.sleep(60)


def test_one_that_hangs_when_it_is_left_is_interrupted_and_what_to_do_is_said() -> None:
    with pytest.raises(StageFailed) as told, entering(Stuck({})):
        pass
    assert told.value.message == (
        "exit: __exit__() of the system took longer than 0.5 s and was interrupted; `ascar restore` puts "
        "back what the keeper changed"
    )


def test_an_error_inside_reaches_the_system_and_goes_on() -> None:
    Wicked.left = 0
    with pytest.raises(KeyError), entering(Wicked({})):
        raise KeyError
    assert Wicked.left == 1


def test_a_limit_leaves_the_timer_and_the_handler_of_others_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 30)
        with time_limit(5):
            pass
        left_s, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        assert 25 < left_s <= 30
        with pytest.raises(OverLimit), time_limit(0.05):
            time.sleep(5)
        assert heard == []
        signal.raise_signal(signal.SIGALRM)
        assert heard == [1]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_in_another_thread_there_is_no_limit() -> None:
    ended: list[bool] = []

    def work() -> None:
        with time_limit(0.01):
            time.sleep(0.1)
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [True]
