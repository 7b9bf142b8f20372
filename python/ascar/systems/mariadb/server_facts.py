"""What a MariaDB server that others run says of itself, and why it may not be tuned."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.catalogues.mariadb import VERSION_MIN
from ascar.errors import EnvironmentLacks, Refused, WorkError
from ascar.quoting import sql_literal
from ascar.systems.existing.process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.systems.mariadb.connection import MariaAddress, MariaSession

_STARTED = (
    "SELECT UNIX_TIMESTAMP() - VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
    "WHERE VARIABLE_NAME = 'UPTIME'"
)
_APART_S = 3.0
_LOCK, _LOCK_S = "ascar", 3
_REPLICATES = "SHOW ALL SLAVES STATUS"
_RIGHTS = "SUPER, BINLOG ADMIN, CONNECTION ADMIN, SLAVE MONITOR"
"""Up to 10.11, SUPER has the others; from 11.0 on, each is of its own (MariaDB documentation, "GRANT").

They are for settings of the binary log, for those of the pool of threads and a connection where clients have
taken all, and to see whether the server is a replica.
"""

READS = (
    "SHOW GLOBAL VARIABLES",
    "SHOW GLOBAL STATUS",
    "SHOW STATUS",
    _REPLICATES,
    "SELECT ... FROM information_schema.SYSTEM_VARIABLES",
    _STARTED,
    f"SELECT GET_LOCK('{_LOCK}', {_LOCK_S})",
)
"""Every statement of a study beside SET GLOBAL, in short."""


@dataclass(frozen=True, slots=True)
class MariaFacts:
    """What a server says of itself.

    Attributes:
        name: HOST:PORT or the path of the socket, by which a user confirms that this server may be tuned.
        identity: its host's name, its port and its directory of data.
        started_s: when it was started, by its own clock.
        version: the version as the server says it.
        is_local: whether it is reached by a socket or the loopback of this machine.
        process: its process, where that is one of this machine.
    """

    name: str
    identity: str
    started_s: float
    version: str
    is_local: bool
    process: ServerProcess | None

    @property
    def lock(self) -> str:
        """The name of the lock that a study of it takes."""
        return f"mariadb:{self.identity}"

    @classmethod
    def of(cls, session: MariaSession, address: MariaAddress) -> MariaFacts:
        """Those of the server of a session.

        Raises:
            EnvironmentLacks: the version is too old, or it is MySQL.
            StageFailed: the server does not answer.
        """
        told = session.variables()
        version = told.get("version", "")
        found = re.match(r"(\d+)\.(\d+)\.", version)
        if found is None or "MariaDB" not in version:
            raise EnvironmentLacks(f"{address.name}: version {version!r:.60}: must be MariaDB")
        if (int(found[1]), int(found[2])) < VERSION_MIN:
            least = ".".join(map(str, VERSION_MIN))
            raise EnvironmentLacks(f"MariaDB {version!r:.60}: must be {least} or newer")
        uptime_s = _number(session.status().get("Uptime"))
        return cls(
            name=address.name,
            identity=identity_of(told),
            started_s=started_s(session),
            version=version,
            is_local=address.is_local,
            process=_process(told.get("pid_file", ""), uptime_s) if address.is_local else None,
        )

    def check_same(self, session: MariaSession) -> None:
        """See that the server is the one that the study began on.

        Raises:
            WorkError: it is not, or others write now, so that what was measured before does not compare.
        """
        told = session.variables()
        if identity_of(told) != self.identity:
            raise WorkError("another server answers in mid-study; the study ends")
        if not is_same_start(started_s(session), self.started_s):
            raise WorkError("the server was started anew in mid-study; the study ends")
        if _is_read_only(told):
            raise WorkError("the server became read-only in mid-study, as in a fail-over; the study ends")


def identity_of(told: Mapping[str, str]) -> str:
    """What tells servers apart."""
    return ":".join(told.get(name, "") for name in ("hostname", "port", "datadir"))


def started_s(session: MariaSession) -> float:
    """When the server was started, by its own clock.

    Raises:
        StageFailed: the server does not answer.
    """
    return _number(session.ask(_STARTED).strip())


def is_same_start(one_s: float, other_s: float) -> bool:
    """Whether two moments are those of one start; the server tells whole seconds."""
    return abs(one_s - other_s) <= _APART_S


def check_mariadb_tunable(session: MariaSession, address: MariaAddress) -> None:
    """See that nothing of the server itself speaks against a study; reads only.

    Raises:
        Refused: it is a replica, a node of a Galera cluster, read-only, or tuned by another study.
    """
    told, name = session.variables(), address.name
    if _replicates(session):
        raise Refused(
            f"{name}: is a replica; tune the primary (or, where it is a replica no more, run RESET SLAVE ALL)"
        )
    if told.get("wsrep_on", "OFF") == "ON":
        raise Refused(
            f"{name}: is a node of a Galera cluster, whose nodes should have the same settings; tune a "
            "server of the study's own (leave target.server out), and put the result on each node"
        )
    if _is_read_only(told):
        raise Refused(f"{name}: is read-only, as a replica is; tune the primary")
    if not lock_server(session, _LOCK_S):
        raise Refused(f"{name}: is tuned by another study at this moment; wait for that study or stop it")


def lock_server(session: MariaSession, wait_s: int) -> bool:
    """Take the lock of studies, which a session holds until it ends; False: another one has it.

    Args:
        session: the session.
        wait_s: seconds to wait for it.

    Raises:
        StageFailed: the server does not answer.
    """
    return session.ask(f"SELECT GET_LOCK('{_LOCK}', {wait_s})").strip() == "1"


def mariadb_rights(session: MariaSession | None, user: str | None = None) -> str:
    """The statement that gives a user the rights for a study.

    Args:
        session: tells the user. None: nobody has asked the server yet.
        user: the user's name, where there is no session; None: nobody knows it.
    """
    asked = f"{user or 'USER'}@HOST" if session is None else session.ask("SELECT CURRENT_USER()").strip()
    name, _, host = asked.rpartition("@")
    return f"GRANT {_RIGHTS} ON *.* TO {sql_literal(name)}@{sql_literal(host)}"


def _replicates(session: MariaSession) -> bool:
    """Whether the server follows a primary, or is set up to; who may not know it is told of what runs."""
    try:
        return bool(session.ask(_REPLICATES).strip())
    except Refused:
        return _number(session.status().get("Slaves_running")) > 0


def _is_read_only(told: Mapping[str, str]) -> bool:
    """Whether clients may not write; MariaDB 12 has words for several degrees of that."""
    return told.get("read_only", "OFF") != "OFF"


def _process(pid_file: str, uptime_s: float) -> ServerProcess | None:
    with suppress(OSError, ValueError):
        pid = int(Path(pid_file).read_text("utf-8"))
        return ServerProcess.found(pid, uptime_s, ("mariadb", "mysqld"))
    return None


def _number(text: str | None) -> float:
    try:
        return float(text or "0")
    except ValueError:
        return 0.0
