"""The target of kind "mariadb" with `server = "existing"`: a MariaDB server that people use.

[target]
kind = "mariadb"
server = "existing"
host = "127.0.0.1"               # or the path of its socket
port = 3306
user = "tuner"
password_file = "/etc/ascar/mariadb-password"

[target.tls]                     # the server has to speak TLS
ca = "/etc/ascar/mariadb-ca.pem"

Only settings that SET GLOBAL changes for every connection at once are changed. The server keeps its process,
its data and its clients, and my.cnf is never written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.catalogues.mariadb import mariadb
from ascar.program.mariadb import MariaPrograms
from ascar.quoting import my_cnf_text
from ascar.results.machine import Need
from ascar.study import convert
from ascar.systems import Announced, Sample, Starter
from ascar.systems.existing import ExistingTarget
from ascar.systems.mariadb.activity import METRICS, MariaActivity, statements
from ascar.systems.mariadb.connection import MariaSession, mariadb_client
from ascar.systems.mariadb.counters import TOLD, checkpoint_cycle_s, counters_of, gauges_of
from ascar.systems.mariadb.existing_options import (
    ExistingMariaDBOptions,
    check_mariadb_options,
    mariadb_address_of,
)
from ascar.systems.mariadb.live_settings import MariaLiveSettings
from ascar.systems.mariadb.live_values import TAKEN, as_taken
from ascar.systems.mariadb.server import at_socket
from ascar.systems.mariadb.server_facts import (
    READS,
    MariaFacts,
    check_mariadb_tunable,
    mariadb_rights,
)
from ascar.systems.mariadb.space import EXAMPLES, live_mariadb_space
from ascar.systems.mariadb.statements import forms_of
from ascar.systems.starter import PLAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration, Space
    from ascar.systems.keeper import Keeper

_OPERATIONS = "throughput_ops"


class ExistingMariaDB(ExistingTarget[MariaSession, MariaFacts]):
    """A MariaDB server that people use; its clients are the load where the study names none.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    kind = "mariadb"
    listed = staticmethod(mariadb)
    starter = Starter(
        target={"server": '"existing"', "parameters": '"expert"'},
        shown={
            "memory": '"8 GiB"',
            "host": '"/run/mysqld/mysqld.sock"',
            "port": "3306",
            "user": '"tuner"',
            "password_file": '"/etc/ascar/mariadb-password"',
            "tls": '{ ca = "/etc/ascar/mariadb-ca.pem" }',
        },
        space={**PLAIN, **EXAMPLES},
    )
    watched = METRICS
    nothing = "clients sent no statement"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, ExistingMariaDBOptions, "target")
        check_mariadb_options(self.options)
        super().__init__(self.options, live_mariadb_space(self.options.parameters, None, 0))
        self._address = mariadb_address_of(self.options)
        self._told: Mapping[str, str] = {}

    def _enter(self) -> None:
        super()._enter()
        options = self._address.tls_options()
        if options and self._directory is not None:
            # Clients have no variables for TLS: an option file has it, in a directory that a variable names.
            lines = (
                name if value is None else f"{name} = {my_cnf_text(value)}" for name, value in options.items()
            )
            text = "".join(f"{line}\n" for line in ("[client]", *lines))
            (self._directory / "my.cnf").write_text(text, "utf-8")

    def _connect(self) -> MariaSession:
        return MariaSession(self._address)

    def _facts_of(self, session: MariaSession) -> MariaFacts:
        return MariaFacts.of(session, self._address)

    def _check_tunable(self, session: MariaSession, facts: MariaFacts) -> None:  # noqa: ARG002
        check_mariadb_tunable(session, self._address)

    def _space_of(self, session: MariaSession, facts: MariaFacts) -> Space:  # noqa: ARG002
        self._told = session.variables()
        taken = as_taken(session.ask(TAKEN))
        return live_mariadb_space(self.options.parameters, self._told, self._memory_bytes, taken)

    def _settings_of(self, session: MariaSession, facts: MariaFacts, keeper: Keeper) -> MariaLiveSettings:
        return MariaLiveSettings(session, self._address, facts, keeper, self.space.default())

    def _activity(self, session: MariaSession, metrics: Collection[str]) -> MariaActivity:  # noqa: ARG002
        return MariaActivity(session)

    def _check_settings(self, session: MariaSession, names: Collection[str]) -> None:
        """Nothing more: what sessions copy is no setting of such a study."""

    def sample(self) -> Sample:
        """The server's status.

        Raises:
            StageFailed: the server does not answer.
            WorkError: it is not the server any more that the study began on, or another setting changed.
        """
        session = self._entered().unchanged_session()
        status = session.status()
        # The session of an online study makes a rate of it: throughput_ops_per_s.
        operations = statements(status, session.own_selects)
        return Sample({**counters_of(status), _OPERATIONS: operations}, gauges_of(status))

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters and gauges."""
        return TOLD | {_OPERATIONS}

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The time until the redo log is full, when a checkpoint is made at the latest."""
        log = mariadb()["innodb_log_file_size"].value(self._told.get("innodb_log_file_size", "0"))
        return checkpoint_cycle_s(configuration, metrics, float(log) if isinstance(log, int) else 0.0)

    @property
    def reached(self) -> Mapping[str, str]:
        """The client library's variables, and whom to connect as."""
        address = self._address
        user = {} if address.user is None else {"MARIADB_USER": address.user}
        if address.is_socket:
            return {**at_socket(address.host), **user}
        found = {"MYSQL_HOST": address.host, "MYSQL_TCP_PORT": str(address.port), **user}
        if address.tls is not None and self._directory is not None:
            found |= dict.fromkeys(("MARIADB_HOME", "MYSQL_HOME"), str(self._directory))
        return found

    @staticmethod
    def _programs() -> MariaPrograms:
        return MariaPrograms.find()

    def _described(self, facts: MariaFacts) -> Mapping[str, Any]:
        return {"mariadb": facts.version}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The lines of my.cnf, SET GLOBAL, and the commands that give these."""
        return forms_of(configuration, chosen)

    def announced(self, names: Collection[str]) -> Announced:
        """SET GLOBAL for each setting, and what is read; the right that a user needs."""
        return Announced(
            (*(f"SET GLOBAL {name} = ..." for name in names), *READS),
            (mariadb_rights(None, self.options.user),),
        )

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """MariaDB's client."""
        found, packages = mariadb_client(), ("mariadb-client", "mariadb")
        return (
            Need("mariadb", "the client that sets the server's variables", found, ("mariadb",), *packages),
        )
