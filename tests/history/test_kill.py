"""kill -9 at any moment loses no completed trial. Real processes, real signals."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from ascar.errors import Refused
from ascar.history import History, RunState
from ascar.results.trial import TrialState
from ascar.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Says a trial's number only once `finish_trial` has returned; goes on until it is killed.
WRITER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    import numpy as np
    from ascar.history import History
    from ascar.results.measurement import Series
    from ascar.results.trial import Purpose, Trial, TrialState
    from ascar.space import ChangeCost, Configuration, Space, integer
    from ascar.study import Study

    study = Study.parse(Path(sys.argv[2]).read_text())
    space = Space((integer("n", (0, 10**6), default=0, cost=ChangeCost.DYN_KERNEL),))
    history = History(Path(sys.argv[1]))
    run = history.resume(study) if sys.argv[3] == "resume" else history.begin(study, space, {})
    print("ready", run.id, flush=True)
    while True:
        number = run.next_number()
        configuration = Configuration({"n": number})
        run.start_trial(Trial(number, configuration, Purpose.SEARCH, TrialState.RUNNING))
        values = np.full(2000, float(number))
        run.finish_trial(
            Trial(number, configuration, Purpose.SEARCH, TrialState.COMPLETE, score=float(number),
                  metrics={"x": float(number)}, series={"x": Series(np.arange(2000.0), values)})
        )
        print(number, flush=True)
    """
)

TEXT = '[study]\nname = "killed"\nobjective = "maximize x"\nbudget = "1 min"\n[target]\n'


def said_of(place: Path) -> list[str]:
    """What the last writer has said. Its last line may be cut off; but no other."""
    lines = (place / "said").read_text().splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n")]


def wait_until(writer: subprocess.Popen[bytes], condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert writer.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture
def start(tmp_path: Path):
    (tmp_path / "study.toml").write_text(TEXT)
    writers: list[subprocess.Popen[bytes]] = []

    def starting(how: str) -> subprocess.Popen[bytes]:
        arguments = [tmp_path / "h.sqlite", tmp_path / "study.toml", how]
        with (tmp_path / "said").open("wb") as said:
            writer = subprocess.Popen([sys.executable, "-c", WRITER, *map(str, arguments)], stdout=said)
        writers.append(writer)
        wait_until(writer, lambda: said_of(tmp_path)[:1] and said_of(tmp_path)[0].startswith("ready"))
        return writer

    yield starting
    for writer in writers:
        writer.kill()
        writer.wait()


@pytest.mark.slow
def test_kill_at_random_moments_loses_no_completed_trial(start, tmp_path, seed):
    rng = random.Random(20260101 + seed)
    said: set[int] = set()
    for attempt in range(5):
        writer = start("resume" if attempt else "begin")
        enough = rng.randrange(5, 20)
        wait_until(writer, lambda enough=enough: len(said_of(tmp_path)) > enough)
        time.sleep(rng.uniform(0.0, 0.05))
        writer.kill()
        writer.wait()
        said |= {int(line) for line in said_of(tmp_path)[1:]}
        with History(tmp_path / "h.sqlite") as history:
            (listed,) = history.runs()
            assert listed.state is RunState.INTERRUPTED
            trials = {trial.number: trial for trial in history.run("killed").trials()}
        for number in said:
            trial = trials[number]
            assert trial.state is TrialState.COMPLETE
            assert trial.score == number
            assert len(trial.series["x"]) == 2000
            assert (trial.series["x"].values == number).all()
        assert all(trial.state in (TrialState.COMPLETE, TrialState.INTERRUPTED) for trial in trials.values())
    assert len(said) > 20
    with History(tmp_path / "h.sqlite") as history, history.resume(Study.parse(TEXT)) as run:
        interrupted = [trial for trial in run.trials() if trial.state is TrialState.INTERRUPTED]
        assert len(interrupted) <= 5
        assert all(trial.failure is None for trial in interrupted)  # the machine did not go down
        assert run.crashed() == []


def test_two_processes_never_run_one_study(start, tmp_path):
    writer = start("begin")
    with History(tmp_path / "h.sqlite") as history:
        (listed,) = history.runs()
        assert (listed.state, listed.pid) == (RunState.RUNNING, writer.pid)
        for attempt in (history.resume, lambda study: history.begin(study, history.run(1).space, {})):
            with pytest.raises(Refused) as refused:
                attempt(Study.parse(TEXT))
            assert f"process {writer.pid}" in refused.value.message
            assert "'killed'" in refused.value.message
        other = Study.parse(TEXT.replace("killed", "other"))
        with history.begin(other, history.run(1).space, {}):  # another study is not in its way
            pass
        writer.kill()
        writer.wait()
        with history.resume(Study.parse(TEXT)):  # the kernel gave the lock back
            pass


def test_reading_while_another_process_writes(start, tmp_path):
    writer = start("begin")
    seen = 0
    with History(tmp_path / "h.sqlite") as history:
        deadline = time.monotonic() + 100
        while seen < 15 and time.monotonic() < deadline:
            trials = history.run("killed").trials()
            assert all(len(trial.series["x"]) == 2000 for trial in trials)
            assert len(trials) >= seen
            seen = len(trials)
            assert history.runs()[0].pid == writer.pid
    assert seen >= 15
