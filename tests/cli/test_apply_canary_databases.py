"""Database servers take a configuration one after the other, or none of them has it."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from ascar.systems.keeper import restore_all
from canary_fleet import Fleet, wait_for
from live_mariadb import LiveMariaDB, live_mariadb
from live_postgresql import PACED, LiveServer, live_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


class PostgreSQLFleet(Fleet):
    """Two PostgreSQL servers: one value is new in every session, the other in the background writer."""

    kind = "postgresql"
    wanted: ClassVar = {"work_mem": 9216, "bgwriter_delay": 50}
    written: ClassVar = {"work_mem": "9MB", "bgwriter_delay": "50ms"}

    @staticmethod
    def reached(server: LiveServer) -> str:
        return f'host = "{server.place}"\nuser = "postgres"\ndatabase = "postgres"\nmemory = "8 GiB"\n'

    @staticmethod
    def told(server: LiveServer, name: str) -> str:
        return server.ask(f"SHOW {name}")


class MariaDBFleet(Fleet):
    """Two MariaDB servers."""

    kind = "mariadb"
    wanted: ClassVar = {"innodb_io_capacity": 900, "innodb_lru_scan_depth": 700}
    written: ClassVar = {"innodb_io_capacity": "900", "innodb_lru_scan_depth": "700"}

    @staticmethod
    def reached(server: LiveMariaDB) -> str:
        return f'host = "{server.socket}"\nuser = "root"\n'

    @staticmethod
    def told(server: LiveMariaDB, name: str) -> str:
        return server.get(name)


def _postgresql(held: ExitStack) -> tuple[LiveServer, ...]:
    servers = tuple(held.enter_context(live_server(cluster=name)) for name in ("east", "west"))
    for one in servers:
        held.enter_context(one.clients(1, *PACED))
    return servers


def _mariadb(held: ExitStack) -> tuple[LiveMariaDB, ...]:
    servers = tuple(held.enter_context(live_mariadb()) for _ in range(2))
    for one in servers:
        held.enter_context(one.clients())
    return servers


KINDS: dict[str, tuple[type[Fleet], Callable[[ExitStack], tuple[Any, ...]]]] = {
    "postgresql": (PostgreSQLFleet, _postgresql),
    "mariadb": (MariaDBFleet, _mariadb),
}


@pytest.fixture(scope="module", params=KINDS)
def started(request: pytest.FixtureRequest) -> Iterator[tuple[type[Fleet], tuple[Any, ...]]]:
    kind, start = KINDS[request.param]
    with ExitStack() as held:
        yield kind, start(held)


@pytest.fixture
def fleet(
    started: tuple[type[Fleet], tuple[Any, ...]],
    keep_run: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Fleet]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("ascar.systems.keeper.ROOTS_STATE", tmp_path / "of-root")
    kind, servers = started
    found = kind(servers, tmp_path, kind.kept(keep_run))
    yield found
    restore_all(everything=True)
    found.comes_back()


def test_both_have_it_in_the_end_and_restore_puts_both_back(ascar: Any, fleet: Fleet) -> None:
    with fleet.applying("--canary", "5 s") as process:
        wait_for(lambda: fleet.has(0) or process.poll() is not None)
        assert not fleet.has(1)
        _, told = process.communicate(timeout=90)
    assert process.returncode == 0, told
    assert fleet.has(0)
    assert fleet.has(1)
    assert ascar("restore").status == 0
    assert fleet.state() == fleet.before


def test_a_limit_that_the_second_breaks_puts_both_back(ascar: Any, fleet: Fleet) -> None:
    file = fleet.files[1]
    file.write_text(file.read_text().replace("minimum = 1\n", "minimum = 1_000_000\n"))
    done = ascar(*fleet.words("--canary", "4 s"))
    assert done.status == 1
    assert f"server {fleet.servers[1].name}: the mean of throughput_ops_per_s was" in done.error
    assert fleet.state() == fleet.before


@pytest.mark.parametrize("second", [False, True])
def test_a_kill_leaves_no_server_changed(fleet: Fleet, second: bool) -> None:
    with fleet.applying("--canary", "2 s" if second else "60 s") as process:
        wait_for(lambda: fleet.has(1 if second else 0) or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert process.returncode == -signal.SIGKILL
    fleet.comes_back()
