"""The one place that speaks to the database engine: opening, transactions, and its errors in our words."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from ascar.errors import EnvironmentLacks, HistoryError
from ascar.extras import lacking
from ascar.history.migration import MIGRATIONS
from ascar.history.read_only import read_only_url
from ascar.history.schema import SCHEMA_VERSION, metadata, schema_version

if TYPE_CHECKING:
    from collections.abc import Generator

_BUSY_TIMEOUT_S = 30.0

# What SQLite says, and what it means to the user. The first fragment found in the message decides.
_CAUSES = (
    ("not a database", "is not a history, or is damaged; move it away, or put back a copy"),
    ("malformed", "is damaged; move it away, or put back a copy"),
    ("disk is full", "cannot be written: the disk is full; free some space, then go on with `--resume`"),
    ("disk i/o error", "cannot be read or written: the disk reports an error; see `dmesg`"),
    ("database is locked", "has been held by another process for too long; see `fuser` on that file"),
    ("readonly", "cannot be written: it is read-only; check its owner and mode"),
    ("unable to open", "cannot be opened; check that its directory exists and may be written"),
)


_WRITER = 0x6173636172
"""What whoever writes to a history in PostgreSQL holds: "ascar" in ASCII."""


class Database:
    """An engine on SQLite or another SQL database, with the schema brought up to date.

    Args:
        location: a file, or a SQLAlchemy URL such as "postgresql+psycopg://user@host/name".

    Raises:
        HistoryError: cannot be opened, is damaged, is not a history, or was written by a newer version.
        EnvironmentLacks: the driver of the database is not installed.
    """

    def __init__(self, location: Path | str) -> None:
        self.file: Path | None = None
        text = str(location)
        if isinstance(location, str) and "://" in location:
            url = _url(location)
            self.name = url.render_as_string(hide_password=True)
            if url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:"):
                self.file = Path(str(url.database))
        else:
            self.file = Path(location)
            self.name = text
            url = sa.URL.create("sqlite", database=text)
        readable = None if self.file is None else read_only_url(self.file)
        self._is_read_only = readable is not None
        url = readable or url
        with self._translated():
            if self.file is not None:
                self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._engine = sa.create_engine(url, **_options(url))
            except ModuleNotFoundError as error:
                if (extra := lacking(error)) is not None:
                    raise EnvironmentLacks(f"history {self.name}: {extra.message}") from error
                raise EnvironmentLacks(
                    f"history {self.name}: needs the Python package {error.name!r}, which is not installed; "
                    f"install {error.name} beside ascar, or name a file in ASCAR_HISTORY"
                ) from error
            if self._is_read_only:
                event.listen(self._engine, "begin", _begin_reading)
            elif url.get_backend_name() == "sqlite":
                event.listen(self._engine, "connect", _prepare_sqlite)
                event.listen(self._engine, "begin", _begin_sqlite)
        try:
            self._prepare_schema()
        except BaseException:
            self._engine.dispose()
            raise

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @contextmanager
    def read(self) -> Generator[sa.Connection]:
        """A transaction that sees one state of the history and changes nothing."""
        with self._transaction(writes=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Generator[sa.Connection]:
        """A transaction that happens as a whole or not at all."""
        with self._transaction(writes=True) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, writes: bool) -> Generator[sa.Connection]:
        with self._translated(), self._engine.connect() as connection:
            connection.execution_options(ascar_writes=writes)
            with connection.begin():
                if writes and connection.dialect.name == "postgresql":
                    # One writer at a time, as SQLite has it: runs read, decide and write.
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITER)))
                yield connection

    def _prepare_schema(self) -> None:
        """Create the tables, or bring older ones up to date; all of it or nothing."""
        with self.read() as connection:
            version = _version(connection)
            if version == SCHEMA_VERSION:
                return
            if self._is_read_only and 0 < version < SCHEMA_VERSION:
                raise HistoryError(
                    f"history {self.name}: has schema version {version} and is read-only; copy it to where "
                    "it can be written, and name the copy in ASCAR_HISTORY"
                )
        with self.write() as connection:  # two processes may get here at once: look again, holding the lock
            version = _version(connection)
            if version == 0:
                others = sa.inspect(connection).get_table_names()
                if others:
                    raise HistoryError(
                        f"history {self.name}: is another program's database (it has a table {others[0]!r}); "
                        "name another file in ASCAR_HISTORY"
                    )
                metadata.create_all(connection)
                connection.execute(schema_version.insert().values(version=SCHEMA_VERSION))
            elif version > SCHEMA_VERSION:
                raise HistoryError(
                    f"history {self.name}: has schema version {version}, this ascar knows versions up to "
                    f"{SCHEMA_VERSION}; use a newer ascar, or name another file in ASCAR_HISTORY"
                )
            else:
                for old in range(version, SCHEMA_VERSION):
                    MIGRATIONS[old](connection)
                if version != SCHEMA_VERSION:
                    connection.execute(schema_version.update().values(version=SCHEMA_VERSION))

    @contextmanager
    def _translated(self) -> Generator[None]:
        """Turn the engine's errors into one line that says what is wrong and what to do."""
        try:
            yield
        except (UnicodeEncodeError, OverflowError) as error:
            raise HistoryError(
                f"history {self.name}: cannot hold a name or number of this run: {error}"
            ) from error
        # Of damage SQLite says words with bytes of the file that are no text, or that memory is short.
        except (SQLAlchemyError, UnicodeDecodeError, MemoryError, OSError) as error:
            raise HistoryError(f"history {self.name}: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    said = str(error.orig if isinstance(error, DBAPIError) else error).strip().partition("\n")[0]
    for fragment, meaning in _CAUSES:
        if fragment in said.lower():
            return f"{meaning} ({said})"
    return f"cannot be used: {said or 'is damaged; put back a copy'}"


def _url(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
        url.get_dialect()
    except (ArgumentError, ValueError) as error:
        raise HistoryError(
            f"history {text.partition('@')[2] or text!r}: is not a database URL that can be used; "
            "give a file, or a URL such as 'postgresql+psycopg://user@host/name'"
        ) from error
    return url


def _options(url: sa.URL) -> dict[str, Any]:
    if url.get_backend_name() != "sqlite":
        return {}
    return {"connect_args": {"timeout": _BUSY_TIMEOUT_S}}


def _prepare_sqlite(connection: Any, record: object) -> None:  # noqa: ARG001
    # The driver's own idea of transactions begins them late, which would let two writers deadlock.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    # The machine may go down because of the very configuration being tried: what was committed must be on
    # disk, not in a cache, hence FULL.
    cursor.execute("PRAGMA synchronous = FULL")
    deadline = time.monotonic() + _BUSY_TIMEOUT_S
    while True:  # the change to WAL does not wait for locks by itself
        try:
            if _is_ours(cursor):
                cursor.execute("PRAGMA journal_mode = WAL")
            break
        except Exception as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    cursor.close()


def _is_ours(cursor: Any) -> bool:
    """Whether a database is a history, or empty, to become one: another program's stays as it is."""
    cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = {name for (name,) in cursor.fetchall()}
    return not tables or schema_version.name in tables


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("ascar_writes", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_reading(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _version(connection: sa.Connection) -> int:
    """The schema's version; 0 where there are no tables of ours."""
    if not sa.inspect(connection).has_table(schema_version.name):
        return 0
    versions = connection.execute(sa.select(schema_version.c.version)).scalars().all()
    if len(versions) != 1 or not isinstance(versions[0], int) or versions[0] < 1:
        raise HistoryError(
            "history: its table schema_version must hold one version; put back a copy of the file"
        )
    return versions[0]
