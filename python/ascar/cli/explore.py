"""`ascar explore`: a page in the browser on studies and tables."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.capes.where import session_at
from ascar.cli.epilog import examples
from ascar.cli.options import (
    Connection,
    Direction,
    Host,
    Ignore,
    Json,
    Metrics,
    ObjectiveTextOrNone,
    Open,
    Parameters,
    Port,
    Session,
    TableFiles,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from ascar.web import Exploration, RowSource, Subject

EXAMPLES = examples(
    "ascar explore mailserver",
    "ascar explore mailserver fileserver          several studies side by side",
    "ascar explore --table results.csv --objective iops --direction max",
    "ascar explore --table dataset:storage-v5-fileserver --table dataset:storage-v5-mailserver "
    "--objective operations",
    "ascar explore --session mailserver             a session of online tuning, as it goes",
)


def explore(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY|RUN]...", help="Studies' names or files (their latest run), or runs' numbers."
        ),
    ] = None,
    table: TableFiles = None,
    objective: ObjectiveTextOrNone = None,
    direction: Direction = None,
    parameters: Parameters = None,
    metrics: Metrics = None,
    ignore: Ignore = None,
    capes: Session = None,
    connection: Connection = None,
    port: Port = 8700,
    host: Host = "127.0.0.1",
    browser: Open = True,
    json: Json = False,
) -> int:
    """Explore studies, tables, running studies and sessions of online tuning in the browser, until ^C.

    The page only reads. The printed address holds a token, without which nothing is answered. The page is
    served to this machine alone unless --host names another address; whoever knows the printed address, or
    can listen to that network, can then read what was measured.
    """
    from ascar.cli.output import say
    from ascar.errors import InputError
    from ascar.web import AccessToken, application, bound, serve

    if capes is not None and (runs or table):
        raise InputError(f"--session = {capes!r}: cannot be shown with studies or tables; leave them out")
    if connection is not None and capes is None:
        raise InputError(f"--connection = {str(connection)!r}: needs --session; name the session")
    if not runs and not table and capes is None:
        raise InputError("explore: name a study, or a table with --table, or a session with --session")
    if direction not in (None, "min", "max"):
        raise InputError(f"--direction = {direction!r}: must be min or max")
    asked = _Asked(objective, direction, parameters, metrics, ignore)
    with ExitStack() as stack:
        if capes is None:
            subject = _subject(stack, runs or [], table or [], asked)
        else:
            subject = _watched(stack, capes, connection, asked)
        whole = _first(subject)
        listener = stack.enter_context(bound(host, port))
        address = listener.getsockname()
        name = f"[{address[0]}]" if ":" in address[0] else address[0]
        token = AccessToken.random()
        url = token.in_address(f"http://{name}:{address[1]}/")
        _announce(url, whole, as_json=json)
        if address[0] not in ("127.0.0.1", "::1"):
            say(f"warning: --host = {host!r}: whoever listens to that network learns the token")
        if browser and not json:
            stack.enter_context(_opened(url))
        with suppress(KeyboardInterrupt):
            serve(application(subject, token, host), listener)
    return 0


def _first(subject: Subject) -> Exploration | None:
    """What there is to begin with; None: nothing yet, but a run goes on.

    Raises:
        InputError: there is nothing, and nothing will come.
    """
    from ascar.web import NothingYet

    try:
        return subject.exploration()
    except NothingYet:
        live = subject.live()
        if live is None or (live["kind"] == "run" and live["state"] != "running"):
            raise
        return None


def _announce(url: str, whole: Exploration | None, *, as_json: bool) -> None:
    from ascar.cli.output import emit, notes, people
    from ascar.results.tuning import ExploreResult

    rows = 0 if whole is None else whole.rows
    varied = [] if whole is None else [one.name for one in whole.dimensions if one.varies]
    if as_json:
        result = ExploreResult(
            url=url,
            name=None if whole is None else whole.name,
            rows=rows,
            configurations=0 if whole is None else int(whole.configurations.max()) + 1,
            dimensions=tuple(varied),
            metrics=() if whole is None else tuple(one.name for one in whole.metrics),
            objective=None if whole is None else whole.objective,
            direction=None if whole is None else "min" if whole.minimize else "max",
        )
        emit("explore", result)
    else:
        people().out(url)
        size = "" if whole is None else f"{rows} rows, {len(varied)} dimensions; "
        notes().print(f"{size}^C ends it", markup=False)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the options say of the columns."""

    objective: str | None
    direction: str | None
    parameters: str | None
    metrics: str | None
    ignore: str | None

    @property
    def minimize(self) -> bool | None:
        return None if self.direction is None else self.direction == "min"


def _subject(stack: ExitStack, runs: list[str], tables: list[Path], asked: _Asked) -> Subject:
    from ascar.cli.studies import find_run
    from ascar.errors import InputError
    from ascar.history import History
    from ascar.web import Exploration, Fixed, HistorySubject

    if tables and asked.objective is None:
        raise InputError("--objective: name the table's column that was measured")
    if not tables:
        for option, value in (
            ("--parameters", asked.parameters),
            ("--metrics", asked.metrics),
            ("--ignore", asked.ignore),
        ):
            if value is not None:
                raise InputError(f"{option} = {value!r}: applies only to a --table; leave it out")
    parts = [_part(path, asked) for path in tables]
    if not runs:
        return Fixed(Exploration.of(parts, asked.objective or "", asked.minimize))
    history = stack.enter_context(History.existing())
    found = [find_run(history, named) for named in runs]
    return HistorySubject(history, found, parts, asked.objective, asked.minimize)


def _watched(stack: ExitStack, capes: str, connection: Path | None, asked: _Asked) -> Subject:
    """A session that runs on this machine, or elsewhere.

    Raises:
        EnvironmentLacks: it does not run.
        InputError: it is not a name of one, or an option makes no sense with it.
    """
    from ascar.errors import InputError
    from ascar.web import OnlineSubject

    if asked != _Asked(None, None, None, None, None):
        raise InputError(
            f"--session = {capes!r}: a session has its own objective; leave out the options of tables"
        )
    session, settings = session_at(capes, connection, "viewer")
    return stack.enter_context(OnlineSubject(session, settings))


def _part(path: Path, asked: _Asked) -> RowSource:
    from ascar.analysis.table_columns import column_names
    from ascar.analysis.tables import read_frame
    from ascar.datasets import located
    from ascar.web import Roles, of_table

    frame = read_frame(located(path), f"--table = {str(path)!r}")
    roles = Roles(
        asked.objective or "",
        column_names("--parameters", asked.parameters),
        column_names("--metrics", asked.metrics),
        column_names("--ignore", asked.ignore),
    )
    return of_table(frame, str(path), roles)


@contextmanager
def _opened(url: str) -> Generator[None]:
    """In the user's browser, where there is a display; without, the address was printed.

    The browser is given a file that only the user reads: all users can see the arguments of a process.
    """
    import os
    import tempfile
    import webbrowser

    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    with tempfile.NamedTemporaryFile("w", prefix="ascar-", suffix=".html", encoding="ascii") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}"><title>ascar</title>')
        file.flush()
        webbrowser.open(Path(file.name).as_uri())
        yield
