"""Systems that lie, break, or tell garbage: the trial fails by name, and the study goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import StageFailed
from ascar.history import History
from ascar.loops.offline import tune
from ascar.results.trial import Change, TrialState
from ascar.space import ChangeCost, Space, integer
from ascar.study import Study
from ascar.systems import Sample
from ascar.systems.asking import apply_checked, sample_checked
from ascar.systems.simulated import SimulatedSystem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration, Value

BAD_DEPTH = 3


class Wicked(SimulatedSystem):
    """A system with one bad setting; what is bad about it, `evil` says."""

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
        if self.evil == "nan" and self._is_bad():
            return Sample(gauges={"dirty_bytes": float("nan")})
        return Sample({"read_bytes": 1.0})


EVILS = [
    ("dies", "apply() of the system raised OSError: the socket is gone"),
    ("lies", "depth = 3 was set, but the system reads back 2"),
    ("babbles", "read() of the system returns 'breadth', which was not asked for"),
    ("sick", "no answer within 60 s"),
    ("garbage", "sample() of the system returns read_bytes = 'many'; must be a finite number"),
    ("nan", "sample() of the system returns dirty_bytes = nan; must be a finite number"),
]


@pytest.mark.parametrize(("evil", "said"), EVILS)
def test_the_trial_fails_by_name_and_the_study_goes_on(
    monkeypatch: pytest.MonkeyPatch, evil: str, said: str
) -> None:
    monkeypatch.setattr("ascar.systems.load", lambda *_: Wicked)
    monkeypatch.setattr(Wicked, "evil", evil)
    monkeypatch.setattr(Wicked, "left", 0)
    study = Study.parse(
        f'[study]\nname = "wicked-{evil}"\nobjective = "maximize ops_per_s"\nbudget = "20 min"\nseed = 2\n'
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
