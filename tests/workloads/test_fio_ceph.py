"""fio's engines for Ceph, without a cluster; with one, they run in tests/systems/test_ceph.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.program.ceph import CephPrograms
from ascar.workloads import LoadTiming
from ascar.workloads.fio import Fio
from ascar.workloads.fio_ceph import CephJobs
from ascar.workloads.fio_job import FioJob, parse_job
from ascar.workspace import Workspace
from own_servers import ceph_installed

if TYPE_CHECKING:
    from pathlib import Path

OBJECTS = {"ioengine": "rados", "rw": "randrw", "bs": "4k", "size": "1m", "nrfiles": 4, "rate_iops": "9,9"}
needs_ceph = pytest.mark.skipif(not ceph_installed(), reason="Ceph is not installed, or has no account")


def jobs(common: dict[str, str], *sections: dict[str, str]) -> FioJob:
    return FioJob(common, {f"job{number}": one for number, one in enumerate(sections)})


def test_engines_that_work_on_files_are_none_of_its() -> None:
    assert CephJobs.of(jobs({"size": "1m"}, {"ioengine": "libaio"}, {})) is None


@needs_ceph
def test_the_fill_writes_everything_once_in_blocks_as_large_as_fit() -> None:
    ceph = CephJobs.of(
        jobs({"ioengine": "rados", "rate_iops": "9"}, {"size": "3m", "nrfiles": "4", "rw": "randread"})
    )
    assert ceph is not None
    assert ceph.fill().common == {"ioengine": "rados"}
    filled = ceph.fill().sections["job0"]
    assert filled == {"size": "3m", "nrfiles": "4", "rw": "write", "iodepth": "16", "bs": str(1 << 18)}
    assert ceph.dataset_bytes == 3 << 20


@needs_ceph
def test_jobs_share_an_image() -> None:
    image = {"ioengine": "rbd", "numjobs": "4"}
    ceph = CephJobs.of(jobs(image, {"size": "8m"}, {"size": "4m"}))
    assert ceph is not None
    assert ceph.dataset_bytes == 8 << 20
    assert ceph.fill().sections["job0"]["bs"] == str(4 << 20)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            [{"ioengine": "rados", "size": "1m"}, {"ioengine": "libaio"}],
            "is libaio and rados: must be the same",
        ),
        ([{"ioengine": "rados", "size": "1m"}, {"ioengine": "rbd"}], "is rados and rbd: must be the same"),
        ([{"ioengine": "rbd"}], "'job0': ioengine = 'rbd': needs size in bytes"),
        ([{"ioengine": "rados", "size": "50%"}], "needs size in bytes"),
        ([{"ioengine": "rados", "size": "1k", "nrfiles": "4"}], "at least 512 for each object"),
        ([{"ioengine": "rados", "size": "1000001"}], "a multiple of it"),
        ([{"ioengine": "rados", "size": "1m", "nrfiles": "3"}], "a multiple of it"),
        ([{"ioengine": "rbd", "size": "1m", "nrfiles": "2"}], "nrfiles: must be 1; rbd has one image"),
    ],
)
def test_jobs_that_cannot_be_filled_are_refused_in_one_line(
    sections: list[dict[str, str]], said: str
) -> None:
    with pytest.raises(StudyError, match=said) as refused:
        CephJobs.of(jobs({}, *sections))
    assert "\n" not in refused.value.message


def test_a_job_file_cannot_name_a_pool_an_image_or_a_configuration() -> None:
    for option in ("pool", "rbdname", "conf", "clientname", "clustername"):
        with pytest.raises(StudyError, match="is not among fio's options that a load may use"):
            parse_job("workload.job = 'x'", f"[a]\nioengine=rados\n{option}=other\n")


def test_without_ceph_the_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: Any = None) -> None:
        raise EnvironmentLacks("ceph-osd is not installed; install the package ceph-osd")

    monkeypatch.setattr(CephPrograms, "find", missing)
    with pytest.raises(EnvironmentLacks, match="install the package"):
        CephJobs.of(jobs({}, {"ioengine": "rados", "size": "1m"}))


@needs_ceph
def test_without_a_cluster_it_says_what_it_needs(tmp_path: Path) -> None:
    load = Fio({"options": OBJECTS})
    assert load.describe()["dataset_bytes"] == 1 << 20
    with pytest.raises(StageFailed, match=r"engine rados: .*needs target\.kind = 'ceph'"):
        load.prepare(Workspace(tmp_path))
    with pytest.raises(StageFailed, match=r"engine rados: .*needs target\.kind = 'ceph'"):
        load.run(Workspace(tmp_path), LoadTiming(0.1, 0.1, 0.1, lambda _: False))
