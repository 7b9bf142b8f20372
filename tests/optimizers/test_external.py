"""An optimizer in a program of its own: the contract, and what becomes of one that misbehaves."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks, Exhausted, StudyError
from ascar.history import History
from ascar.loops.offline import tune
from ascar.optimizers import Evaluation
from ascar.optimizers.external import External
from ascar.results.trial import TrialState
from ascar.study import Study
from ascar.testing.optimizers import OptimizerContract
from ascar.testing.spaces import tiny

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = Path(__file__).with_name("external_program.py")


class TestExternal(OptimizerContract):
    make = External
    options = MappingProxyType({"command": [sys.executable, str(PROGRAM)]})


@pytest.fixture
def external() -> Callable[..., External]:
    def of(manner: str, **options: Any) -> External:
        return External(tiny(), options={"command": [sys.executable, str(PROGRAM), manner], **options})

    return of


def test_it_is_told_everything_before_it_is_asked(external: Callable[..., External]) -> None:
    optimizer, space = external("good"), tiny()
    for configuration in list(space.enumerate())[:3]:
        optimizer.tell(Evaluation(configuration, TrialState.COMPLETE, 1.0))
    known = set(list(space.enumerate())[:3])
    assert optimizer.ask() not in known
    assert optimizer.reason == "number 1"


def test_what_the_space_does_not_have_is_refused_and_asked_for_again(
    external: Callable[..., External],
) -> None:
    assert external("wrong once").ask() in set(tiny().enumerate())


@pytest.mark.parametrize(
    ("manner", "words"),
    [
        ("wrong", "proposed 10 times what the space does not have"),
        ("word", "proposed 10 times what the space does not have"),
        ("error", "out of ideas"),
        ("dies", "has ended"),
        ("babbles", "does not work any more"),
    ],
)
def test_one_that_misbehaves_ends_the_search_in_order(
    external: Callable[..., External], manner: str, words: str
) -> None:
    optimizer = external(manner)
    with pytest.raises(Exhausted) as caught:
        optimizer.ask()
    assert words in caught.value.message, caught.value.message


def test_one_that_does_not_answer_is_killed(
    external: Callable[..., External], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ascar.program.lines._END_S", 0.2)
    optimizer = external("slow")
    program = optimizer._running()
    program._answer_s = 0.2  # only now: its start takes a busy machine longer
    with pytest.raises(Exhausted, match="does not answer within 0.2 s"):
        optimizer.ask()
    program.close()
    assert program._process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "optimizer.command: missing"),
        ({"command": []}, "optimizer.command: must name a program"),
        ({"command": ["a\0"]}, "optimizer.command: must name a program"),
        ({"command": ["x"], "answer_s": 0}, "optimizer.answer_s"),
        ({"command": "x"}, "optimizer.command"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        External(tiny(), options=options)
    assert words in caught.value.message, caught.value.message


def test_a_program_that_is_not_there_is_named_when_it_is_needed() -> None:
    optimizer = External(tiny(), options={"command": ["/no/such/program"]})
    with pytest.raises(EnvironmentLacks, match="optimizer.command = '/no/such/program'"):
        optimizer.ask()


STUDY = f"""
[study]
name = "external"
objective = "maximize ops_per_s"
budget = "2 min"
[target]
kind = "simulated"
metrics = {{ ops_per_s = "100 + depth" }}
noise_relative_sd = 0.01
[space.parameters.depth]
kind = "integer"
low = 1
high = 64
default = 8
cost = "dyn-app"
[optimizer]
kind = "external"
command = ["{sys.executable}", "./optimizer.py", "MANNER"]
[stop]
trials = 5
"""


@pytest.mark.parametrize(("manner", "stopped"), [("good", "5"), ("dies", "has ended")])
def test_a_study_searches_with_it_and_keeps_what_it_has(
    manner: str, stopped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCAR_HISTORY", str(tmp_path / "history.sqlite"))
    (tmp_path / "optimizer.py").write_text(PROGRAM.read_text())
    (tmp_path / "study.toml").write_text(STUDY.replace("MANNER", manner))
    with History() as history:
        outcome = tune(Study.read(tmp_path / "study.toml"), history)
    assert stopped in outcome.stopped
    assert outcome.default is not None and outcome.default.score is not None
