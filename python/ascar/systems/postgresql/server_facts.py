"""What a server that others run says of itself, and why it may not be tuned."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.catalogues.postgresql import VERSION_MIN
from ascar.errors import EnvironmentLacks, Refused, StageFailed, WorkError
from ascar.systems.postgresql.auto_configuration import FILE
from ascar.systems.postgresql.connection import APPLICATION

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.systems.postgresql.connection import PsqlSession

_LEAVING_S, _LOOK_S = 3.0, 0.1

_IDENTITY = """SELECT (SELECT system_identifier FROM pg_control_system()),
 extract(epoch FROM pg_postmaster_start_time()), pg_is_in_recovery(),
 CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"""
_FACTS = """SELECT current_setting('server_version_num'), current_setting('server_version'),
 current_setting('is_superuser'), current_setting('max_connections'), inet_server_addr() IS NULL,
 current_user, current_setting('cluster_name')"""
_OTHERS = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{APPLICATION}'"  # noqa: S608
_PATRONI = "SELECT count(*) FROM pg_stat_activity WHERE application_name ILIKE 'patroni%'"
_PATRONI_FILE = "SELECT count(*) FROM pg_stat_file('patroni.dynamic.json', true) f WHERE f.size IS NOT NULL"
_ALTER_SYSTEM = "SELECT count(*) FROM pg_settings WHERE name = 'allow_alter_system' AND setting = 'off'"
_STANDBYS = """SELECT (SELECT count(*) FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup')
 + (SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'physical')"""
_RIGHTS = """SELECT has_function_privilege('pg_reload_conf()', 'EXECUTE'),
 has_function_privilege('pg_read_file(text)', 'EXECUTE'), pg_has_role('pg_read_all_settings', 'USAGE')"""
_NOT_LOADED = """SELECT string_agg(sourcefile, ', ') FROM (SELECT DISTINCT sourcefile FROM pg_file_settings) f
 WHERE sourcefile NOT LIKE '%/postgresql.auto.conf'
 AND (pg_stat_file(sourcefile)).modification > pg_conf_load_time()"""
_OVERRIDDEN = """SELECT split_part(c, '=', 1), coalesce('role ' || r.rolname, '') ||
 CASE WHEN r.rolname IS NULL OR d.datname IS NULL THEN '' ELSE ' in ' END ||
 coalesce('database ' || d.datname, '')
 FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) c
 LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase"""

_SOURCES = "SELECT name, source FROM pg_settings WHERE source IN ('command line', 'client')"
_SOURCE = {
    "command line": "the server was started with a value for it on its command line (-c)",
    "client": "our session has a value of its own for it (PGOPTIONS, or options of the service)",
}


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Which server answers, and since when.

    Attributes:
        identifier: the system identifier, which a data directory has for life.
        started_s: the time of its start, in seconds since 1970.
        in_recovery: whether it is a standby.
        timeline: the timeline of its log, which is a new one after a failover; "" of a standby.
    """

    identifier: str
    started_s: float
    in_recovery: bool
    timeline: str

    @classmethod
    def of(cls, session: PsqlSession) -> ServerIdentity:
        """That of the server of a session.

        Raises:
            StageFailed: the server does not answer.
        """
        identifier, started, recovery, timeline = session.ask(_IDENTITY).strip("\n").split("|")
        return cls(identifier, float(started), recovery == "t", timeline)

    def check_same(self, now: ServerIdentity) -> None:
        """See that the server is the one that the study began on.

        Raises:
            WorkError: it is not, so that what was measured before does not compare.
        """
        if now.identifier != self.identifier:
            raise WorkError(
                f"another server answers in mid-study: its system identifier is {now.identifier}, not "
                f"{self.identifier}; the study ends"
            )
        if now.timeline != self.timeline and not now.in_recovery:
            raise WorkError(
                "another server took over in mid-study (its timeline is a new one); the study ends"
            )
        if now.in_recovery:
            raise WorkError("the server became a standby in mid-study; the study ends")
        if now.started_s != self.started_s:
            raise WorkError("the server was started anew in mid-study; the study ends")


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says of itself.

    Attributes:
        name: HOST:PORT/CLUSTER, by which a user confirms that this server may be tuned.
        identity: which server it is.
        version: the version as the server says it.
        major: the major version.
        is_superuser: whether the role is one.
        role: the role.
        max_connections: the connections that the server takes.
        is_local: whether it is reached by a socket of this machine.
        data_directory: the data directory; None: the role may not know it.
    """

    name: str
    identity: ServerIdentity
    version: str
    major: int
    is_superuser: bool
    role: str
    max_connections: int
    is_local: bool
    data_directory: str | None

    @property
    def lock(self) -> str:
        """The name of the lock that a study of it takes."""
        return f"postgresql:{self.identity.identifier}"

    @classmethod
    def of(cls, session: PsqlSession) -> ServerFacts:
        """Those of the server of a session.

        Raises:
            EnvironmentLacks: the version is too old, or none.
            StageFailed: the server does not answer.
        """
        number, version, superuser, connections, local, role, cluster = (
            session.ask(_FACTS).strip("\n").split("|", 6)
        )
        if not number.isdecimal() or int(number) < VERSION_MIN * 10_000:
            raise EnvironmentLacks(
                f"PostgreSQL {version!r:.40}: must be {VERSION_MIN} or newer; ascar knows no older settings"
            )
        identity = ServerIdentity.of(session)
        directory = ""
        with suppress(StageFailed):
            directory = session.ask("SELECT setting FROM pg_settings WHERE name = 'data_directory'").strip()
        return cls(
            name=f"{session.host}:{session.port}/{cluster or identity.identifier}",
            identity=identity,
            version=version.split(" ")[0],
            major=int(number) // 10_000,
            is_superuser=superuser == "on",
            role=role,
            max_connections=int(connections),
            is_local=local == "t",
            data_directory=directory or None,
        )


def check_tunable(session: PsqlSession, facts: ServerFacts) -> None:
    """See that nothing of the server itself speaks against a study; reads only.

    Raises:
        Refused: it is a standby, managed by Patroni, tuned by another study, or not to be changed.
    """
    if facts.identity.in_recovery:
        raise Refused(f"{facts.name}: is a standby in recovery; tune the primary")
    if _count(session, _PATRONI) or _count(session, _PATRONI_FILE):
        raise Refused(
            f"{facts.name}: is managed by Patroni, which has a configuration for all members; tune "
            "a server of the study's own (leave target.server out), and give the result of `ascar export "
            "--as patroni` to `patronictl edit-config --apply`"
        )
    if _count(session, _ALTER_SYSTEM):
        raise Refused(
            f"{facts.name}: allow_alter_system = off; set it to on, or tune a server of the study's own"
        )
    if not _alone(session):
        raise Refused(
            f"{facts.name}: is tuned by another study at this moment; wait for that study or stop it"
        )
    changed = ""
    with suppress(StageFailed):  # who may not see the files cannot be told
        changed = session.ask(_NOT_LOADED).strip()
    if changed:
        raise Refused(
            f"{changed}: was changed after the server read it, and a study's reload would put that in force; "
            "reload the server first"
        )


def check_repairable(facts: ServerFacts) -> None:
    """See that the old values can be put back while the server is down, for a trial's may keep it down.

    Raises:
        Refused: they cannot.
    """
    data = None if facts.data_directory is None or not facts.is_local else Path(facts.data_directory)
    if data is None:
        raise Refused(
            f"{facts.name}: target.restarts = 'allowed' needs a server of this machine that is reached by "
            "its socket, and whose data directory the role may know"
        )
    file = data / FILE
    if not os.access(data, os.W_OK | os.X_OK) or not os.access(file, os.R_OK | os.W_OK):
        raise Refused(
            f"{file}: you may not write it, which target.restarts = 'allowed' needs: a server that does not "
            "start with a trial's values cannot be asked to take them back; run ascar as the server's account"
        )


def check_rights(session: PsqlSession, facts: ServerFacts, names: Collection[str]) -> None:
    """See that the role may do what a study of these settings does.

    Raises:
        Refused: it may not; with the statements that allow it.
    """
    if facts.is_superuser:
        return
    denied = ""
    if names:
        listed = ", ".join(f"'{name}'" for name in sorted(names))
        denied = session.ask(
            f"SELECT string_agg(n, ', ') FROM unnest(ARRAY[{listed}]) n "  # noqa: S608 - names of the catalogue
            "WHERE NOT has_parameter_privilege(n, 'ALTER SYSTEM')"
        ).strip()
    lacks = "f" in session.ask(_RIGHTS).strip().split("|")
    if denied or lacks:
        raise Refused(
            f"role {facts.role}: lacks rights; let a superuser run: {'; '.join(grants(facts.role, names))}"
        )


def grants(role: str, names: Collection[str]) -> list[str]:
    """The statements that give a role the rights for a study, from version 15 on."""
    quoted = '"' + role.replace('"', '""') + '"'
    settings = ", ".join(sorted(names))
    return [
        *([f"GRANT ALTER SYSTEM ON PARAMETER {settings} TO {quoted}"] if names else []),
        f"GRANT EXECUTE ON FUNCTION pg_reload_conf(), pg_read_file(text) TO {quoted}",
        f"GRANT pg_read_all_settings, pg_read_all_stats TO {quoted}",
    ]


def overridden(session: PsqlSession) -> Mapping[str, str]:
    """The settings whose value is taken from what goes before ALTER SYSTEM, and from what.

    That is a value of a role or a database, the server's command line (as containers have it), or options of
    our own session, which hide the server's value from us.
    """
    rows = (row.split("|", 1) for row in session.ask(_OVERRIDDEN).splitlines() if "|" in row)
    of_whom = {
        name.lower(): f"{whose or 'all roles'} has a value of its own for it (ALTER ROLE or DATABASE ... SET)"
        for name, whose in rows
    }
    sources = (row.split("|") for row in session.ask(_SOURCES).splitlines() if "|" in row)
    return {**{name.lower(): _SOURCE[source] for name, source in sources}, **of_whom}


def has_standbys(session: PsqlSession) -> bool:
    """Whether standbys follow the server, or have a slot there; who reads an archive alone is not seen."""
    return _count(session, _STANDBYS) > 0


def _alone(session: PsqlSession) -> bool:
    """Whether no other study has a session; one that was killed just now may take a moment to go."""
    deadline_s = time.monotonic() + _LEAVING_S
    while _count(session, _OTHERS) > 1:
        if time.monotonic() > deadline_s:
            return False
        time.sleep(_LOOK_S)
    return True


def _count(session: PsqlSession, query: str) -> int:
    try:
        return int(session.ask(query).strip() or 0)
    except (StageFailed, ValueError):
        return 0  # what the role may not see; the rights are looked at elsewhere
