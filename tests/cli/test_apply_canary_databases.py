"""Database servers take a configuration one after the other, or none of them has it."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from canary_fleet import Fleet
from live_mariadb import LiveMariaDB, live_mariadb
from live_postgresql import PACED, LiveServer, live_server
from waiting import until

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
    started: tuple[type[Fleet], tuple[Any, ...]], keep_run: Callable[..., int], tmp_path: Path
) -> Iterator[Fleet]:
    kind, servers = started
    with kind.of_run(servers, tmp_path, keep_run) as found:
        yield found


def test_both_have_it_in_the_end_and_restore_puts_both_back(ascar: Any, fleet: Fleet) -> None:
    with fleet.applying("--canary", "5 s") as process:
        until(lambda: fleet.has(0) or process.poll() is not None)
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


def test_a_watch_that_is_too_short_to_judge_is_refused_before_anything_changes(
    ascar: Any, fleet: Fleet
) -> None:
    if fleet.kind != "postgresql":
        pytest.skip("only PostgreSQL's sessions tell late what they did")
    done = ascar(*fleet.words("--canary", "3 s"))
    assert done.status == 2
    assert "--canary = 3 s: is too short to judge the limits; allowed: 4 s and more" in done.error
    assert fleet.state() == fleet.before


@pytest.mark.parametrize("second", [False, True])
def test_a_kill_leaves_no_server_changed(fleet: Fleet, second: bool) -> None:
    with fleet.applying("--canary", "5 s" if second else "60 s") as process:
        until(lambda: fleet.has(1 if second else 0) or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        _, told = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, told
    fleet.comes_back()
