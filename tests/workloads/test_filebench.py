"""Filebench workloads as loads of a study."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from ascar.errors import StageFailed, StudyError
from ascar.testing.workloads import WorkloadContract
from ascar.workloads import LoadTiming, Workload, open_workload
from ascar.workloads.filebench import Filebench
from ascar.workloads.filebench_report import Lines, identifier
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from ascar.results.measurement import Readings

pytestmark = pytest.mark.usefixtures("ascard")

WML = """
define fileset name=f,entries=50,size=8k,prealloc
define process name=p { thread name=t,instances=2 {
  flowop read name=rand-read,filesetname=f,iosize=4k,random,opennext
  flowop opslimit name=limit } }
eventgen rate=5000
"""


class TestMailserver(WorkloadContract):
    @pytest.fixture(autouse=True)
    def _directory(self, directory: Path) -> None:
        self.directory = directory

    def make(self) -> Workload:
        return Filebench({"personality": "mailserver", "scale": 0.2, "threads": 4})

    @contextmanager
    def place(self) -> Generator[Workspace]:
        yield Workspace(self.directory)

    def test_the_tail_is_no_part_of_the_load(self) -> None:
        assert 0 <= self.readings(self.pace).tail_s < 30  # on a machine of any pace

    def test_readings_agree_with_the_whole_run(self, with_readings: Callable[..., Readings]) -> None:
        readings = with_readings(3, lambda load_s: self.readings(replace(self.pace, load_max_s=load_s)))
        series = readings.series["throughput_ops_per_s"]
        mean = np.average(series.values, weights=np.diff(series.seconds, prepend=0.0))
        assert mean == pytest.approx(readings.metrics["throughput_ops_per_s"], rel=0.5)
        by_flowop = [value for name, value in readings.metrics.items() if name.endswith("1_ops_per_s")]
        assert len(by_flowop) >= 6
        assert readings.metrics["fsync1_latency_ms_p50"] <= readings.metrics["fsync1_latency_ms_p99"]
        assert readings.ended == "time"


class TestWorkloadFile(WorkloadContract):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.path = tmp_path / "own.f"
        self.path.write_text(WML)

    def make(self) -> Workload:
        return Filebench({"wml": str(self.path)})

    def test_names_become_identifiers(self) -> None:
        readings = self.readings()
        assert self.make().describe()["wml"] == WML
        assert "rand_read_ops_per_s" in readings.metrics
        assert not any("limit" in name for name in readings.metrics)
        # Paced: a busy machine does less, and none does more.
        assert 500 < readings.metrics["throughput_ops_per_s"] < 6500


def test_it_is_a_kind_of_load() -> None:
    assert isinstance(open_workload({"kind": "filebench"}), Filebench)


def test_it_describes_the_data_set() -> None:
    load = Filebench({"personality": "fileserver", "scale": 0.1})
    described = load.describe()
    assert described["personality"] == "fileserver-def"
    assert described["wml"] is None
    assert described["threads"] == 50
    assert described["dataset_bytes"] == pytest.approx(0.1 * 8000 * 131072)


def test_the_data_set_is_what_was_filled(tmp_path: Path) -> None:
    load = Filebench({"personality": "mailserver", "scale": 0.3})
    load.prepare(Workspace(tmp_path))
    files = [path for path in (tmp_path / "mailboxes").rglob("*") if path.is_file()]
    assert len(files) == 240
    assert load.describe()["dataset_bytes"] == sum(path.stat().st_size for path in files)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"personality": "nosuch"}, ["nosuch", "mailserver-def"]),
        ({"personality": "mailserver", "wml": "x"}, ["workload.wml"]),
        ({"wml": "/proc/absent.f"}, ["workload.wml", "/proc/absent.f"]),
        ({"scale": 0}, ["workload.scale"]),
        ({"threads": 0}, ["workload.threads"]),
        ({"seed": -1}, ["workload.seed"]),
        ({"threads": 10**30}, ["workload.threads"]),
        ({"fill_limit": "soon"}, ["workload.fill_limit"]),
        ({"persona": "x"}, ["persona"]),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], words: list[str]) -> None:
    with pytest.raises(StudyError) as caught:
        Filebench(options)
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)


def test_a_wrong_file_is_named_with_line_and_word(tmp_path: Path) -> None:
    path = tmp_path / "bad.f"
    path.write_text(WML.replace("flowop read", "flowop hg"))
    with pytest.raises(StudyError, match=r"bad\.f: line 4: 'hg'"):
        Filebench({"wml": str(path)})
    path.write_text("#" * 100_000)
    with pytest.raises(StudyError, match="larger than 59999 bytes; give the path of a workload file"):
        Filebench({"wml": str(path)})


def test_a_run_without_a_fill_fails_and_says_so(tmp_path: Path) -> None:
    load = Filebench({"personality": "mailserver", "scale": 0.1})
    pace = LoadTiming(0.1, 0.2, 0.1, lambda _: False)
    with pytest.raises(StageFailed, match="was not filled"):
        load.run(Workspace(tmp_path), pace)


def test_lines_that_are_cut_or_foreign_are_dropped() -> None:
    lines = Lines()
    reading = {"kind": "reading", "ops": 1, "bytes": 0, "flowops": {}, "seconds": 1.0, "interval_s": 1.0}
    rates = ("throughput_ops_per_s", "bytes_per_s", "read_bytes_per_s", "write_bytes_per_s")
    whole = msgspec.json.encode(reading | dict.fromkeys(rates, 1.0))
    assert not lines.feed(b'noise\n{"kind":"other"}\n[1]\n' + whole[:40])
    assert lines.feed(whole[40:] + b"\n" + whole + b"\n")
    assert len(lines.readings) == 1  # the second is no later than the first


@pytest.mark.parametrize(("name", "plain"), [("a-b.c", "a_b_c"), ("1st", "_1st"), ("ok_1", "ok_1")])
def test_identifiers(name: str, plain: str) -> None:
    assert identifier(name) == plain
