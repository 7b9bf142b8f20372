"""fio's engines for Ceph: `rados` works on objects of the target's pool, `rbd` on an image in it (fio(1)).

fio lays out files, but neither objects nor images, so that the fill is a job of its own: each job of the load
writes all of its objects, or of the image, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import StudyError
from ascar.program import Program
from ascar.program.ceph import USER, CephPrograms, cluster_of
from ascar.workloads.fio_job import FioJob, file_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.workspace import Workspace

CEPH_ENGINES = frozenset({"rados", "rbd"})
_IMAGE = "ascar-load"
_BLOCK_BYTES_MAX = 4 << 20
_BLOCK_BYTES_MIN = 512
_LAYOUT = frozenset({"filename", "filename_format", "filesize", "ioengine", "nrfiles", "numjobs", "size"})
"""The options that say what there is; the others say what is done with it."""
_FILL = {"rw": "write", "iodepth": "16"}


@dataclass(frozen=True, slots=True)
class CephJobs:
    """Jobs that work on a pool.

    Attributes:
        job: the jobs.
        engine: of all of them: "rados" or "rbd".
        file_bytes: the bytes of each object, or of the image as far as they use it, by job.
    """

    job: FioJob
    engine: str
    file_bytes: Mapping[str, int]

    @classmethod
    def of(cls, job: FioJob) -> CephJobs | None:
        """The jobs; None: their engines work on files.

        Raises:
            StudyError: some work on files and some do not, or on both of Ceph's kinds, or a size is open.
            EnvironmentLacks: Ceph's programs are missing.
        """
        merged = {name: {**job.common, **options} for name, options in job.sections.items()}
        engines = {options.get("ioengine", "psync") for options in merged.values()}
        if not engines & CEPH_ENGINES:
            return None
        if len(engines) > 1:
            raise StudyError(
                f"workload: ioengine: is {' and '.join(sorted(engines))}: must be the same in all jobs"
            )
        engine, sizes = engines.pop(), dict[str, int]()
        for name, options in merged.items():
            each = file_bytes(options)
            if not each or each % _BLOCK_BYTES_MIN:  # it is filled in blocks of a power of two
                raise StudyError(
                    f"workload: job {name!r}: ioengine = {engine!r}: needs size in bytes, at least "
                    f"{_BLOCK_BYTES_MIN} for each object and a multiple of it, e.g. size = '256m'"
                )
            if engine == "rbd" and options.get("nrfiles", "1") != "1":
                raise StudyError(f"workload: job {name!r}: nrfiles: must be 1; rbd has one image")
            sizes[name] = each
        CephPrograms.find()
        return cls(job, engine, sizes)

    @property
    def dataset_bytes(self) -> int | None:
        """Bytes of all objects, or of the image, which the jobs share."""
        return max(self.file_bytes.values()) if self.engine == "rbd" else self.job.dataset_bytes

    def place(self, workspace: Workspace) -> dict[str, str]:
        """The options that name the pool; `rbd` finds ceph.conf by the environment alone.

        Raises:
            StageFailed: the target has no cluster.
        """
        configuration, pool = self._cluster(workspace)
        own = {"rbdname": _IMAGE} if self.engine == "rbd" else {"conf": configuration}
        return {"clientname": workspace.environment.get(USER, "admin"), "pool": pool, **own}

    def image(self, workspace: Workspace, limit_s: float) -> Program | None:
        """What makes the image; None: there is none to make."""
        configuration, pool = self._cluster(workspace)
        if self.engine != "rbd":
            return None
        size = f"{max(self.file_bytes.values())}B"
        words = ["-c", configuration, "create", "--pool", pool, "--size", size]
        # Several jobs write to it, which would take its lock from each other.
        words += ["--image-feature", "layering", _IMAGE]
        return Program("fill", [CephPrograms.find().path("rbd"), *words], limit_s)

    def fill(self) -> FioJob:
        """The job that writes everything once, in blocks as large as fit."""
        common = {name: value for name, value in self.job.common.items() if name in _LAYOUT}
        sections = {
            name: {
                **{key: value for key, value in options.items() if key in _LAYOUT},
                **_FILL,
                "bs": str(min(_BLOCK_BYTES_MAX, self.file_bytes[name] & -self.file_bytes[name])),
            }
            for name, options in self.job.sections.items()
        }
        return FioJob(common, sections)

    def _cluster(self, workspace: Workspace) -> tuple[str, str]:
        return cluster_of(workspace.environment, f"fio's engine {self.engine}")
