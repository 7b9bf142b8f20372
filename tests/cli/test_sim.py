"""`ascar sim`, from the command line to its documents and plots."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ascar.cli.sim.progress import line_of
from ascar.simulation import PRESETS, BatchProgress, preset

SHORT = ("--duration", "3 s", "--set", "warmup_s=1")

LEAST = """
name = "least"
clients = [{ count = 2, workload = "w" }]
[[workloads]]
name = "w"
filesets = [{ name = "f", size_mib = 100 }]
threads = [{ flowops = [{ op = "write", directio = true }] }]
"""


def timeless(document):
    """Without what depends on the machine."""
    return {key: value for key, value in document.items() if key != "wall_seconds"}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_runs(ascar, name):
    done = ascar("sim", "run", name, *SHORT, "--json")
    assert done.status == 0, done.err
    document = done.document
    assert document["name"] == name
    assert document["virtual_seconds"] == pytest.approx(3)
    kind = "metadata_latency" if name == "mdtest" else "latency"
    assert document["metadata_operations_per_s" if name == "mdtest" else "throughput_mb_per_s"] > 10
    assert 0 < document["jain_index"] <= 1
    assert 0 < document[f"{kind}_ms_p50"] <= document[f"{kind}_ms_p99"]
    assert document["events"] > 100
    assert document["wall_seconds"] > 0
    assert document["stdev_mb_per_s"] == document["stdev_pooled_mb_per_s"]
    assert len(document["total_mb_per_s"]) == 3
    assert len(document["clients_mb_per_s"]) == document["clients"]
    assert len(document["servers"]) == document["servers_count"] == preset(name).server_count
    assert document["streams"] is None
    assert all(one is None for one in document["intervals"].values())


def test_a_file_is_run(ascar, tmp_path):
    path = tmp_path / "least.toml"
    path.write_text(LEAST)
    document = ascar("sim", "run", path, "--json", "--quiet").document
    assert (document["name"], document["clients"], document["seeds"]) == ("least", 2, [1])
    assert document["read_mb_per_s"] == 0
    assert document["read_latency"]["requests"] == 0


def test_the_same_command_gives_the_same_document_whatever_the_threads(ascar):
    command = ("sim", "run", "random-write", *SHORT, "--runs", "3", "--streams", "--json")
    first = timeless(ascar(*command, "--threads", "1").document)
    assert timeless(ascar(*command, "--threads", "3").document) == first
    assert timeless(ascar(*command, "--seed", "9").document) != first


def test_several_seeds_give_means_with_intervals(ascar):
    document = ascar("sim", "run", "random-write", *SHORT, "--runs", "5", "--seed", "10", "--json").document
    assert document["seeds"] == [10, 11, 12, 13, 14]
    values = [one["throughput_mb_per_s"] for one in document["runs"]]
    assert document["throughput_mb_per_s"] == pytest.approx(sum(values) / 5)
    low, high = document["intervals"]["throughput_mb_per_s"]
    assert low < document["throughput_mb_per_s"] < high
    assert document["events"] == sum(one["events"] for one in document["runs"])


def test_people_get_tables(ascar):
    done = ascar("sim", "run", "random-write", *SHORT)
    assert done.status == 0
    for word in (
        "random-write",
        "throughput",
        "deviation, pooled",
        "deviation, total",
        "latency, 99%",
        "events",
    ):
        assert word in done.out
    assert "one run, no intervals" in done.out
    assert "streams at the end" in ascar("sim", "run", "random-write", *SHORT, "--streams").out
    assert "[" in ascar("sim", "run", "random-write", *SHORT, "--runs", "3").out


def test_streams_are_columns(ascar):
    document = ascar("sim", "run", "random-write", *SHORT, "--streams", "--window", "5", "--json").document
    assert len(document["streams"]) == 20
    assert document["streams"][7]["client"] == 1
    assert document["streams"][7]["server"] == 3
    assert document["streams"][7]["window"] == [5, 5, 5]


def test_window_gap_rules_and_settings_are_obeyed(ascar, tmp_path):
    paced = ascar("sim", "run", "random-write", *SHORT, "--tau-us", "200000", "--json").document
    assert paced["tau_us"] == 200_000
    assert (
        paced["throughput_mb_per_s"] < 20 * 6 * 1.05
    )  # twenty streams, five or six requests of 1 MiB a second
    rules = tmp_path / "a.rules"
    rules.write_text("1,2\n0,2147483647,0,2147483647,0,2147483647,100,0,200000\n")
    ruled = ascar("sim", "run", "random-write", *SHORT, "--rules", rules, "--json").document
    assert ruled["controller"] == "rules"
    assert ruled["throughput_mb_per_s"] < 20 * 6 * 1.05
    many = ascar("sim", "run", "random-write", *SHORT, "--set", "clients.count=7", "--json").document
    assert many["clients"] == 7


def test_plots_are_drawn(ascar, tmp_path):
    figures = tmp_path / "new" / "figures"
    document = ascar("sim", "run", "random-write", *SHORT, "--streams", "--plots", figures, "--json").document
    assert [Path(path).name for path in document["plots"]] == [
        "random-write-throughput.svg",
        "random-write-streams.svg",
    ]
    assert "virtual time" in (figures / "random-write-throughput.svg").read_text("utf-8")
    again = tmp_path / "again"
    ascar("sim", "run", "random-write", *SHORT, "--plots", again)
    name = "random-write-throughput.svg"
    assert (again / name).read_bytes() == (figures / name).read_bytes()
    done = ascar("sim", "run", "random-write", *SHORT, "--plots", again, "--plot-format", "png")
    assert (again / "random-write-throughput.png").read_bytes().startswith(b"\x89PNG")
    assert "plot: " in done.out


def test_a_sweep_has_points_a_best_and_a_gain(ascar, tmp_path):
    done = ascar(
        "sim", "sweep", "random-write", "random-read", *SHORT, "--windows", "1,8", "--taus-us", "0,200000",
        "--runs", "2", "--plots", tmp_path, "--json",
    )  # fmt: skip
    document = done.document
    assert [one["name"] for one in document["scenarios"]] == ["random-write", "random-read"]
    for one in document["scenarios"]:
        assert [(point["tau_us"], point["window"]) for point in one["points"]] == [
            (0, 1), (0, 8), (200_000, 1), (200_000, 8),
        ]  # fmt: skip
        assert one["best"]["tau_us"] == 0
        assert one["best"]["runs_per_side"] == 2
        assert one["baseline"]["figures"] == one["points"][1]["figures"]
    assert (tmp_path / "random-write-window.svg").exists()
    assert (tmp_path / "random-read-window.svg").exists()


def test_a_sweep_for_people(ascar):
    done = ascar(
        "sim", "sweep", "btio-b", *SHORT, "--windows", "4,16", "--figure", "throughput_while_active_mb_per_s"
    )
    assert done.status == 0, done.err
    assert "baseline" in done.out
    assert "best: window" in done.out
    assert "throughput_while_active_mb_per_s" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "random-wrte"), "did you mean 'random-write'"),
        (("run", "nothing.toml"), "No such file"),
        (("run", "random-write", "--duration", "soon"), "--duration = 'soon'"),
        (("run", "random-write", "--duration", "0 s"), "--duration"),
        (("run", "random-write", "--duration", "400 d"), "duration_s"),
        (("run", "random-write", "--runs", "0"), "--runs"),
        (("run", "random-write", "--window", "0"), "control.window"),
        (("run", "random-write", "--window", "nan"), "control.window = nan"),
        (("run", "random-write", "--tau-us", "-1"), "control.tau_us"),
        (("run", "random-write", "--set", "control.windw=3"), "did you mean 'window'"),
        (("run", "random-write", "--rules", "none.rules"), "No such file"),
        (("run", "random-write", "--plot-format", "gif"), "must be svg or png"),
        (("run", "random-write", "--seed", "99999999999999999999"), "seed"),
        (("run", "random-write", "--threads", "0"), "--threads"),
        (("sweep", "random-write", "--windows", "1,x"), "--windows = '1,x'"),
        (("sweep", "random-write", "--windows", ""), "--windows = ''"),
        (("sweep", "random-write", "--windows", "1e9"), "control.window"),
        (("sweep", "random-write", "--figure", "speed"), "figure = 'speed'"),
        (("sweep", "random-write", "--set", "control.controller=vegas"), "must be 'fixed'"),
    ],
)
def test_bad_input_is_one_line_and_status_2(ascar, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    done = ascar("sim", *arguments)
    assert done.status == 2
    assert said in done.error
    assert done.out == ""
    assert list(tmp_path.glob("*.svg")) == []


def test_a_mistake_in_a_file_is_a_document_too(ascar, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(LEAST.replace("count = 2", "count = 'two'"))
    done = ascar("sim", "run", path, "--json")
    assert done.status == 2
    problem = done.document["error"]
    assert problem["kind"] == "ScenarioError"
    assert problem["message"] == "clients[0].count = 'two': must be a whole number, without quotes"


def test_a_rule_set_that_is_none_is_refused(ascar, tmp_path):
    for content in (b"", b"hello\n", b"\xff\n", b"1,2\n0,1,0,1,0,1,100,0,0\n"):
        path = tmp_path / "bad.rules"
        path.write_bytes(content)
        done = ascar("sim", "run", "random-write", "--rules", path)
        assert done.status == 2, content
        assert "rules" in done.error


def test_plots_never_replace_a_file_by_a_folder(ascar, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    assert "is a file" in ascar("sim", "run", "random-write", *SHORT, "--plots", path).error
    assert path.read_text() == "mine"


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(line.split()[1] for line in status if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_an_interrupt_ends_a_long_run_at_once(tmp_path):
    command = [
        sys.executable,
        "-m",
        "ascar",
        "sim",
        "run",
        "random-write",
        "--duration",
        "100000 s",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            end_s = time.monotonic() + 100
            while not catches(process.pid, signal.SIGTERM):  # so it does once the command has begun
                assert process.poll() is None
                assert time.monotonic() < end_s
                time.sleep(0.01)
            time.sleep(0.5)
            os.kill(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=100)
        finally:
            process.kill()  # else a failure would wait for its end
    assert process.returncode == 130, err
    assert json.loads(out)["error"]["exit_status"] == 130


def test_progress_says_how_far_and_how_long():
    line = line_of(BatchProgress(3, 12, 0.25), 10.0, "random-write")
    assert line == " 25%  3 of 12 runs, about 30 s left  (random-write)"
    assert line_of(BatchProgress(0, 1, 0.0), 3.0) == "  0%  0 of 1 runs"
