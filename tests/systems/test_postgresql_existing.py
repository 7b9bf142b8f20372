"""PostgreSQL that people use: a real server with clients, whose settings are what they were at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from ascar.errors import EnvironmentLacks, Refused, SpaceError, StageFailed, StudyError, WorkError
from ascar.program.postgresql import Programs
from ascar.space import Guarantee
from ascar.space.study_table import space_from_table
from ascar.systems import open_target
from ascar.systems.asking import apply_checked
from ascar.systems.keeper import restore_all
from ascar.systems.postgresql.auto_configuration import entries_of, putting_back, setting, text_of
from ascar.systems.postgresql.connection import PsqlSession, ServerAddress
from ascar.systems.postgresql.existing import ExistingPostgreSQL
from ascar.systems.postgresql.server_facts import ServerFacts
from ascar.workspace import LoadTiming
from certificates import Authority
from live_postgresql import AUTO, HEADER, PACED, LiveServer, live_server
from live_redis import free_port
from own_servers import postgresql_installed
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.skipif(
    not postgresql_installed(), reason="PostgreSQL is not installed, or has no account"
)

TRIAL = {"work_mem": 65536, "jit": True, "random_page_cost": 1.5, "max_wal_size": 512}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper's journal is the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as started:
        yield started


def target_of(live: LiveServer, /, **options: Any) -> ExistingPostgreSQL:
    given = {
        "server": "existing",
        "host": str(live.place),
        "user": "postgres",
        "database": "postgres",
        "memory": "8 GiB",
        "confirmed_server": live.name,
        **options,
    }
    target = open_target(
        {"kind": "postgresql", **{key: one for key, one in given.items() if one is not None}}
    )
    assert isinstance(target, ExistingPostgreSQL)
    return target


def is_as_before(server: LiveServer) -> bool:
    return server.auto.read_text() == AUTO and server.ask("SHOW work_mem") == "8MB"


def test_it_is_refused_unless_the_command_line_names_it(server: LiveServer) -> None:
    for given in (None, "localhost:5432/other"):
        with pytest.raises(Refused) as told, target_of(server, confirmed_server=given):
            pass
        assert server.name in told.value.message
    assert is_as_before(server)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"port": 0}, "target.port = 0: must be from 1 to 65535"),
        ({"host": "a\nb"}, "target.host = 'a\\nb': must be a text of characters that are printed"),
        ({"database": "dbname=x password=y"}, "target.database: must not hold a password"),
        ({"service": "shop"}, "target.service: names host and port already"),
        ({"memory": "much"}, "target.memory = 'much': is not a size"),
        ({"restarts": "sometimes"}, "target.restarts"),
        ({"server": "own"}, "target.server"),
        ({"password": "x"}, "password"),
    ],
)
def test_a_wrong_key_is_one_line(server: LiveServer, options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        target_of(server, **options)
    assert words in told.value.message
    assert "\n" not in told.value.message


def test_a_password_that_a_crash_would_lose_is_refused(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    with pytest.raises(StudyError, match="PGPASSFILE") as told:
        target_of(server)
    assert "secret" not in told.value.message


def test_a_server_that_is_not_there_is_one_line(server: LiveServer) -> None:
    with (
        pytest.raises(EnvironmentLacks, match=r"target\.server: .*No such file") as told,
        target_of(server, port=6543),
    ):
        pass
    assert "\n" not in told.value.message


def test_wrong_credentials_are_one_line(
    server: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        pytest.raises(EnvironmentLacks, match=r'target\.server: .*role "nobody-here" does not exist') as told,
        target_of(server, user="nobody-here"),
    ):
        pass
    assert "\n" not in told.value.message
    rules, secret = server.data / "pg_hba.conf", tmp_path / "passwords"
    before = rules.read_text()
    monkeypatch.setenv("PGPASSFILE", str(secret))
    server.ask("CREATE ROLE stranger LOGIN PASSWORD 'right'")
    try:
        with_rules(server, f"local all stranger scram-sha-256\n{before}")
        refused = "no password supplied"
        with pytest.raises(EnvironmentLacks, match=refused), target_of(server, user="stranger"):
            pass
        secret.write_text("*:*:*:stranger:guessed\n")
        secret.chmod(0o600)
        refused = 'password authentication failed for user "stranger"'
        with pytest.raises(EnvironmentLacks, match=refused) as told, target_of(server, user="stranger"):
            pass
        assert "\n" not in told.value.message
        assert "guessed" not in told.value.message
        secret.write_text("*:*:*:stranger:right\n")
        with pytest.raises(Refused, match="role stranger: lacks rights"), target_of(server, user="stranger"):
            pass
    finally:
        with_rules(server, before)
        server.ask("DROP ROLE stranger")
    assert is_as_before(server)


def test_its_space_is_what_the_server_takes_and_promises_no_less_than_today(server: LiveServer) -> None:
    with target_of(server, parameters="wide") as target:
        known = {name: target.space[name] for name in target.space.names}
    rows = server.ask("SELECT name, context, enumvals FROM pg_settings WHERE context <> 'postmaster'")
    told = {name: (context, words) for name, context, words in (row.split("|") for row in rows.splitlines())}
    assert set(known) <= set(told)
    words = told["wal_compression"][1].strip("{}").split(",")
    assert set(known["wal_compression"].domain.values) <= set(words)
    server.ask("ALTER SYSTEM SET synchronous_commit = remote_apply")
    server.ask("ALTER SYSTEM SET checkpoint_timeout = '60s'")
    server.ask("SELECT pg_reload_conf()")
    try:
        until(lambda: server.ask("SHOW checkpoint_timeout") == "1min", 30)
        with target_of(server) as target:
            assert target.space["synchronous_commit"].weakens("on") == {Guarantee.CONSISTENCY}
            assert target.space["checkpoint_timeout"].weakens(300) == {Guarantee.AVAILABILITY}
            searched = space_from_table({}, target.space)
            for name, value in (("synchronous_commit", "on"), ("checkpoint_timeout", 300)):
                with pytest.raises(SpaceError, match=name):
                    searched.validate({**searched.default(), name: value})
    finally:
        server.ask("ALTER SYSTEM RESET synchronous_commit")
        server.ask("ALTER SYSTEM RESET checkpoint_timeout")
        server.ask("SELECT pg_reload_conf()")
        until(lambda: server.ask("SHOW checkpoint_timeout") == "5min", 30)
    assert is_as_before(server)


@pytest.mark.slow
def test_the_log_is_never_less_than_two_of_its_segments_with_which_the_server_would_not_start() -> None:
    with live_server(cluster="segments", segment_mb=256) as server:
        with target_of(server) as target:
            assert [target.space[name].domain.low for name in ("min_wal_size", "max_wal_size")] == [512, 512]
            default = target.space.default()
            least = target.space.validate({**default, "min_wal_size": 512, "max_wal_size": 512})
            apply_checked(target, least)
        assert is_as_before(server)


def with_rules(server: LiveServer, rules: str) -> None:
    """Have the server take other rules of who may connect, and how."""
    loaded = server.ask("SELECT pg_conf_load_time()")
    (server.data / "pg_hba.conf").write_text(rules)
    server.ask("SELECT pg_reload_conf()")
    until(lambda: server.ask("SELECT pg_conf_load_time()") != loaded, 30)


def test_a_version_without_a_catalogue_is_one_line() -> None:
    class Old:
        def ask(self, statement: str) -> str:
            assert "server_version_num" in statement
            return "140011|14.11 (Debian)|on|100|t|postgres|main\n"

    with pytest.raises(EnvironmentLacks, match=r"PostgreSQL '14\.11 .*': must be 15 or newer") as told:
        ServerFacts.of(cast("PsqlSession", Old()))
    assert "\n" not in told.value.message


def test_settings_change_and_the_file_is_what_it_was_to_the_byte(server: LiveServer) -> None:
    with target_of(server) as target:
        default = target.space.default()
        assert default["work_mem"] == 8192
        assert default["jit"] is False
        assert "shared_buffers" not in default
        change = apply_checked(target, target.space.validate({**default, **TRIAL}))
        assert change.filled
        assert set(change.parameters) == set(TRIAL)
        assert server.ask("SHOW work_mem") == "64MB"
        assert server.ask("SHOW max_wal_size") == "512MB"
        apply_checked(target, default)
        assert is_as_before(server)
        apply_checked(target, target.space.validate({**default, "work_mem": 16384}))
    assert is_as_before(server)
    assert server.ask("SHOW max_wal_size") == "1GB"


def test_sessions_plan_prepared_statements_anew_when_values_change(server: LiveServer) -> None:
    scans = {"enable_indexscan": False, "enable_indexonlyscan": False, "enable_bitmapscan": False}
    with target_of(server, parameters="wide") as target:
        default = target.space.default()
        target.apply(target.space.validate({**default, **scans}))
        with server.clients(2, "-S", "-M", "prepared"):
            slow = server.transactions()
            target.apply(default)
            # The plans that these sessions have are those of the trial.
            until(lambda: server.transactions() > 5 * slow, 60)
            target.apply(target.space.validate({**default, **scans}))
            until(lambda: server.transactions() < 2 * slow, 60)
    assert is_as_before(server)
    assert server.ask("SELECT count(*) FROM pg_namespace WHERE nspname ~ 'ascar'") == "0"


def test_what_clients_get_is_the_load(server: LiveServer) -> None:
    with server.clients(2), target_of(server) as target:
        found = target.run(target.workspace, LoadTiming(1.0, 3.0, 1.0, lambda _: False))
        assert found.metrics["throughput_ops_per_s"] > 20
        assert 0 < found.metrics["latency_ms_mean_select"] < 1000
        assert len(found.series["throughput_ops_per_s"]) >= 2


def test_statistics_that_somebody_resets_meanwhile_do_not_fail_the_load(server: LiveServer) -> None:
    with server.clients(2, *PACED), target_of(server) as target:
        reset = threading.Timer(2.0, server.ask, ("SELECT pg_stat_reset(), pg_stat_statements_reset()",))
        reset.start()
        readings = target.run(target.workspace, LoadTiming(5.0, 5.0, 0.5, lambda series: False))
        reset.join()
        # 500 of the clients a second; before and after the reset, not across it.
        assert readings.metrics["throughput_ops_per_s"] == pytest.approx(500, rel=0.4)
        assert readings.metrics["latency_ms_mean_select"] > 0
        assert readings.load_s >= 5.0


def test_a_server_without_clients_is_no_load(server: LiveServer) -> None:
    with target_of(server) as target, pytest.raises(StageFailed, match="no transaction was committed"):
        target.run(target.workspace, LoadTiming(1.0, 3.0, 1.0, lambda _: False))


def test_a_value_that_the_server_refuses_fails_its_trial_alone(server: LiveServer) -> None:
    with target_of(server) as target:
        default = target.space.default()
        with pytest.raises(StageFailed, match="wal_compression"):
            target.apply({**default, "work_mem": 16384, "wal_compression": "brotli"})  # type: ignore[arg-type]
        assert is_as_before(server)
        apply_checked(target, target.space.validate({**default, "work_mem": 32768}))
        assert server.ask("SHOW work_mem") == "32MB"
    assert is_as_before(server)


def test_what_somebody_else_changes_ends_the_study_and_is_left_alone(server: LiveServer) -> None:
    try:
        with pytest.raises(WorkError, match="left alone: work_mem"), target_of(server) as target:
            default = target.space.default()
            apply_checked(target, target.space.validate({**default, **TRIAL}))
            server.ask("ALTER SYSTEM SET work_mem = '5MB'")
            with pytest.raises(WorkError, match="work_mem: somebody else changed it"):
                target.apply(default)
        assert server.ask("SHOW work_mem") == "5MB"
        assert server.ask("SHOW random_page_cost") == "4"
    finally:
        server.auto.write_text(AUTO)
        server.ask("SELECT pg_reload_conf()")


def test_what_somebody_else_changes_outside_the_study_ends_it_by_name(server: LiveServer) -> None:
    file = server.data / "postgresql.conf"
    text = file.read_text()
    said = "autovacuum_naptime: was 1min, is 30s: somebody else changed it in mid-study; the study ends"
    try:
        with target_of(server, parameters="expert") as target:
            assert "autovacuum_naptime" not in target.space.names, "it is no setting of this study"
            assert target.describe()["other_settings"]["max_connections"] == "30"
            apply_checked(target, target.space.validate({**target.space.default(), **TRIAL}))
            target.sample()
            server.ask("ALTER SYSTEM SET autovacuum_naptime = 30")
            server.ask("SELECT pg_reload_conf()")
            until(lambda: server.ask("SHOW autovacuum_naptime") == "30s", 10)
            for asked in (target.sample, lambda: target.apply(target.space.default())):
                with pytest.raises(WorkError) as told:
                    asked()
                assert told.value.message == said
        assert server.ask("SHOW autovacuum_naptime") == "30s"
        assert server.ask("SHOW work_mem") == "8MB"
        server.ask("ALTER SYSTEM RESET autovacuum_naptime")
        server.ask("SELECT pg_reload_conf()")
        until(lambda: server.ask("SHOW autovacuum_naptime") == "1min", 10)
        with target_of(server) as target:
            file.write_text(f"{text}autovacuum_naptime = 30\n")
            with pytest.raises(WorkError) as told:
                target.apply(target.space.validate({**target.space.default(), **TRIAL}))
            assert told.value.message == said, "the trial's own reload put it in force"
    finally:
        file.write_text(text)
        server.auto.write_text(AUTO)
        server.ask("SELECT pg_reload_conf()")


def test_two_studies_of_one_server_are_refused(server: LiveServer) -> None:
    with target_of(server), pytest.raises(Refused, match="is tuned by another study"), target_of(server):
        pass


def test_a_file_that_somebody_wrote_by_hand_is_refused(server: LiveServer) -> None:
    try:
        server.auto.write_text(f"{AUTO}# ours\n")
        with (
            pytest.raises(Refused, match="line 6: '# ours' was not written by ALTER SYSTEM"),
            target_of(server),
        ):
            pass
        assert server.auto.read_text() == f"{AUTO}# ours\n"
    finally:
        server.auto.write_text(AUTO)


def test_a_file_that_cannot_be_written_is_refused(server: LiveServer) -> None:
    server.data.chmod(0o500)
    try:
        with (
            target_of(server) as target,
            pytest.raises(Refused, match="ALTER SYSTEM fails: .*ermission denied"),
        ):
            target.adopt(target.space)
    finally:
        server.data.chmod(0o700)


def test_patroni_is_refused(server: LiveServer) -> None:
    file = server.data / "patroni.dynamic.json"
    file.write_text("{}")
    try:
        with pytest.raises(Refused, match="is managed by Patroni"), target_of(server):
            pass
    finally:
        file.unlink()


def test_settings_that_were_not_loaded_yet_are_not_put_in_force(server: LiveServer) -> None:
    file = server.data / "postgresql.conf"
    before = file.read_text()
    time.sleep(1.1)
    try:
        file.write_text(f"{before}log_min_messages = error\n")
        with pytest.raises(Refused, match=r"postgresql\.conf: was changed after"), target_of(server):
            pass
    finally:
        file.write_text(before)
        server.ask("SELECT pg_reload_conf()")


def test_a_setting_of_a_role_is_refused(server: LiveServer) -> None:
    server.ask("ALTER ROLE postgres SET work_mem = '1MB'")
    try:
        with target_of(server) as target, pytest.raises(Refused, match="work_mem: role postgres has a value"):
            target.adopt(target.space)
    finally:
        server.ask("ALTER ROLE postgres RESET work_mem")


def test_options_of_our_own_session_that_hide_a_value_are_refused(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c random_page_cost=1.5")
    with target_of(server) as target:
        with pytest.raises(Refused, match="random_page_cost: our session has a value .*PGOPTIONS"):
            target.adopt(target.space)
        target.adopt(space_from_table({"pinned": {"random_page_cost": 1.5}}, target.space))


@pytest.mark.slow
def test_a_setting_on_the_server_s_command_line_is_refused() -> None:
    with live_server(cluster="contained") as server:
        server.stop()
        server.options.append("random_page_cost=1.5")
        server.start()
        with target_of(server) as target:
            assert target.space.default()["random_page_cost"] == 1.5
            with pytest.raises(Refused, match="random_page_cost: the server was started with a value"):
                target.adopt(target.space)
            pinned = space_from_table({"pinned": {"random_page_cost": 1.5}}, target.space)
            target.adopt(pinned)
            apply_checked(target, pinned.validate({**pinned.default(), "work_mem": 65536}))
            assert server.ask("SHOW work_mem") == "64MB"
        assert is_as_before(server)


def grant(server: LiveServer, refusal: Refused) -> None:
    """What the refusal tells a superuser to run."""
    _, _, statements = refusal.message.partition("let a superuser run: ")
    for statement in statements.split("; "):
        server.ask(statement)


def test_a_role_needs_rights_and_the_refusal_says_which(server: LiveServer) -> None:
    server.ask("CREATE ROLE tuner LOGIN")
    with pytest.raises(Refused) as told, target_of(server, user="tuner"):
        pass
    if Programs.find().major < 15:
        assert "no other role" in told.value.message
        return
    grant(server, told.value)
    with target_of(server, user="tuner") as target, pytest.raises(Refused, match="work_mem") as told:
        target.adopt(target.space)
    grant(server, told.value)
    with target_of(server, user="tuner") as target:
        target.adopt(target.space)
        apply_checked(target, target.space.validate({**target.space.default(), **TRIAL}))
        assert server.ask("SHOW work_mem") == "64MB"
    # Its values are back; the place of what it may not set, in the middle of the file, is not.
    assert sorted(server.auto.read_text()) == sorted(AUTO)
    server.auto.write_text(AUTO)


SCRIPT = """
import sys, time
from ascar.systems import open_target
with open_target({"kind": "postgresql", "server": "existing", "host": sys.argv[1], "user": "postgres",
                  "database": "postgres", "memory": "8 GiB", "confirmed_server": sys.argv[2]}) as target:
    default = target.space.default()
    for number in range(1000):
        target.apply(target.space.validate({**default, "work_mem": 16384 + number, "jit": True}))
        print("set", flush=True)
"""


def started(server: LiveServer) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", SCRIPT, str(server.place), server.name]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"set\n"
    return process


def nobody_holds(server: LiveServer) -> bool:
    """Whether the keeper of the study that was killed is gone."""
    with suppress(Refused), target_of(server):
        return True
    return False


def test_killed_while_it_changes_settings_everything_is_put_back(server: LiveServer, seed: int) -> None:
    for turn in range(3):
        until(lambda: nobody_holds(server), 60)
        with started(server) as process:
            time.sleep(0.05 * turn + (seed % 50) / 1000)
            process.send_signal(signal.SIGKILL)
        until(lambda: is_as_before(server), 60)


def test_who_puts_values_back_elsewhere_knows_what_secures_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ascar restore` from another shell, or at boot, came without a certificate."""
    authority = Authority(tmp_path)
    theirs, ours = authority.issue("server", "serverAuth"), authority.issue("postgres", "clientAuth")
    with live_server(cluster="tls") as server:
        server.stop()
        for name, file in (("ca", theirs.ca), ("cert", theirs.path), ("key", theirs.key)):
            copy = server.data / f"{name}.pem"
            copy.write_bytes(file.read_bytes())
            copy.chmod(0o600)
            os.chown(copy, server.account.uid, -1)
        server.options[-1] = f"listen_addresses=127.0.0.1 -c port={free_port()}"
        server.options.append(
            "ssl=on -c ssl_ca_file=ca.pem -c ssl_cert_file=cert.pem -c ssl_key_file=key.pem"
        )
        (server.data / "pg_hba.conf").write_text("local all all trust\nhostssl all all 127.0.0.1/32 cert\n")
        server.start()
        port = int(server.options[-2].rpartition("=")[2])
        address = ServerAddress(host="127.0.0.1", port=port, user="postgres", database="postgres")
        given = {
            "PGSSLMODE": "verify-full",
            "PGSSLROOTCERT": ours.ca,
            "PGSSLCERT": ours.path,
            "PGSSLKEY": ours.key,
        }
        with pytest.raises(StageFailed, match="no encryption"):
            PsqlSession(address)
        for name, value in given.items():
            monkeypatch.setenv(name, str(value))
        noted = msgspec.json.encode(address.here())
        for name in given:
            monkeypatch.delenv(name)
        session = PsqlSession(msgspec.json.decode(noted, type=ServerAddress))
        assert session.ask("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").strip() == "t"
        session.close()


@pytest.mark.slow
def test_killed_with_the_server_it_starts_with_the_old_values() -> None:
    with live_server(cluster="crashed") as server, started(server) as process:
        process.send_signal(signal.SIGSTOP)
        server.kill()
        assert server.auto.read_text() != AUTO
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline_s = time.monotonic() + 90
        while server.auto.read_text() != AUTO and time.monotonic() < deadline_s:
            restore_all()
            time.sleep(0.2)
        assert server.auto.read_text() == AUTO
        assert server.auto.stat().st_uid == server.account.uid or os.geteuid() != 0
        server.start_after_kill()
        assert is_as_before(server)
        assert server.ask("SHOW jit") == "off"


@pytest.mark.slow
def test_a_restart_or_a_failover_in_mid_study_ends_it() -> None:
    with live_server(cluster="moved") as server:
        with pytest.raises(WorkError, match="was started anew in mid-study"), target_of(server) as target:
            default = target.space.default()
            apply_checked(target, target.space.validate({**default, **TRIAL}))
            server.stop()
            server.start()
            target.sample()
        assert is_as_before(server)
        # A standby is refused, and one that takes over is another server.
        with pytest.raises(WorkError) as told, target_of(server) as target:
            apply_checked(target, target.space.validate({**target.space.default(), **TRIAL}))
            server.stop()
            (server.data / "standby.signal").touch()
            server.start()
            with pytest.raises(Refused, match="is a standby in recovery"), target_of(server):
                pass
            server.ask("SELECT pg_promote()")
            target.apply(target.space.default())
        assert "timeline is a new one" in told.value.message or "could not be put back" in told.value.message


def test_the_file_is_put_back_in_its_order() -> None:
    before = (("work_mem", "8MB"), ("search_path", 'a, "B c"'), ("x.y", "it's \\n"), ("jit", "off"))
    assert entries_of(text_of(before)) == before
    assert entries_of(HEADER) == entries_of("") == ()
    present = (before[1], before[2], ("jit", "on"), ("random_page_cost", "2"), ("work_mem", "1MB"))
    changes = putting_back(present, before, {"work_mem", "jit", "random_page_cost"})
    assert [setting(name, value) for name, value in changes] == [
        "ALTER SYSTEM RESET random_page_cost",
        "ALTER SYSTEM SET work_mem = '8MB'",
        "ALTER SYSTEM SET search_path = 'a', 'B c'",
        "ALTER SYSTEM SET x.y = E'it''s \\\\n'",
        "ALTER SYSTEM SET jit = 'off'",
    ]
    assert putting_back(before, before, {"work_mem"}) == []
