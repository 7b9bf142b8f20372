"""Whole studies through the command line, on a system that is a formula: an hour of it takes a second."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

STUDY = """
[study]
name = "formula"
objective = "maximize throughput_ops_per_s"
budget = "20 min"
[target]
kind = "simulated"
metrics = { throughput_ops_per_s = "1000 - 3 * abs(depth - 32) + if(compress, 50, 0)", latency_ms = "depth" }
noise_relative_sd = 0.05
fails_when = "depth > 240"
[space.parameters.depth]
kind = "integer"
low = 0
high = 256
step = 16
default = 128
cost = "dyn-kernel"
[space.parameters.compress]
kind = "boolean"
default = false
cost = "remount"
[stop]
trials = 12
[recommend]
margin = 0
"""
# Nothing ends this one: it neither fails, nor runs out of configurations or time.
ENDLESS = (
    STUDY.replace('fails_when = "depth > 240"', "")
    .replace("high = 256", "high = 256000000")
    .replace("trials = 12", "trials = 100000")
    .replace("20 min", "1000 h")
)


@pytest.fixture
def study(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    return file


def test_the_end_of_a_study_is_for_people(ascar, study):
    study.write_text(STUDY.replace("margin = 0\n", ""))
    done = ascar("tune", study)
    assert done.status == 0
    text = done.out
    assert re.match(
        r"improved: \d+\.\d% more throughput_ops_per_s than the default \(99% interval .*\), p ", text
    )
    assert "compress" in text
    assert "remount" in text
    assert re.search(r"load .* \d+%", text)
    assert "target: simulated" in text
    assert "ascar apply" not in text, "a formula has nothing that could be applied"
    assert "ascar report 1 --out report" in text
    assert re.search(r"as little as is needed: .*\n  (keeps \d+\.\d% of the gain|\w+: without it)", text)


def test_progress_is_a_line_a_trial_on_stderr_where_there_is_no_terminal(ascar, study):
    done = ascar("tune", study)
    lines = done.err.splitlines()
    assert lines[0].startswith("study formula, run 1, 34 valid configurations, budget 20 min")
    assert sum(line.startswith("trial ") for line in lines) >= 14
    assert "\x1b" not in done.err
    assert ascar("tune", study, "--quiet").err == ""


def test_the_document_says_the_same(ascar, study):
    document = ascar("tune", study, "--json").document
    assert document["verdict"]["kind"] == "improved"
    assert document["recommended"]["compress"] is True
    assert document["stopped"] == "12 of 12 trials are made"


def test_a_default_that_is_fine_is_a_result(ascar, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        STUDY.replace("default = 128", "default = 32").replace("default = false", "default = true")
    )
    done = ascar("tune", file)
    assert done.status == 0
    assert done.out.startswith("the default is fine")
    assert "recommended: keep the default configuration" in done.out


def test_a_study_without_a_verdict_ends_with_3(ascar, tmp_path):
    """Every run of the last comparison fails: nothing can be claimed, and what was measured is kept."""
    counter = tmp_path / "runs"
    load = (
        f"import pathlib, sys; file = pathlib.Path({str(counter)!r}); "
        "runs = 1 + len(file.read_text()) if file.exists() else 1; file.write_text('.' * runs); "
        "print('throughput_ops_per_s', 100 * runs); sys.exit(runs > 4)"
    )
    file = tmp_path / "study.toml"
    file.write_text(
        f"""
        [study]
        name = "tired"
        objective = "maximize throughput_ops_per_s"
        budget = "1 min"
        [target]
        kind = "sqlite"
        [workload]
        kind = "command"
        argv = [{json.dumps(sys.executable)}, "-c", {json.dumps(load)}]
        metrics = {{ throughput_ops_per_s = 'regex:throughput_ops_per_s ([0-9]+)' }}
        [measurement]
        load_min = "50 ms"
        load_max = "10 s"  # it ends by itself; until then it may be slow to start
        [stop]
        trials = 2
        [verify]
        runs_min = 2
        runs_max = 2
        """
    )
    done = ascar("tune", file, "--json")
    assert done.status == 3, done.err
    document = done.document
    assert document["verdict"]["kind"] == "not-verified"
    assert document["counts"] == {"complete": 4, "failed": 4}
    text = ascar("history", "show", "tired").out
    assert "not verified: no gain is claimed" in text
    assert "ascar apply" not in text


@pytest.mark.parametrize(
    ("old", "new", "options", "said"),
    [
        (
            'budget = "20 min"',
            'budget = "20 min"\nconstraints = ["latency_ms <= -1"]',
            [],
            "no configuration met the constraints; the default breaks latency_ms <= -1",
        ),
        ("depth > 240", "depth != 128 or compress", [], "12 trials of the search failed"),
        ("depth > 240", "depth > 240", ["--budget", "1 s"], "the budget left no time to search"),
    ],
)
def test_without_evidence_the_default_is_not_called_fine(ascar, tmp_path, old, new, options, said):
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace(old, new))
    done = ascar("tune", file, *options, "--quiet")
    assert done.status == 3, done.err
    assert done.out.startswith("not verified: no gain is claimed")
    assert said in done.out
    assert "ascar apply" not in done.out
    document = ascar("history", "show", "formula", "--json").document
    assert document["outcome"]["verdict"]["kind"] == "not-verified"
    exported = ascar("export", "formula", "--json").document
    assert exported["chosen"] == []


def test_less_is_said_to_be_less(ascar, tmp_path):
    file = tmp_path / "study.toml"
    text = STUDY.replace("maximize throughput_ops_per_s", "minimize latency_ms")
    file.write_text(text.replace('latency_ms = "depth"', 'latency_ms = "depth + 10"'))
    done = ascar("tune", file)
    assert done.status == 0, done.err
    assert re.match(
        r"improved: \d+\.\d% less latency_ms than the default \(99% interval .* less\), p ", done.out
    )
    assert re.search(r"after \d+ pairs: \d+\.\d% less latency_ms than the default", done.err)
    document = ascar("report", "formula", "--out", tmp_path / "report", "--json").document
    page = (tmp_path / "report").joinpath(document["page"]).read_text()
    assert re.search(r"% less latency", page)


def test_the_time_that_is_kept_for_the_verification_is_named(ascar, tmp_path):
    file = tmp_path / "study.toml"
    text = STUDY.replace("trials = 12", "trials = 100000").replace("20 min", "2 min")
    file.write_text(text)
    done = ascar("tune", file, "--quiet")
    assert "the search ended because its share of the time budget is spent; the rest is kept" in done.out


def test_a_default_that_cannot_be_measured_is_failed_work(ascar, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace("depth > 240", "depth == 128"))
    done = ascar("tune", file, "--quiet")
    assert done.status == 1
    assert "the default configuration cannot be measured" in done.error


def test_resuming_needs_something_to_resume(ascar, study):
    done = ascar("tune", study, "--resume")
    assert done.status == 2
    assert "--resume" in done.error


def test_resuming_a_changed_study_is_refused(ascar, study):
    assert ascar("tune", study, "--budget", "10 s").status in (0, 3)
    ascar("sweep", study, "--budget", "1 s")
    study.write_text(STUDY.replace("high = 256", "high = 240"))
    done = ascar("sweep", study, "--resume")
    assert done.status == 2
    for named in ("space.parameters.depth.high", "256", "240"):
        assert named in done.error


def test_an_interrupted_study_keeps_its_trials_and_goes_on(study, tmp_path, ascar):
    study.write_text(ENDLESS)
    command = [sys.executable, "-m", "ascar", "tune", str(study), "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith("trial 6 "):
            break
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=300)
    assert child.returncode == 130
    assert '"Interrupted"' in out
    assert "--resume" in err.splitlines()[-1]
    trials = ascar("history", "show", "formula", "--json").document["trials"]
    complete = [trial for trial in trials if trial["state"] in ("complete", "failed", "pruned")]
    assert len(complete) >= 6
    child = subprocess.Popen(
        [*command, "--resume"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    first = child.stderr.readline()
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=300)
    assert f"{len(trials)} trials recalled" in first
    later = ascar("history", "show", "formula", "--json").document
    assert later["run_id"] == 1
    assert later["trials"][: len(complete)] == complete


def test_a_study_that_is_running_is_not_run_twice(study, ascar):
    study.write_text(ENDLESS)
    command = [sys.executable, "-m", "ascar", "tune", str(study)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stderr is not None
        child.stderr.readline()
        for resume in ([], ["--resume"]):
            done = ascar("tune", study, *resume)
            assert done.status == 2
            assert str(child.pid) in done.error
            assert "study.name = 'formula'" in done.error
        runs = ascar("history", "ls", "--json").document["runs"]
        assert [(run["state"], run["pid"]) for run in runs] == [("running", child.pid)]
        done = ascar("history", "purge", "1", "--yes")
        assert done.status == 2
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=300)


def test_a_sweep_is_a_dataset_that_the_table_target_reads(ascar, study, tmp_path):
    data = tmp_path / "data.csv"
    document = ascar("sweep", study, "--replicates", "2", "--out", data, "--json").document
    assert document["complete"]
    assert document["verdict"]["kind"] == "not-verified"
    assert sum(document["counts"].values()) == 68
    assert document["counts"]["failed"] == 4
    frame = pl.read_csv(data)
    assert len(frame) == 68
    compress = frame["compress"].to_list()[:34]
    assert compress == sorted(compress), "the expensive parameter varies slowest"
    table = tmp_path / "table.toml"
    table.write_text(
        f"""
        [study]
        name = "recorded"
        objective = "maximize throughput_ops_per_s"
        budget = "10 min"
        [target]
        kind = "table"
        file = "{data}"
        parameters = ["depth", "compress"]
        metrics = ["throughput_ops_per_s"]
        [stop]
        trials = 10
        """
    )
    assert ascar("tune", table, "--json").document["run_id"] == 2


def test_a_sweep_that_ran_out_of_time_goes_on_where_it_stopped(ascar, study):
    done = ascar("sweep", study, "--budget", "60 s", "--json")
    assert done.status == 3
    first = done.document
    assert not first["complete"]
    seen = sum(first["counts"].values())
    assert 0 < seen < 34
    done = ascar("sweep", study, "--resume", "--json")
    assert done.status == 0
    assert done.document["run_id"] == first["run_id"]
    assert sum(done.document["counts"].values()) == 34
    assert ascar("sweep", study, "--resume").status == 0, "to repeat it is safe"
    assert "formula-sweep" in ascar("history", "ls").out


def test_a_sweep_claims_nothing_to_people_either(ascar, study):
    text = ascar("sweep", study).out
    assert text.startswith("every configuration measured")
    assert "looks better than it is" in text
    assert "improved" not in text


def test_a_sweep_of_too_much_is_refused(ascar, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace("high = 256\nstep = 16", "high = 2000000\nstep = 1"))
    done = ascar("sweep", file)
    assert done.status == 2
    assert "4,000,002 valid configurations" in done.error


def test_a_sweep_says_first_that_it_cannot_write_its_table(ascar, study, own_state):
    done = ascar("sweep", study, "--out", "data.xlsx")
    assert done.status == 2
    assert ".parquet" in done.error
    assert not own_state.exists()


def test_a_report_is_one_page(ascar, study, tmp_path):
    ascar("tune", study)
    document = ascar("report", "formula", "--out", tmp_path / "report", "--json").document
    page = (tmp_path / "report").joinpath(document["page"]).read_text()
    assert "<html" in page
    done = ascar("report", "formula", "--out", "/proc/nowhere")
    assert done.status == 1
    assert "/proc/nowhere" in done.error


def test_what_has_no_commands_says_so(ascar, study):
    ascar("tune", study)
    done = ascar("export", "formula", "--as", "fstab")
    assert done.status == 0
    assert done.out.startswith("# nothing in this configuration")
    document = ascar("export", "formula", "--as", "udev", "--trial", "3", "--json").document
    assert document["form"] == "udev"


def test_a_space_of_a_study_is_what_it_leaves(ascar, study):
    document = ascar("space", study, "--json").document
    assert document["valid_configurations"] == 34
    study.write_text(STUDY + '\n[space]\nallow_cost = ["dyn-kernel"]\n')
    assert ascar("space", study, "--json").document["valid_configurations"] == 17
    assert "false (pinned)" in ascar("space", study).out


@pytest.mark.parametrize(("preset", "count"), [("storage-v3", 3888), ("storage-v4", 5184)])
def test_a_preset_has_the_thesis_number_of_configurations(ascar, preset, count):
    assert ascar("space", preset, "--json").document["valid_configurations"] == count
    assert f"{count:,} valid configurations" in ascar("space", preset).out


def test_an_unknown_preset_is_named(ascar):
    done = ascar("space", "storage-v33")
    assert done.status == 2
    assert "'storage-v3'" in done.error


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("maximize throughput_ops_per_s", "maximize throughput_ops", "'throughput_ops'"),
        ('budget = "20 min"', 'budget = "20 min"\nconstraints = ["latency <= 1"]', "'latency'"),
        ("trials = 12", 'target = "latency <= 1"', "'latency'"),
    ],
)
def test_a_metric_that_the_load_lacks_ends_the_study_at_once_and_leaves_no_run(
    ascar, tmp_path, old, new, named
):
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace(old, new))
    done = ascar("tune", file, "--quiet")
    assert done.status == 2
    assert f"needs the metric {named}" in done.error
    assert "throughput_ops_per_s" in done.error
    assert ascar("history", "ls", "--json").document["runs"] == []
    file.write_text(STUDY)
    assert ascar("tune", file, "--quiet").status == 0
