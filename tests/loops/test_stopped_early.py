"""An interrupt in the middle of the reduction: what is proven is told, kept, and gone on from."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from ascar.history import History
from ascar.loops.offline import tune
from ascar.results.outcome import StoppedEarly
from ascar.results.trial import Purpose
from ascar.study import Study
from studies import HELPS_TOGETHER as STUDY


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "history.sqlite") as opened:
        yield opened


class _Stops:
    """A listener that interrupts before the n-th run of the reduction, in each part of the study."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, event):
        if event.kind == "trial-started" and event.trial.purpose is Purpose.REDUCE:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt


def changed(configuration):
    return {name for name, value in configuration.items() if value != 0}


@pytest.mark.parametrize("after", [0, 3, 10, 26, 45])
def test_what_is_proven_is_told_by_the_interrupt_and_is_in_the_history(history, after):
    study = Study.parse(STUDY)
    with pytest.raises(StoppedEarly) as caught:
        tune(study, history, listener=_Stops(after))
    told = caught.value.outcome
    run = history.run(told.run_id)
    kept = run.outcome()
    assert run.state == "interrupted"
    assert told.verdict.kind == kept.verdict.kind == "improved"
    assert told.recommended == kept.recommended
    assert told.parsimony == kept.parsimony
    assert told.parsimony is not None
    assert "the run was stopped before" in told.parsimony.note
    proven = any(step.accepted for step in told.parsimony.steps)
    assert told.parsimony.recommended == proven
    assert not (proven and after < 6)  # three pairs prove the first step at the earliest
    assert proven or after < 26
    if not proven:
        assert dict(told.recommended) == told.parsimony.best
    else:
        assert {"p2", "p5"} <= changed(told.recommended) < changed(told.parsimony.best)
    # Only what was proven is claimed: each step that was accepted has its interval within the margin.
    for step in told.parsimony.steps:
        assert not step.accepted or (step.gain_low is not None and step.gain_low > -told.parsimony.margin)
    assert sum(told.counts.values()) == len(run.trials(readings=False)) - 1  # less the interrupted one


def test_stopped_again_and_again_it_comes_to_the_same_with_no_run_made_twice(history):
    whole = tune(Study.parse(STUDY.replace('"stopped"', '"whole"')), history)
    assert whole.parsimony is not None
    for part in range(3):
        with pytest.raises(StoppedEarly):
            tune(Study.parse(STUDY), history, resume=part > 0, listener=_Stops(12))
    outcome = tune(Study.parse(STUDY), history, resume=True)
    assert outcome.parsimony is not None
    assert outcome.parsimony.kept == whole.parsimony.kept
    assert outcome.parsimony.recommended
    assert "stopped" not in outcome.parsimony.note
    run = history.run(outcome.run_id)
    numbers = [one.number for one in run.trials(readings=False)]
    assert len(numbers) == len(set(numbers))
    # A level is spent once, however often the chain was gone on with.
    assert sum((1 - step.confidence) / 2 for step in outcome.parsimony.steps) <= 0.01 + 1e-9
    again = tune(Study.parse(STUDY), history, resume=True)
    assert again.recommended == outcome.recommended
    assert again.parsimony is not None
    assert again.parsimony.steps == outcome.parsimony.steps
    assert len(run.trials(readings=False)) == len(numbers)


_KILLED = """
import os, signal, sys
from pathlib import Path
from ascar.history import History
from ascar.loops.offline import tune
from ascar.results.trial import Purpose
from ascar.study import Study

left = int(sys.argv[3])

def die(event):
    global left
    if event.kind == "trial-finished" and event.trial.purpose is Purpose.REDUCE:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

with History(Path(sys.argv[2])) as history:
    tune(Study.read(Path(sys.argv[1])), history, resume=sys.argv[4] == "resume", listener=die)
"""


@pytest.mark.slow
def test_killed_twice_in_mid_chain_it_goes_on_from_what_is_proven(tmp_path):
    study, path = tmp_path / "study.toml", tmp_path / "history.sqlite"
    study.write_text(STUDY)
    made: list[int] = []
    for after, how in (("11", "anew"), ("8", "resume")):
        done = subprocess.run([sys.executable, "-c", _KILLED, study, path, after, how], check=False)
        assert done.returncode == -signal.SIGKILL
        with History(path) as history:
            run = history.run(1)
            kept = run.outcome()
            made.append(len(run.trials(readings=False)))
        assert kept.verdict.kind == "improved"
        assert {"p2", "p5"} <= changed(kept.recommended)
    assert made[1] == made[0] + 8
    with History(path) as history:
        outcome = tune(Study.read(study), history, resume=True)
        assert outcome.run_id == 1
        assert outcome.parsimony is not None
        assert set(outcome.parsimony.kept) == {"p2", "p5"}
