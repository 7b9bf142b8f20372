"""What reusing the state of the trial before does to a score is measured, on a real file system."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from localfs_support import ROOT

from ascar.errors import Refused
from ascar.history import History
from ascar.loops.offline import tune
from ascar.results.trial import Purpose
from ascar.study import Study

if TYPE_CHECKING:
    from ascar.results.outcome import Outcome

pytestmark = [*ROOT, pytest.mark.machine]

STUDY = """
[study]
name = "reuse"
objective = "maximize throughput_ops_per_s"
budget = "2 min"
[target]
kind = "localfs"
image = "{image}"
size = "400 MiB"
state = "reuse"
file_systems = ["ext4"]
[space]
allow_cost = ["dyn-kernel"]
[workload]
kind = "fio"
preset = "small-files-fsync"
scale = 0.2
[measurement]
load_min = "500 ms"
load_max = "500 ms"
reading = "100 ms"
[optimizer]
kind = "random"
[stop]
trials = 4
[verify]
runs_min = 2
runs_max = 2
p_value = 0.05
"""


def patient_tune(study: Study, history: History) -> Outcome:
    """Waits while another session on this machine holds a lock that the study needs."""
    deadline_s = time.monotonic() + 100
    while True:
        try:
            return tune(study, history)
        except Refused as refused:
            if "is locked by" not in refused.message or time.monotonic() > deadline_s:
                raise
            time.sleep(0.3)


@pytest.mark.slow
def test_the_bias_is_reported_with_its_interval(tmp_path):
    with History(tmp_path / "history.sqlite") as history:
        outcome = patient_tune(Study.parse(STUDY.format(image=tmp_path / "disk.img")), history)
        trials = history.run(outcome.run_id).trials()
    verified = [trial for trial in trials if trial.purpose is Purpose.VERIFY]
    if not verified:
        assert outcome.verdict.note == "the search found nothing better than the default"
        return
    assert all(trial.change is not None and "format" in trial.change.step_s for trial in verified)
    aged = [trial for trial in trials if trial.purpose is Purpose.BIAS]
    assert len(aged) == 2
    assert outcome.verdict.reuse_bias is not None
    low, high = outcome.verdict.reuse_bias_low, outcome.verdict.reuse_bias_high
    if low is not None and high is not None:  # two noisy runs a side may leave no interval
        assert low <= outcome.verdict.reuse_bias <= high
    assert "reused the state" in outcome.verdict.note
