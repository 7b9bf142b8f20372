from __future__ import annotations

import io
import re

import pytest
from msgspec.structs import replace
from rich.console import Console

from ascar.cli.progress.live import LiveProgress
from ascar.events import Event
from ascar.objective import Objective
from ascar.progress import StudyProgress, line_of
from ascar.results.trial import Abandonment, Failure, Purpose, TrialState


@pytest.fixture
def events(space, trial_of):
    default = space.default()
    other = space.validate({"fs": "xfs", "read_ahead_kb": 256})
    first = trial_of(1, default, 100.0, purpose=Purpose.DEFAULT)
    failure = Failure("change", "mkfs.xfs: no space", "")
    failed = trial_of(2, other, None, state=TrialState.FAILED, failure=failure)
    better = trial_of(3, other, 150.0)
    breaking = trial_of(4, other, 900.0, unmet=("latency_ms_p99 <= 50",))
    verified = trial_of(5, other, 140.0, purpose=Purpose.VERIFY)
    started = {"study": "s", "run_id": 7, "budget_s": 600.0, "valid_configurations": 9, "trials_recalled": 0}
    listed = [Event("study-started", started)]
    for left_s, trial in zip((590, 580, 570, 560), (first, failed, better, breaking), strict=True):
        running = replace(trial, state=TrialState.RUNNING, score=None, measurement=None)
        listed.append(Event("trial-started", {"trial": trial.number, "left_s": left_s + 5}, running))
        listed += [Event("reading", {"trial": trial.number, "second": s, "score": s * 10}) for s in (1, 2)]
        listed.append(Event("trial-finished", {"trial": trial.number, "left_s": left_s}, trial))
    listed.append(Event("verifying", {"runs_min": 2, "runs_max": 5}, better))
    listed.append(Event("trial-finished", {"trial": 5, "left_s": 500}, verified))
    gain = {"pairs": 1, "gain_relative": 0.5, "gain_low": 0.1, "gain_high": 0.9, "p_value": 0.002}
    listed.append(Event("compared", {"pairs": 0}))
    listed.append(Event("compared", gain))
    return listed


def _after(events, count=None, objective="maximize throughput_ops_per_s"):
    progress = StudyProgress(Objective.parse(objective))
    for event in events[:count]:
        progress.take(event)
    return progress


def test_progress_knows_best_default_failures_and_time(events):
    progress = _after(events)
    assert (progress.study, progress.run_id, progress.budget_s, progress.left_s) == ("s", 7, 600, 500)
    assert progress.default is not None
    assert progress.default.number == 1
    assert progress.best is not None
    assert progress.best.number == 3, (
        "one that breaks a constraint is not the best, nor a run of the comparison"
    )
    assert (progress.trials, progress.failed, progress.verified, progress.planned) == (5, 1, 1, 0)


def test_progress_goes_on_with_what_an_earlier_part_knew(events, space, trial_of):
    first = trial_of(1, space.default(), 100.0, purpose=Purpose.DEFAULT)
    better = trial_of(2, space.validate({"fs": "xfs", "read_ahead_kb": 256}), 150.0)
    started = {"study": "s", "run_id": 7, "budget_s": 600.0, "trials_recalled": 2}
    recalled = [Event("trial-recalled", {"trial": trial.number}, trial) for trial in (first, better)]
    progress = _after([Event("study-started", started), *recalled])
    assert (progress.default, progress.best, progress.trials) == (first, better, 2)
    assert line_of(progress, recalled[0]) == ""
    assert "best so far" in _drawn(progress)
    assert line_of(progress, Event("study-started", started)).endswith("2 trials recalled")
    assert line_of(progress, Event("study-started", {**started, "trials_recalled": 1})).endswith(
        "1 trial recalled"
    )


def test_where_less_is_better_the_least_is_the_best(events):
    progress = _after(events, objective="minimize latency_ms")
    assert progress.best is not None
    assert progress.best.number == 1


def test_readings_are_those_of_the_current_trial_and_not_endless(events):
    assert _after(events, 4).scores == [10, 20]
    assert _after(events, 6).scores == []
    progress = _after(events, 2)
    for second in range(1000):
        progress.take(Event("reading", {"score": float(second)}))
    assert progress.scores == [float(second) for second in range(940, 1000)]


def test_every_trial_has_one_line_and_readings_have_none(events):
    progress = StudyProgress(Objective.parse("maximize throughput_ops_per_s"))
    lines: list[str] = []
    for event in events:
        progress.take(event)
        lines.append(line_of(progress, event))
    shown = [line for line in lines if line]
    assert len(shown) == 1 + 4 + 1 + 1 + 1
    assert shown[0] == "study s, run 7, 9 valid configurations, budget 10 min"
    assert shown[1].startswith("trial 1 (default), 100.0 [98.00, 102.0] throughput_ops_per_s, 5.0 s")
    assert "failed in change: mkfs.xfs: no space" in shown[2]
    assert "best so far" in shown[3]
    assert "breaks latency_ms_p99 <= 50" in shown[4]
    assert "until it is decided" in shown[5]
    assert (
        shown[7]
        == "after 1 pair: 50.0% more throughput_ops_per_s than the default (10.0% to 90.0% more), p = 0.002"
    )


def test_a_space_that_cannot_be_counted_has_no_number(events):
    begun = Event("study-started", {**events[0].data, "valid_configurations": None})
    progress = _after([begun])
    assert line_of(progress, begun) == "study s, run 7, budget 10 min"


def test_an_abandoned_trial_says_why(events, space, trial_of):
    why = Abandonment(rival=3, after_s=2.0, worse_relative=0.487, worse_least=0.213, saved_s=1.0)
    pruned = replace(trial_of(9, space.default(), 77.0, state=TrialState.PRUNED), abandonment=why)
    progress = _after(events)
    event = Event("trial-finished", {"trial": 9, "left_s": 490}, pruned)
    progress.take(event)
    line = line_of(progress, event)
    assert "abandoned after 2.0 s: 48.7% worse than trial 3 so far, at least 21.3%" in line
    assert "77.00" in line
    assert "1 abandoned" in _drawn(progress)
    assert progress.best is not None
    assert progress.best.number == 3


def _drawn(progress, *, encoding="utf-8") -> str:
    buffer = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=buffer, force_terminal=True, width=100, height=40, color_system=None)
    with LiveProgress(progress, console) as live:
        console.print(live._draw())
    buffer.seek(0)
    return buffer.read()


def test_the_live_view_draws_at_every_moment(events):
    for count in range(len(events) + 1):
        assert _drawn(_after(events, count))


def test_the_live_view_shows_what_matters(events):
    drawn = _drawn(_after(events, 16))
    assert "best so far" in drawn
    assert "150.0 [147.0, 153.0]" in drawn
    assert "1 failed" in drawn
    assert re.search(r"\b9:[012]\d\b", drawn), "9:25, or less on a busy machine"
    assert "trial 4 (search)" in drawn
    assert "▅█" in drawn
    assert "run 2" in _drawn(_verifying(events))


def _verifying(events):
    """The second run of the comparison is under way."""
    progress = _after(events)
    progress.take(Event("trial-started", {"left_s": 490.0}, replace(events[-3].trial, number=6)))
    return progress


def test_the_live_view_needs_no_unicode(events):
    _drawn(_after(events, 16), encoding="ascii").encode("ascii")
