"""The guard of a server that people use: how long they have less than the floor, as a client sees it."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import StageFailed, StudyError
from ascar.study import GuardSection
from ascar.systems.postgresql.connection import PsqlSession, ServerAddress
from ascar.systems.postgresql.existing import ExistingPostgreSQL
from live_postgresql import AUTO, LiveServer, live_server
from own_servers import postgresql_installed
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = [
    pytest.mark.skipif(not postgresql_installed(), reason="PostgreSQL is not installed, or has no account"),
    pytest.mark.slow,
]

SCANS = {"enable_indexscan": False, "enable_indexonlyscan": False, "enable_bitmapscan": False, "jit": False}
"""Every lookup of an account reads the whole table."""

FLOOR = 0.5
"""The share of what clients had before that they are to have."""

WINDOW_S = 0.5


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(cluster="guarded") as started:
        yield started


def target_of(server: LiveServer, minimum: float | str, **limit: Any) -> ExistingPostgreSQL:
    target = ExistingPostgreSQL(
        {
            "server": "existing",
            "host": str(server.place),
            "user": "postgres",
            "database": "postgres",
            "parameters": "wide",
            "confirmed_server": server.name,
        }
    )
    floor = {"metric": "throughput_ops_per_s", "minimum": minimum, "hold_ticks": 10, **limit}
    target.guard_by(GuardSection(floor=(floor,)))
    return target


class Prober:
    """A client that looks accounts up, and notes when each answer came."""

    def __init__(self, server: LiveServer) -> None:
        self._session = PsqlSession(
            ServerAddress(host=str(server.place), user="postgres", database="postgres"), "prober"
        )
        self.answers_s: list[float] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._end.is_set():
            self._session.ask("SELECT abalance FROM pgbench_accounts WHERE aid = 4711", 60)
            self.answers_s.append(time.monotonic())
            time.sleep(0.002)

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self._session.close()

    def rate(self, begin_s: float, end_s: float) -> float:
        return sum(begin_s <= at_s < end_s for at_s in self.answers_s) / (end_s - begin_s)

    def below_s(self, least: float, begin_s: float, end_s: float) -> float:
        """Seconds in windows with fewer answers than that a second."""
        count = int((end_s - begin_s) / WINDOW_S)
        starts = [begin_s + WINDOW_S * number for number in range(count)]
        return WINDOW_S * sum(self.rate(at_s, at_s + WINDOW_S) < least for at_s in starts)


@contextmanager
def probed(server: LiveServer) -> Iterator[Prober]:
    prober = Prober(server)
    try:
        yield prober
    finally:
        prober.close()


@pytest.mark.paced
@pytest.mark.parametrize("case", ["at once", "prepared", "no connection is left"])
def test_clients_have_less_than_the_floor_for_at_most_five_seconds(server: LiveServer, case: str) -> None:
    found: list[float] = []
    for _ in range(3):  # a busy machine may hold everybody up once
        found.append(_below_s(server, case))
        assert server.auto.read_text() == AUTO
        assert server.ask("SHOW enable_indexscan") == "on"
        if found[-1] <= 5:
            break
    logging.getLogger(__name__).info("%s: below the floor for %s s", case, found)
    assert min(found) <= 5


def _below_s(server: LiveServer, case: str) -> float:
    with ExitStack() as held:
        # Prepared statements would keep their plans, good ones under a trial and bad ones after it.
        prepared = ("-M", "prepared") if case == "prepared" else ()
        held.enter_context(server.clients(4, "-S", *prepared))
        prober = held.enter_context(probed(server))
        base = server.transactions()
        target = held.enter_context(target_of(server, FLOOR * base))
        if case == "no connection is left":
            with pytest.raises(StageFailed, match="too many clients|remaining connection slots"):
                while True:
                    address = ServerAddress(host=str(server.place), user="postgres", database="postgres")
                    held.callback(PsqlSession(address, "crowd").close)
        time.sleep(2)
        usual_s = time.monotonic()
        usual = prober.rate(usual_s - 2, usual_s)
        target.apply(target.space.validate({**target.space.default(), **SCANS}))
        said = until(lambda: target.violation, 60)
        assert "the mean of throughput_ops_per_s was" in said
        assert "the old values were put back in" in said
        time.sleep(2)
        return prober.below_s(FLOOR * usual, usual_s, time.monotonic())


def test_a_share_is_of_what_clients_get_under_the_old_values(server: LiveServer) -> None:
    with server.clients(4), target_of(server, "10%") as target:
        begun_s = time.monotonic()
        target.apply(target.space.validate({**target.space.default(), "work_mem": 16384}))
        assert time.monotonic() - begun_s > 5  # nobody could know before
        time.sleep(4)
        assert target.violation is None
        target.apply(target.space.validate({**target.space.default(), **SCANS}))
        assert "10% of the usual; the old values were put back" in until(lambda: target.violation, 30)
        assert server.auto.read_text() == AUTO


def test_a_share_of_what_the_server_does_not_tell_is_one_line(server: LiveServer) -> None:
    with (
        target_of(server, 1.0) as target,
        pytest.raises(StudyError, match=r"guard.ceiling\[0\].maximum = .150%.: must be a number; shares are"),
    ):
        target.guard_by(GuardSection(ceiling=({"metric": "cpu_s", "maximum": "150%"},)))


def test_a_ceiling_of_the_time_of_statements(server: LiveServer) -> None:
    with server.clients(2):
        target = target_of(server, 0.0)
        ceiling = {"metric": "latency_ms_mean_select", "maximum": 2.0, "hold_ticks": 10}
        target.guard_by(GuardSection(ceiling=(ceiling,)))
        with target:
            target.apply(target.space.validate({**target.space.default(), **SCANS}))
            assert "latency_ms_mean_select was" in until(lambda: target.violation, 30)
            assert server.auto.read_text() == AUTO


def test_time_of_statements_that_nobody_tells_is_one_line(server: LiveServer) -> None:
    server.ask("DROP EXTENSION pg_stat_statements")
    try:
        target = target_of(server, 0.0)
        target.guard_by(GuardSection(ceiling=({"metric": "latency_ms_mean", "maximum": 2.0},)))
        with pytest.raises(StudyError, match="needs the extension pg_stat_statements"), target:
            pass
    finally:
        server.ask("CREATE EXTENSION pg_stat_statements")


def test_a_guard_whose_session_is_ended_puts_back_and_connects_anew(server: LiveServer) -> None:
    with server.clients(2), target_of(server, 1.0) as target:
        target.apply(target.space.validate({**target.space.default(), "work_mem": 16384}))
        ours = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ascar'"
        server.ask(ours)
        assert "the old values were put back" in until(lambda: target.violation, 30)
        assert server.auto.read_text() == AUTO
        target.apply(target.space.validate({**target.space.default(), **SCANS, "work_mem": 32768}))
        time.sleep(1)
        assert target.violation is None
        assert server.ask("SHOW work_mem") == "32MB"
    assert server.auto.read_text() == AUTO
