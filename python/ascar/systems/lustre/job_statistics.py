"""What the servers of a file system count for the load's job, and for all others.

Lustre counts requests by job: a client labels each with the job's ID, which `jobid_var` says where to find
(Lustre Operations Manual, Lustre Jobstats).
"""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING

from ascar.errors import StudyError
from ascar.systems.lustre.clients import LustreNode, ask_each, machines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_log = logging.getLogger(__name__)

COUNTED = ("read_bytes", "write_bytes", "metadata_operations")
_CALLS_OF_A_TRIAL = 3  # when the study begins, and before and after its first load
_ID = re.compile(r"[\x21-\x7e]{1,31}")  # Lustre keeps no more
_BY_ENVIRONMENT = "the variable of that name is not set here; set it, or name the load's job: job = "


class JobStatistics:
    """Totals of the load's job and of the others, which only grow although servers forget idle jobs.

    Args:
        tables: the `[[node]]` tables of the servers.
        program: `lctl` there.
        file_system: the name of the file system.
        job: the load's job ID.

    Raises:
        StudyError: a table is wrong.
    """

    def __init__(self, tables: Sequence[Mapping[str, Any]], program: str, file_system: str, job: str) -> None:
        self.job = job
        self._servers = machines(tables, program, file_system)
        self._last: dict[tuple[str, str, str], dict[str, float]] | None = None
        self._calls, self._is_seen = 0, False
        self._totals = {f"{whose}_{name}": 0.0 for whose in ("job", "others") for name in COUNTED}

    def counters(self) -> dict[str, float]:
        """The totals since the first call, named by `job_` or `others_` and what is counted.

        Raises:
            StageFailed: `lctl` of a server fails, or it is none of this file system.
            EnvironmentLacks: a server cannot be reached.
        """
        present = {
            (server.prefix, *device_and_job): counted
            for server, found in zip(self._servers, ask_each(self._servers, _counted), strict=True)
            for device_and_job, counted in found.items()
        }
        self._calls += 1
        self._is_seen = self._is_seen or any(key[2] == self.job for key in present)
        if not self._is_seen and self._calls == _CALLS_OF_A_TRIAL:
            _log.warning(
                "target.job = %r: no server has counted it under the first load; its totals stay 0", self.job
            )
        for key, counted in present.items():
            before = counted if self._last is None else self._last.get(key, {})
            whose = "job" if key[2] == self.job else "others"
            for name, value in counted.items():
                # A server that has forgotten a job counts it from 0 again.
                seen = before.get(name, 0.0)
                self._totals[f"{whose}_{name}"] += value - seen if value >= seen else value
        self._last = present
        return dict(self._totals)


def _counted(server: LustreNode) -> dict[tuple[str, str], dict[str, float]]:
    return server.lctl.jobs()


def load_job(job: str | None, variable: str) -> str:
    """The ID of the load's job.

    Args:
        job: as the study has it. None: the value of the environment variable.
        variable: `jobid_var` of the client.

    Raises:
        StudyError: the client labels no requests, or the study has to name the job.
    """
    if variable in ("", "disable"):
        raise StudyError(
            f"target.servers: the client labels no requests (jobid_var = {variable!r:.80}); "
            "set it: lctl set_param jobid_var=procname_uid"
        )
    found = os.environ.get(variable) if job is None else job
    if found is None:
        raise StudyError(f'target.job: missing; jobid_var = {variable!r:.80}: {_BY_ENVIRONMENT}"fio.0"')
    if not _ID.fullmatch(found):
        raise StudyError(f"target.job = {found!r:.80}: must be a job ID of at most 31 signs")
    return found
