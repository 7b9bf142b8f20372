"""Synthetic studies: as many trials as asked for, with known answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from ascar.history import History
from ascar.objective import Objective
from ascar.results.measurement import Measurement, Series
from ascar.results.outcome import Outcome
from ascar.results.trial import Change, Failure, Purpose, Trial, TrialState
from ascar.results.verdict import Verdict
from ascar.space import ChangeCost, Configuration, Space, boolean, categorical, integer
from ascar.study import Study

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT = '[study]\nname = "mail"\nobjective = "maximize throughput_ops_per_s"\nbudget = "10 min"\n'
TEXT += '[target]\nkind = "simulated"\nmetrics = { throughput_ops_per_s = "1" }\n'


@pytest.fixture
def tmp_path(in_memory):
    """In memory where possible: every trial waits for the disk, and a busy machine's disk takes its time."""
    with TemporaryDirectory(prefix="ascar-test-", dir=in_memory) as directory:
        yield Path(directory)


@pytest.fixture
def objective() -> Objective:
    return Objective.parse("maximize throughput_ops_per_s")


@pytest.fixture
def space() -> Space:
    return Space(
        (
            categorical(
                "fs",
                ["ext4", "xfs", "btrfs"],
                default="ext4",
                cost=ChangeCost.REFORMAT_RESTORE,
                description="file system",
            ),
            integer("agcount", (1, 64), default=4, cost=ChangeCost.REFORMAT_RESTORE, when='fs == "xfs"'),
            integer("read_ahead_kb", (0, 4096), default=128, cost=ChangeCost.DYN_KERNEL, unit="KiB"),
            boolean("barrier", default=True, cost=ChangeCost.REMOUNT, weaker={"false": ["durability"]}),
        )
    )


def trial(
    number: int, configuration: Configuration, score: float, purpose: Purpose = Purpose.SEARCH
) -> Trial:
    """A complete trial with 40 readings, the first four of them warm-up."""
    values = score * (1 + 0.05 * np.sin(np.arange(40) * 1.7 + number))
    values[:4] *= [0.2, 0.5, 0.7, 0.9]
    return Trial(
        number=number,
        configuration=configuration,
        purpose=purpose,
        state=TrialState.COMPLETE,
        score=score,
        measurement=Measurement(
            score, 0.98 * score, 1.02 * score, 0.95, 36, 12, 0.3, 3, 4, 40, (4,), "corrected"
        ),
        metrics={"throughput_ops_per_s": score, "latency_ms_p99": 1e5 / score if score else 0.0},
        series={"throughput_ops_per_s": Series(np.arange(1, 41) * 0.25, values)},
        change=Change(("fs",), 3, {"format": 0.5, "mount": 0.1}),
        stage_s={"change": 0.6, "fill": 0.5, "settle": 0.1, "load": 10.0, "measurement": 0.01},
        started_at="2026-01-01T00:00:00.000+00:00",
    )


def failed(
    number: int, configuration: Configuration, message: str = "mkfs failed", stderr: str = ""
) -> Trial:
    return Trial(
        number=number,
        configuration=configuration,
        purpose=Purpose.SEARCH,
        state=TrialState.FAILED,
        failure=Failure("change", message, stderr),
        stage_s={"change": 0.2},
    )


def search(space: Space, n: int, seed: int = 0) -> list[Trial]:
    """Two trials of the default and n of a search; xfs is best, every tenth fails."""
    rng = np.random.default_rng(seed)
    trials = [trial(number, space.default(), 1000 + number, Purpose.DEFAULT) for number in (1, 2)]
    for number in range(3, n + 3):
        drawn = {"fs": str(rng.choice(["ext4", "xfs", "btrfs"])), "read_ahead_kb": int(rng.integers(0, 4096))}
        # Not `space.sample`: it is uniform over configurations, of which nearly all are xfs here.
        drawn |= {"barrier": True} | ({"agcount": int(rng.integers(1, 65))} if drawn["fs"] == "xfs" else {})
        configuration = space.validate(drawn)
        if number % 10 == 0:
            trials.append(failed(number, configuration))
            continue
        mean = {"ext4": 1000, "xfs": 1800, "btrfs": 400}[str(configuration["fs"])]
        trials.append(trial(number, configuration, float(mean * rng.normal(1, 0.05))))
    return trials


@dataclass
class Studies:
    """Makes histories with one run in them."""

    directory: Path
    space: Space

    def run(
        self,
        trials: Sequence[Trial],
        verdict: Verdict | None = None,
        text: str = TEXT,
        machine: object = None,
    ):
        """A run of these trials in a history of its own; finished if there is a verdict."""
        self.directory.mkdir(parents=True, exist_ok=True)
        history = History(self.directory / f"{len(list(self.directory.glob('*.sqlite')))}.sqlite")
        study = Study.parse(text)
        described = machine if isinstance(machine, dict) else {"kernel": "6.1", "memory_bytes": 8 * 2**30}
        with history.begin(study, self.space, described) as run:
            for one in trials:
                run.finish_trial(one)
            if verdict is not None:
                ended = run.outcome()
                better = verdict.kind == "improved" and ended.best is not None
                recommended = ended.best.configuration if better and ended.best else ended.recommended
                run.finish(replace(ended, verdict=verdict, recommended=recommended, stopped="it was told to"))
        self.histories.append(history)
        return history.run(run.id)

    def __post_init__(self) -> None:
        self.histories: list[History] = []


@pytest.fixture
def studies(tmp_path, space):
    made = Studies(tmp_path / "histories", space)
    yield made
    for history in made.histories:
        history.close()


@pytest.fixture
def make():
    class Make:
        trial = staticmethod(trial)
        failed = staticmethod(failed)
        search = staticmethod(search)

    return Make


def verdict_of(kind: str) -> Verdict:
    best = (1800.0, 1790.0, 1815.0, 1795.0, 1805.0)
    if kind == "improved":
        default = (1000.0, 1010.0, 990.0, 1005.0, 995.0)
        return Verdict("improved", 0.801, 0.77, 0.832, 2e-9, 5, best, default, 0.01, "Welch's t-test")
    if kind == "default-is-fine":
        default = (1800.0, 1700.0, 1900.0, 1780.0, 1815.0)
        return Verdict("default-is-fine", 0.001, -0.05, 0.052, 0.93, 5, best, default, 0.01, "Welch's t-test")
    return Verdict("not-verified", note="the budget was spent")


@pytest.fixture
def verdicts():
    return verdict_of


@pytest.fixture
def outcome_for(space):
    def of(trials: Sequence[Trial], verdict: Verdict) -> Outcome:
        return Outcome(1, "mail", None, None, space.default(), verdict, {}, {}, "", {})

    return of
