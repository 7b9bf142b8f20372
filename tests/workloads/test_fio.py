"""fio as a load: really run."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.testing import WorkloadContract
from ascar.workloads import LoadTiming, open_workload
from ascar.workloads.fio import Fio
from ascar.workspace import Workspace
from waiting import until

# A load at full speed would take the processors from the tests beside it.
SLOW = {"rate_iops": "1000,1000"}
SMALL = {"rw": "randrw", "bs": "4k", "size": "1m", "numjobs": 2, "fsync": 8, "overwrite": True, **SLOW}


def never(series):
    return False


def pace(load_max_s=1.0, reading_s=0.1, may_end=never, load_min_s=0.3):
    return LoadTiming(load_min_s, load_max_s, reading_s, may_end)


@pytest.mark.parametrize("given", [{"options": SMALL}, {"scale": 0.02}], ids=["options", "preset"])
class TestFioContract(WorkloadContract):
    @pytest.fixture(autouse=True)
    def _given(self, given, directory):
        self.given, self.directory = given, directory

    def make(self):
        return Fio(self.given)

    @contextmanager
    def place(self):
        yield Workspace(self.directory)


def test_it_is_the_kind_fio():
    assert isinstance(open_workload({"kind": "fio", "options": SMALL}), Fio)


def test_the_default_is_small_files_made_durable():
    described = Fio({}).describe()
    assert described["preset"] == "small-files-fsync"
    assert described["dataset_bytes"] == 4 * 250 * 16384
    assert described["version"].startswith("fio-")


def test_a_fill_lays_out_the_data_and_a_run_reads_and_writes_it(place, with_readings):
    load = Fio({"options": SMALL})
    load.prepare(place)
    assert sorted(path.stat().st_size for path in place.directory.iterdir()) == [2**20, 2**20]
    assert load.describe()["dataset_bytes"] == 2 * 2**20
    readings = with_readings(2, lambda load_s: load.run(place, pace(load_s)))
    names = {"throughput_ops_per_s", "read_ops_per_s", "write_ops_per_s", "bytes_per_s", "latency_ms_mean"}
    assert names <= set(readings.series)
    # A reading that is late is longer.
    assert len(readings.series["throughput_ops_per_s"]) <= 20 * max(1, readings.load_s)
    for metric in ("latency_ms", "read_latency_ms", "write_latency_ms", "fsync_latency_ms"):
        ordered = [readings.metrics[f"{metric}_{name}"] for name in ("p50", "p95", "p99", "p999", "max")]
        assert ordered == sorted(ordered)
        assert ordered[0] > 0
    reads, writes = readings.metrics["read_ops_per_s"], readings.metrics["write_ops_per_s"]
    assert readings.metrics["throughput_ops_per_s"] == pytest.approx(reads + writes)
    assert readings.metrics["bytes_per_s"] == pytest.approx(4096 * (reads + writes), rel=0.01)
    assert readings.ended == "time"
    assert 0.8 <= readings.load_s < 60


def test_readings_add_up_to_the_whole(place):
    load = Fio({"options": SMALL})
    load.prepare(place)
    readings = load.run(place, pace(2.0))
    series = readings.series["throughput_ops_per_s"]
    intervals = [series.seconds[0], *(series.seconds[1:] - series.seconds[:-1])]
    told = float(sum(value * seconds for value, seconds in zip(series.values, intervals, strict=True)))
    assert told == pytest.approx(readings.metrics["operations"], rel=0.25)


def test_it_ends_when_it_is_enough(place):
    load = Fio({"options": SMALL})
    load.prepare(place)
    start_s = time.monotonic()
    readings = load.run(place, pace(60.0, may_end=lambda series: len(series["throughput_ops_per_s"]) >= 5))
    assert time.monotonic() - start_s < 50
    assert readings.ended == "enough"
    assert readings.metrics["latency_ms_p99"] > 0
    assert 0.3 <= readings.load_s < 50


def test_enough_is_not_asked_before_the_least_time(place):
    load = Fio({"options": SMALL})
    load.prepare(place)
    asked: list[float] = []

    def may_end(series):
        asked.append(float(series["throughput_ops_per_s"].seconds[-1]))
        return False

    load.run(place, pace(1.0, 0.1, may_end, load_min_s=0.6))
    assert asked
    assert min(asked) >= 0.6


def test_a_job_file_is_run(tmp_path, place):
    (tmp_path / "job.fio").write_text(
        "[global]\nrw=write\nrate_iops=1000\ndirectory=/nowhere\nruntime=99\n[a]\nsize=1m\n[b]\nsize=2m\n"
    )
    load = Fio({"job": str(tmp_path / "job.fio")})
    assert load.describe()["replaced"] == ["directory", "runtime"]
    assert load.describe()["dataset_bytes"] == 3 * 2**20
    load.prepare(place)
    readings = load.run(place, pace())
    assert readings.metrics["write_ops_per_s"] > 0
    assert {path.name for path in place.directory.iterdir()} == {"a.0.0", "b.0.0"}


def test_a_directory_with_a_colon_is_one_directory(directory):
    place = directory / "a:b"
    place.mkdir()
    Fio({"options": SMALL}).prepare(Workspace(place))
    assert len(list(place.iterdir())) == 2


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a file system to fill")
def test_a_full_disk_fails_the_fill(place):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(place.directory)], check=True)
    try:
        with pytest.raises(StageFailed, match="No space left on device; make the target larger") as failed:
            Fio({"options": SMALL | {"size": "8m"}}).prepare(place)
        assert failed.value.stage == "fill"
    finally:
        subprocess.run(["umount", str(place.directory)], check=True)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs fio as another user")
def test_it_runs_as_the_workspaces_user(directory):
    entry = pwd.getpwnam("nobody")
    os.chown(directory, entry.pw_uid, entry.pw_gid)
    load, place = Fio({"options": SMALL}), Workspace(directory, user="nobody")
    load.prepare(place)
    assert {path.stat().st_uid for path in directory.iterdir()} == {entry.pw_uid}
    assert load.run(place, pace()).metrics["operations"] > 0


def test_files_that_vanish_fail_the_load(place):
    load = Fio({"options": SMALL})
    load.prepare(place)
    for path in place.directory.iterdir():
        path.unlink()
        path.mkdir()
    with pytest.raises(StageFailed) as failed:
        load.run(place, pace())
    assert failed.value.stage == "load"


def test_a_load_that_hangs_is_killed_with_its_jobs(place):
    load = Fio({"options": SMALL | {"thinktime": "60s", "thinktime_blocks": 1}, "overrun_limit": "1 s"})
    load.prepare(place)
    with pytest.raises(StageFailed, match=r"ran longer than its limit of 1\.5 s and was killed") as failed:
        load.run(place, pace(0.5))
    assert failed.value.stage == "load"
    # What was killed takes a moment to end; fio thinks for a minute.
    until(lambda: str(place.directory) not in map(_where, Path("/proc").glob("[0-9]*")), 30)


def _where(process: Path) -> str:
    try:
        return str((process / "cwd").readlink())
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"presets": "x"}, "workload.presets: unknown key; allowed here: preset, options"),
        ({"preset": "mailserver"}, "workload.preset = 'mailserver': must be one of small-files-fsync"),
        ({"preset": 1}, "workload.preset = 1: must be"),
        ({"scale": 0}, "workload.scale = 0.0: must be from 0.001 to 10000"),
        ({"scale": float("nan")}, "workload.scale = nan: must be from"),
        ({"scale": 2, "options": SMALL}, "workload.scale = 2.0: applies only to presets"),
        (
            {"preset": "small-files-fsync", "options": SMALL},
            "workload.options: cannot be given together with workload.preset",
        ),
        ({"job": "/proc/absent.fio"}, "workload.job = '/proc/absent.fio': No such file or directory"),
        ({"job": "/etc"}, "workload.job = '/etc': Is a directory"),
        ({"options": {"rw": "sideways"}}, "workload.options.rw = 'sideways': must be one of"),
        ({"options": {"rw": "read", "bs": "abc"}}, "fio --parse-only refuses the job: .*bs=abc"),
        ({"options": {"rw": "read", "exec_prerun": "id"}}, "workload.options.exec_prerun"),
        ({"fill_limit": "soon"}, "workload.fill_limit = 'soon'"),
        ({"overrun_limit": "0 s"}, "workload.overrun_limit = '0 s': must be longer than zero"),
    ],
)
def test_mistakes_are_named(options, problem):
    with pytest.raises(StudyError, match=problem) as error:
        Fio(options)
    assert "\n" not in error.value.message


def test_a_job_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "huge.fio").write_bytes(b"x" * 100_000)
    (tmp_path / "binary.fio").write_bytes(b"\xff\xff")
    with pytest.raises(StudyError, match="larger than"):
        Fio({"job": str(tmp_path / "huge.fio")})
    with pytest.raises(StudyError, match="is not UTF-8 text"):
        Fio({"job": str(tmp_path / "binary.fio")})


def test_a_missing_fio_is_named_with_its_packages(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match=r"apt install fio.*dnf install fio"):
        Fio({})


def test_words_of_a_program_that_only_looks_like_fio_are_kept(monkeypatch, tmp_path):
    fake = tmp_path / "bin" / "fio"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\ncase "$*" in *--version*) echo fio-9;; *create_only*|*parse-only*) ;; '
                    '*) echo "no JSON today"; echo "sorry" >&2;; esac\n')  # fmt: skip
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(StageFailed, match="fio reported nothing that can be read") as failed:
        Fio({}).run(Workspace(place), pace())
    assert failed.value.stderr == "sorry\n"


def test_fio_is_here():
    assert shutil.which("fio"), "these tests need fio: `make setup` installs it"
