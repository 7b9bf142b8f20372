"""MariaDB that people use: a real server with clients, whose settings and files stay what they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from ascar.catalogues.mariadb import mariadb
from ascar.errors import EnvironmentLacks, Refused, StageFailed, StudyError, WorkError
from ascar.study import GuardSection
from ascar.systems import open_target
from ascar.systems.asking import apply_checked
from ascar.systems.mariadb.activity import MariaActivity
from ascar.systems.mariadb.connection import MariaAddress, MariaSession
from ascar.systems.mariadb.existing import ExistingMariaDB
from ascar.systems.mariadb.live_values import TAKEN, as_taken
from ascar.systems.mariadb.space import LEAVES_SOMETHING, PAIRS
from ascar.workloads import open_workload
from ascar.workspace import LoadTiming
from live_mariadb import LiveMariaDB, live_mariadb
from own_servers import mariadb_installed
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(not mariadb_installed(), reason="MariaDB is not installed, or has no account")

TRIAL = {"innodb_io_capacity": 1000, "innodb_flush_neighbors": "0", "innodb_max_dirty_pages_pct_lwm": 10.0}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper's journal is the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def server() -> Iterator[LiveMariaDB]:
    with live_mariadb() as started:
        yield started


def target_of(live: LiveMariaDB, /, **options: Any) -> ExistingMariaDB:
    given = {"server": "existing", "host": str(live.socket), "user": "root", "confirmed_server": live.name}
    given |= options
    target = open_target({"kind": "mariadb", **{key: one for key, one in given.items() if one is not None}})
    assert isinstance(target, ExistingMariaDB)
    return target


@contextmanager
def unchanged(server: LiveMariaDB) -> Generator[None]:
    """What the server is set to, and its file, are the same afterwards."""
    told, file = server.settings(), server.conf.read_bytes()
    yield
    assert server.settings() == told
    assert server.conf.read_bytes() == file


def trial(target: ExistingMariaDB) -> Any:
    return target.space.validate({**target.space.default(), **TRIAL})


def test_it_is_refused_unless_the_command_line_names_it(server: LiveMariaDB) -> None:
    with unchanged(server):
        for given in (None, "127.0.0.1:3306"):
            with pytest.raises(Refused) as told, target_of(server, confirmed_server=given):
                pass
            assert server.name in told.value.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"port": 0}, "target.port = 0: must be from 1 to 65535"),
        ({"port": 3306}, "target.port = 3306: must be left out where target.host is a socket"),
        ({"host": "a\nb"}, "target.host = 'a\\nb': must be a text of characters that are printed"),
        ({"host": "mysql://u:p@host"}, "target.host: must be a host or the path of a socket"),
        ({"password_file": "/nowhere"}, "target.password_file = '/nowhere': No such file"),
        ({"memory": "much"}, "target.memory = 'much': is not a size"),
        ({"server": "own"}, "target.server"),
        ({"password": "x"}, "password"),
    ],
)
def test_a_wrong_key_is_one_line(server: LiveMariaDB, options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        target_of(server, **options)
    assert words in told.value.message
    assert "\n" not in told.value.message


def test_a_password_that_a_crash_would_lose_is_refused(
    server: LiveMariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYSQL_PWD", "secret")
    with pytest.raises(StudyError, match=r"target\.password_file") as told:
        target_of(server)
    assert "secret" not in told.value.message


def test_a_server_that_is_not_there_is_one_line(server: LiveMariaDB) -> None:
    for options in ({"host": "/nowhere/db.sock"}, {"host": "127.0.0.1", "port": 1}):
        with pytest.raises(EnvironmentLacks, match=r"target\.server: ") as told, target_of(server, **options):
            pass
        assert "\n" not in told.value.message


def test_settings_change_and_nothing_else_does(server: LiveMariaDB) -> None:
    with unchanged(server):
        with target_of(server, parameters="wide") as target:
            default = target.space.default()
            assert default["innodb_io_capacity"] == 300
            contexts = {mariadb()[name].context for name in target.space.names}
            assert contexts == {"dynamic"}, "what sessions copy does not reach every client"
            change = apply_checked(target, trial(target))
            assert change.filled
            assert set(change.parameters) == set(TRIAL)
            assert server.get("innodb_io_capacity") == "1000"
            apply_checked(target, default)
            assert server.get("innodb_io_capacity") == "300"
            apply_checked(target, trial(target))
        assert server.get("innodb_io_capacity") == "300"


@pytest.mark.slow
def test_the_whole_space_can_be_set(server: LiveMariaDB) -> None:
    with unchanged(server), target_of(server, parameters="wide") as target:
        for near in target.space.neighbours(target.space.default()):
            apply_checked(target, near)


def test_it_is_reached_by_a_port_too(server: LiveMariaDB) -> None:
    name = f"127.0.0.1:{server.port}"
    options = {"host": "127.0.0.1", "port": server.port, "confirmed_server": name}
    with unchanged(server), target_of(server, **options) as target:
        apply_checked(target, trial(target))
        assert target.describe()["server"] == name


def test_a_host_in_the_environment_does_not_replace_the_socket_that_was_confirmed(
    server: LiveMariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unchanged(server), monkeypatch.context() as elsewhere:
        elsewhere.setenv("MYSQL_HOST", "127.0.0.1")
        elsewhere.setenv("MYSQL_TCP_PORT", "1")
        with target_of(server) as target:
            apply_checked(target, trial(target))
            told = {**os.environ, **target.workspace.environment}
            argv = ["mariadb", "--no-defaults", "--user=root", "-e", "SELECT @@datadir"]
            done = subprocess.run(argv, env=told, capture_output=True, text=True, timeout=60, check=False)
            assert str(server.data) in done.stdout, done.stderr


def test_what_leaves_something_behind_stays_as_it_is(server: LiveMariaDB) -> None:
    with target_of(server, parameters="wide") as target:
        assert not set(LEAVES_SOMETHING) & set(target.space.names)
        assert "innodb_stats_persistent" in target.space
    taken = as_taken(server.ask(TAKEN))
    assert set(taken) == set(mariadb()) & set(server.settings())
    for name in LEAVES_SOMETHING:
        assert taken[name].context == "dynamic", "else it is left out anyway"


def test_a_value_in_force_that_no_search_would_try_is_the_default(server: LiveMariaDB) -> None:
    before = server.get("aria_checkpoint_log_activity")
    server.ask("SET GLOBAL aria_checkpoint_log_activity = 1000001")
    try:
        with unchanged(server), target_of(server, parameters="wide") as target:
            assert target.space.default()["aria_checkpoint_log_activity"] == 1_000_001
            apply_checked(target, trial(target))
    finally:
        server.ask(f"SET GLOBAL aria_checkpoint_log_activity = {before}")


def test_each_statement_of_clients_counts_once_and_a_flush_of_the_statistics_takes_none(
    server: LiveMariaDB,
) -> None:
    server.ask("CREATE DATABASE shop; CREATE TABLE shop.a (k INT PRIMARY KEY, v INT) ENGINE = InnoDB")
    server.ask("CREATE TABLE shop.b LIKE shop.a; INSERT INTO shop.b VALUES (1, 1), (2, 2)")
    statements = [
        "INSERT INTO shop.a VALUES (1, 1)",
        "REPLACE INTO shop.a SELECT * FROM shop.b",
        "UPDATE shop.a JOIN shop.b USING (k) SET a.v = 5",
        "DELETE shop.a FROM shop.a JOIN shop.b USING (k)",
        "SELECT COUNT(*) FROM shop.a",
    ]
    session = MariaSession(MariaAddress(host=str(server.socket), user="root"))
    try:
        activity = MariaActivity(session)
        for between in ("DO 1", "FLUSH STATUS"):
            before = activity.totals().operations
            server.ask("; ".join([*statements[:2], between, *statements[2:]]))
            assert activity.totals().operations - before == len(statements), between
    finally:
        session.close()
        server.ask("DROP DATABASE shop")


def test_what_one_server_is_asked_is_not_taken_from_what_clients_of_another_get(server: LiveMariaDB) -> None:
    addresses = (
        MariaAddress(host=str(server.socket), user="root"),
        MariaAddress(host="127.0.0.1", port=server.port, user="root"),
    )
    one, other = (MariaSession(address) for address in addresses)
    try:
        before = one.own_selects
        other.ask("SELECT 1")
        assert one.own_selects == before
        one.ask("SELECT 1")
        assert one.own_selects == before + 2
    finally:
        one.close()
        other.close()


def test_a_session_is_there_as_long_as_its_study(server: LiveMariaDB) -> None:
    server.ask("SET GLOBAL wait_timeout = 1, GLOBAL max_statement_time = 0.5")
    try:
        with target_of(server) as target:
            session = target._entered().session
            time.sleep(1.5)
            target.health(5)
            assert target._entered().session is session
            session.ask("SELECT SLEEP(0.6)")
    finally:
        server.ask("SET GLOBAL wait_timeout = 28800, GLOBAL max_statement_time = 0")


def test_what_clients_get_is_the_load(server: LiveMariaDB) -> None:
    with server.clients(), target_of(server) as target:
        found = target.run(target.workspace, LoadTiming(1.0, 2.0, 0.5, lambda _: False))
        assert found.metrics["throughput_ops_per_s"] > 20
        assert 0 < found.metrics["latency_ms_ping"] < 1000
        assert set(found.metrics) == target.reported
        assert len(found.series["throughput_ops_per_s"]) >= 2


def test_a_load_that_needs_tables_of_its_own_is_one_line(server: LiveMariaDB) -> None:
    port = {"host": "127.0.0.1", "port": server.port, "confirmed_server": f"127.0.0.1:{server.port}"}
    for options in ({}, port):
        with target_of(server, **options) as target, pytest.raises(StageFailed) as told:
            open_workload({"kind": "sysbench"}).run(target.workspace, LoadTiming(0.5, 1.0, 0.5, bool))
        assert "sysbench: has tables of its own, which a server that people use" in told.value.message


def test_a_server_without_clients_is_no_load(server: LiveMariaDB) -> None:
    with target_of(server) as target, pytest.raises(StageFailed, match="clients sent no statement"):
        target.run(target.workspace, LoadTiming(0.5, 1.0, 0.5, lambda _: False))


def test_a_value_that_the_server_refuses_fails_its_trial_alone(server: LiveMariaDB) -> None:
    with unchanged(server), target_of(server) as target:
        wrong = {**target.space.default(), "innodb_io_capacity": 1000, "innodb_flush_neighbors": "7"}
        with pytest.raises(StageFailed, match="innodb_flush_neighbors"):
            target.apply(wrong)  # type: ignore[arg-type]
        assert server.get("innodb_io_capacity") == "300"
        apply_checked(target, trial(target))


def test_what_somebody_else_changes_ends_the_study_and_is_left_alone(server: LiveMariaDB) -> None:
    try:
        with (
            pytest.raises(WorkError, match="left alone: innodb_io_capacity: is '777'"),
            target_of(server) as target,
        ):
            apply_checked(target, trial(target))
            server.ask("SET GLOBAL innodb_io_capacity = 777")
            with pytest.raises(WorkError, match="innodb_io_capacity: somebody else changed it"):
                target.apply(target.space.default())
        assert server.get("innodb_io_capacity") == "777"
        assert server.get("innodb_flush_neighbors") == "1"
    finally:
        server.ask("SET GLOBAL innodb_io_capacity = 300")


def test_what_somebody_else_changes_outside_the_study_ends_it_by_name(server: LiveMariaDB) -> None:
    was = server.get("max_connections")
    said = f"max_connections: was {was}, is 321: somebody else changed it in mid-study; the study ends"
    try:
        with target_of(server) as target:
            assert target.describe()["other_settings"]["innodb_buffer_pool_size"] == str(32 << 20)
            apply_checked(target, trial(target))
            target.sample()
            server.ask("SET GLOBAL max_connections = 321")
            with pytest.raises(WorkError) as told:
                target.sample()
            assert told.value.message == said
            with pytest.raises(WorkError) as told:
                target.apply(target.space.default())
            assert told.value.message == said
        assert server.get("max_connections") == "321"
        assert server.get("innodb_io_capacity") == "300"
    finally:
        server.ask(f"SET GLOBAL max_connections = {was}")


def test_what_the_server_changes_beside_a_setting_of_the_study_is_nobodys(server: LiveMariaDB) -> None:
    with unchanged(server), target_of(server) as target:
        others = target._entered().others
        assert "query_cache_size" in others
        assert not {name for pair in PAIRS for name in pair} & set(others)


def test_two_studies_of_one_server_are_refused(server: LiveMariaDB) -> None:
    with target_of(server), pytest.raises(Refused, match="is tuned by another study"), target_of(server):
        pass


def test_a_session_that_is_killed_goes_on_by_another(server: LiveMariaDB) -> None:
    with unchanged(server), target_of(server) as target:
        apply_checked(target, trial(target))
        for row in server.ask("SHOW PROCESSLIST").splitlines():
            if "SHOW PROCESSLIST" not in row and "event" not in row:
                server.ask(f"KILL {row.split()[0]}", check=False)
        apply_checked(target, target.space.default())
        with pytest.raises(Refused, match="is tuned by another study at this moment"), target_of(server):
            pass


def test_a_server_that_becomes_a_replica_in_mid_study_gets_no_more_trials(server: LiveMariaDB) -> None:
    with unchanged(server), pytest.raises(WorkError, match="read-only in mid-study"):
        try:
            with target_of(server) as target:
                apply_checked(target, trial(target))
                server.ask("SET GLOBAL read_only = ON")
                target.apply(target.space.default())
        finally:
            server.ask("SET GLOBAL read_only = OFF")


def test_servers_that_are_read_only_are_refused(server: LiveMariaDB) -> None:
    server.ask("SET GLOBAL read_only = ON")
    try:
        with pytest.raises(Refused, match="is read-only"), target_of(server):
            pass
    finally:
        server.ask("SET GLOBAL read_only = OFF")


def test_a_server_that_is_set_up_as_a_replica_is_refused_also_while_it_is_stopped(
    server: LiveMariaDB,
) -> None:
    server.ask("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'nobody'")
    try:
        with pytest.raises(Refused, match=r"is a replica; tune the primary \(.*RESET SLAVE ALL"):
            target_of(server).__enter__()
    finally:
        server.ask("RESET SLAVE ALL")
    with target_of(server):
        pass


@pytest.mark.slow
def test_a_primary_is_tuned_and_its_replica_refused() -> None:
    with (
        live_mariadb("log_bin = binlog", "server_id = 1") as primary,
        live_mariadb("server_id = 2") as replica,
    ):
        replica.ask(
            f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {primary.port}, "
            "MASTER_USER = 'root', MASTER_USE_GTID = slave_pos; START SLAVE"
        )
        until(lambda: "Slave_running\tON" in replica.ask("SHOW STATUS LIKE 'Slave_running'"), 30)
        until(lambda: "Slave_connections\t1" in primary.ask("SHOW GLOBAL STATUS LIKE 'Slave_conn%'"), 30)
        with unchanged(primary), target_of(primary) as target:
            assert "sync_binlog" in target.space
            apply_checked(target, trial(target))
        with pytest.raises(Refused, match="is a replica"), target_of(replica):
            pass
        user = "CREATE USER reader@localhost; GRANT SUPER ON *.* TO reader@localhost"
        replica.ask(f"SET sql_log_bin = 0; {user}; REVOKE SUPER ON *.* FROM reader@localhost")
        with pytest.raises(Refused, match="is a replica"), target_of(replica, user="reader"):
            pass


def test_each_right_that_settings_take_is_tried(server: LiveMariaDB) -> None:
    names = ("binlog_commit_wait_count", "innodb_io_capacity", "thread_pool_stall_limit")
    server.ask("CREATE USER logger@localhost; GRANT BINLOG ADMIN ON *.* TO logger@localhost")
    try:
        with target_of(server, user="logger") as target:
            settings = target._entered()
            settings.check_writable(names[:1])
            for name in names[1:]:
                with pytest.raises(Refused, match="GRANT SUPER, BINLOG ADMIN, CONNECTION ADMIN"):
                    settings.check_writable((names[0], name))
        server.ask("GRANT SUPER, CONNECTION ADMIN ON *.* TO logger@localhost")
        with target_of(server, user="logger") as target:
            target._entered().check_writable(names[:2])
    finally:
        server.ask("DROP USER logger@localhost")


def test_passwords_and_rights(server: LiveMariaDB, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    server.ask("CREATE USER tuner@localhost IDENTIFIED BY 'open \"sesame'")
    options = {"user": "tuner", "password_file": str(secret)}
    try:
        secret.write_text("wrong\n")
        secret.chmod(0o644)
        with pytest.raises(StudyError, match="others may read it"):
            target_of(server, **options)
        secret.chmod(0o600)
        with pytest.raises(EnvironmentLacks, match="Access denied"), target_of(server, **options):
            pass
        secret.write_text('open "sesame\n')
        with (
            target_of(server, **options) as target,
            pytest.raises(Refused, match="let an administrator run: ") as told,
        ):
            target.adopt(target.space)
        server.ask(told.value.message.partition("let an administrator run: ")[2])
        with unchanged(server), target_of(server, **options) as target:
            target.adopt(target.space)
            apply_checked(target, trial(target))
            assert server.get("innodb_io_capacity") == "1000"
    finally:
        server.ask("DROP USER tuner@localhost")


def test_a_restart_in_mid_study_ends_it() -> None:
    with live_mariadb() as server:
        with pytest.raises(WorkError, match="was started anew in mid-study"), target_of(server) as target:
            apply_checked(target, trial(target))
            server.stop()
            time.sleep(4)  # the server tells its start in whole seconds
            server.start()
            target.sample()
        assert server.get("innodb_io_capacity") == "300"
        with (
            pytest.raises(WorkError, match="the server is gone in mid-study"),
            target_of(server) as target,
        ):
            apply_checked(target, trial(target))
            server.stop()
            target.sample()


def nobody_holds(server: LiveMariaDB) -> bool:
    """Whether the keeper of the study that was killed is gone."""
    with suppress(Refused), target_of(server):
        return True
    return False


SCRIPT = """
import sys
from ascar.systems import open_target
with open_target({"kind": "mariadb", "server": "existing", "host": sys.argv[1], "user": "root",
                  "confirmed_server": sys.argv[1]}) as target:
    default = target.space.default()
    for number in range(100000):
        changed = {"innodb_io_capacity": 400 + 100 * (number % 9), "innodb_flush_neighbors": "0"}
        target.apply(target.space.validate({**default, **changed}))
        print("set", flush=True)
"""


def test_killed_while_it_changes_settings_everything_is_put_back(server: LiveMariaDB, seed: int) -> None:
    with unchanged(server):
        for turn in range(3):
            words = [sys.executable, "-c", SCRIPT, str(server.socket)]
            until(lambda: nobody_holds(server), 60)
            with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == b"set\n"
                time.sleep(0.05 * turn + (seed % 50) / 1000)
                process.send_signal(signal.SIGKILL)
            until(lambda: server.get("innodb_io_capacity") == "300", 60)
            until(lambda: server.get("innodb_flush_neighbors") == "1", 60)


def test_clients_that_get_too_little_have_the_old_values_back(server: LiveMariaDB) -> None:
    with unchanged(server), server.clients():
        target = target_of(server)
        floor = {"metric": "throughput_ops_per_s", "minimum": 1e9, "hold_ticks": 10}
        target.guard_by(GuardSection(floor=(floor,)))
        with target:
            target.apply(trial(target))
            until(lambda: target.violation is not None, 30)
            assert "the old values were put back in" in str(target.violation)
            assert server.get("innodb_io_capacity") == "300"


def test_an_interrupted_answer_is_taken_for_no_other_when_values_are_put_back(server: LiveMariaDB) -> None:
    with unchanged(server), target_of(server) as target:
        apply_checked(target, trial(target))
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            target._entered().session.ask("SELECT SLEEP(2)")
    assert server.get("innodb_io_capacity") == "300"
