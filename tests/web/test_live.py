"""A running study, as it comes: another process writes the history, the page only reads."""

from __future__ import annotations

import json
import urllib.request
from contextlib import closing
from datetime import UTC, datetime

import pytest
from explorer_page import TOKEN, serving

from ascar.analysis.tables import read_frame
from ascar.history import History, WriteContext
from ascar.results.measurement import Measurement
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.space import ChangeCost, Space, categorical, ordinal
from ascar.study import Study
from ascar.web import AccessToken, Exploration, HistorySubject, Roles, of_run, of_table
from ascar.web.live import standing

STUDY = """
[study]
name = "shown"
objective = "maximize throughput_ops_per_s"
budget = "10 min"
[target]
kind = "simulated"
[stop]
trials = 40
"""
SPACE = Space(
    (
        categorical("fs", ["ext4", "xfs"], default="ext4", cost=ChangeCost.REFORMAT_RESTORE),
        ordinal("read_ahead_kb", [64, 128, 256], default=128, cost=ChangeCost.DYN_KERNEL),
    )
)
NOW = "2030-01-01T00:00:00.000+00:00"


def configuration(fs, read_ahead):
    return SPACE.validate({"fs": fs, "read_ahead_kb": read_ahead})


class Tuning:
    """The other side: a study that another process runs."""

    def __init__(self, path, **held):
        self.history = History(path, WriteContext(lambda: NOW, "boot"))
        self.run = self.history.begin(Study.parse(STUDY), SPACE, {"target": "simulated", **held})

    def close(self):
        self.history.close()

    def begin(self, number, values, purpose=Purpose.SEARCH):
        self.run.start_trial(Trial(number, values, purpose, TrialState.RUNNING, started_at=NOW))

    def end(self, number, values, score, state=TrialState.COMPLETE):
        done = Trial(
            number,
            values,
            Purpose.SEARCH,
            state,
            score=score,
            measurement=None if score is None else Measurement.single(score),
            metrics={} if score is None else {"throughput_ops_per_s": score, "latency_ms_p99": 1000 / score},
            stage_s={"load": 10.0},
            started_at=NOW,
        )
        self.run.finish_trial(done)


@pytest.fixture
def tuning(tmp_path):
    with closing(Tuning(tmp_path / "history.sqlite")) as made:
        yield made


@pytest.fixture
def subject(tuning, tmp_path):
    with History(tmp_path / "history.sqlite") as history:
        yield HistorySubject(history, [history.run(tuning.run.id)])


def test_how_a_run_stands(tuning, tmp_path):
    for number, (fs, score) in enumerate(
        [("ext4", 100.0), ("xfs", 130.0), ("ext4", None), ("xfs", 120.0)], 1
    ):
        values = configuration(fs, (64, 128, 256)[number % 3])
        tuning.begin(number, values)
        tuning.end(number, values, score, TrialState.COMPLETE if score else TrialState.FAILED)
    tuning.begin(5, configuration("xfs", 256))
    with History(tmp_path / "history.sqlite") as history:
        now = datetime(2030, 1, 1, 0, 0, 4, tzinfo=UTC)
        found = standing(history, history.run("shown"), now)
    assert found["state"] == "running"
    assert found["trying"]["number"] == 5
    assert found["trying"]["since_s"] == 4.0
    assert found["trying"]["chosen"] == {"fs": "xfs", "read_ahead_kb": 256}
    assert [step["score"] for step in found["best_so_far"]] == [100.0, 130.0]
    assert found["best"]["number"] == 2
    assert found["failed"] == 1
    assert found["elapsed_s"] == 44.0
    assert found["left_s"] == 600 - 44
    assert found["evaluations_left"] == 36  # of `[stop] trials`; the time would suffice for 55
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("loop", "told"),
    [
        (
            "closed",
            "latency_ms_p99 is that of a closed loop: "
            "each client waits for its own operation before the next one",
        ),
        ("open", None),
    ],
)
def test_a_percentile_of_a_closed_loop_is_called_so_in_a_run_and_in_its_table(loop, told, tmp_path):
    with closing(Tuning(tmp_path / "history.sqlite", workload={"loop": loop})) as tuning:
        for number, fs in enumerate(("ext4", "xfs"), 1):
            values = configuration(fs, 64)
            tuning.begin(number, values)
            tuning.end(number, values, 100.0 * number)
        tuning.history.export([tuning.run.id], tmp_path / "exported.csv")
        part = of_run(tuning.history.run(tuning.run.id))
    frame = read_frame(tmp_path / "exported.csv", "exported")
    table = of_table(frame, "exported", Roles("throughput_ops_per_s"))
    for shown in (part, table):
        assert list(shown.notes) == ([] if told is None else [told])
    both = Exploration.of([part, table], "throughput_ops_per_s", None)
    assert list(both.notes) == ([] if told is None else [told]), "said once, not once a part"


def test_a_run_that_ended_has_nothing_left(tuning, tmp_path):
    tuning.end(1, configuration("ext4", 64), 10.0)
    tuning.close()
    with History(tmp_path / "history.sqlite") as history:
        found = standing(history, history.run("shown"))
    assert (found["state"], found["trying"], found["left_s"], found["evaluations_left"]) == (
        "interrupted",
        None,
        None,
        None,
    )


def test_trials_come_without_a_reload_and_survive_one(tuning, subject, explorer):
    page = explorer.page
    with serving(subject) as url:
        port = int(url.rsplit(":", 1)[1].strip("/"))
        page.goto(url)
        page.get_by_role("heading", name="shown, run 1").wait_for()
        page.get_by_text("nothing to compare yet").wait_for()
        tuning.begin(1, configuration("ext4", 128))
        page.get_by_text("Trying now (trial 1").wait_for()
        page.get_by_text("the default configuration").wait_for()
        for second in range(5):
            tuning.run.note_reading(1, second + 1.0, 90.0 + second)
        page.get_by_role("img", name="5 readings of trial 1, the last 94").wait_for()
        assert explorer.serious() == []
        tuning.end(1, configuration("ext4", 128), 100.0)
        tuning.end(2, configuration("xfs", 128), 140.0)
        explorer.until("document.querySelectorAll('#bars .bar').length === 2")
        explorer.settled()
        assert explorer.told("fs", "xfs")["mean"] == 140
        page.get_by_text("140 (trial 2)").wait_for()
        page.get_by_text("Best so far: fs = xfs").wait_for()

        explorer.choose("fs", "xfs")
        tuning.end(3, configuration("xfs", 256), 150.0)
        page.get_by_text("150 (trial 3)").wait_for()
        explorer.until("document.body.textContent.includes('fs = xfs2 · mean 145')")
        page.reload()
        explorer.settled()
        assert explorer.path() == ["Everything", "[fs = xfs]"]
        assert explorer.told("fs", "xfs")["rows"] == 2

    page.get_by_text("The server does not answer; trying again.").wait_for()
    tuning.end(4, configuration("xfs", 64), 160.0)
    with serving(subject, port):
        page.get_by_text("160 (trial 4)").wait_for()
        page.get_by_text("The server does not answer; trying again.").wait_for(state="hidden")
        explorer.until("document.body.textContent.includes('fs = xfs3 · mean 150')")
        explorer.settled()
    with serving(subject, port, token=AccessToken.random()):
        page.get_by_text("The server was started anew; open the address that it printed.").wait_for()
    explorer.problems[:] = [one for one in explorer.problems if "403 (Forbidden)" not in one]


def test_the_saved_file_names_the_trial(tuning, subject, explorer, tmp_path):
    tuning.end(1, configuration("ext4", 128), 100.0)
    tuning.end(2, configuration("xfs", 64), 140.0)
    with serving(subject) as url:
        explorer.open(url)
        file = explorer.page.get_by_role("button", name="Apply file").first
        saved = json.loads(explorer.saved(file.click, tmp_path / "configuration.json"))
    assert (saved["run_id"], saved["trial"]) == (1, 2)
    assert saved["configuration"] == {"fs": "xfs", "read_ahead_kb": 64}
    assert saved["given"]["study"] == "shown"


def test_a_history_that_breaks_is_told_and_not_fatal(tuning, subject):
    tuning.end(1, configuration("ext4", 128), 100.0)
    tuning.close()
    with serving(subject) as url:
        with urllib.request.urlopen(TOKEN.in_address(f"{url}api/events"), timeout=20) as stream:
            first = stream.read1(200_000) + stream.read1(200_000)
        assert b"event: standing" in first
        assert b'"state": "interrupted"' in first
