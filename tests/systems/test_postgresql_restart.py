"""Settings for which a server that people use is started anew: only where the study allows it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks, Refused, SpaceError, StageFailed, StudyError, WorkError
from ascar.study import GuardSection
from ascar.systems.asking import apply_checked
from ascar.systems.postgresql.existing import ExistingPostgreSQL
from live_postgresql import AUTO, LiveServer, live_server
from own_servers import postgresql_installed
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    not postgresql_installed(), reason="PostgreSQL is not installed, or has no account"
)

MORE, TOO_MUCH = 32768, 8 << 20
"""KiB of shared_buffers."""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server("shared_buffers = 16MB\n", cluster="anew") as started:
        yield started


def restart_command(server: LiveServer) -> list[str]:
    """Starts the server anew with at most 3 GiB, so that it does not come up with more shared buffers."""
    words = " ".join(f"-c {option}" for option in server.options)
    script = 'ulimit -v 3000000; exec "$0" restart -w -t 20 -m fast -D "$1" -l "$2" -o "$3"'
    paths = (server.programs.path("pg_ctl"), str(server.data), str(server.place / "log"), words)
    return server.account.run("/bin/sh", "-c", script, *paths)


def target_of(server: LiveServer, **options: Any) -> ExistingPostgreSQL:
    return ExistingPostgreSQL({**options_of(server), **options})


def options_of(server: LiveServer) -> dict[str, Any]:
    return {
        "server": "existing",
        "host": str(server.place),
        "user": "postgres",
        "database": "postgres",
        "memory": "64 GiB",
        "confirmed_server": server.name,
        "restarts": "allowed",
        "restart_command": restart_command(server),
    }


def is_as_before(server: LiveServer) -> bool:
    return server.auto.read_text() == AUTO and server.ask("SHOW shared_buffers") == "16MB"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"restarts": "never"}, "target.restart_command: needs target.restarts = 'allowed'"),
        ({"restart_command": ()}, "target.restart_command: missing; target.restarts = 'allowed' needs"),
        ({"restart_command": ["a\nb"]}, "target.restart_command: must be at most 100 words"),
        ({"restart_limit": "5 min"}, "target.restart_limit = '5 min': must be at most 45 s"),
        ({"restart_limit": "soon"}, "target.restart_limit = 'soon'"),
    ],
)
def test_a_wrong_key_is_one_line(server: LiveServer, options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        target_of(server, **options)
    assert words in told.value.message
    assert "\n" not in told.value.message


def test_a_command_that_is_not_there_is_one_line(server: LiveServer) -> None:
    with pytest.raises(EnvironmentLacks, match=r"target\.restart_command\[0\] = 'no-such-program'"):
        target_of(server, restart_command=["no-such-program"])


def test_without_leave_no_setting_needs_a_new_start(server: LiveServer) -> None:
    with target_of(server, restarts="never", restart_command=()) as target:
        assert "shared_buffers" not in target.space
    with target_of(server) as target:
        assert target.space.default()["shared_buffers"] == 16384
        assert target.announced(("shared_buffers",)).statements[-1].startswith("/")
    assert is_as_before(server)


def test_what_standbys_must_have_first_is_not_raised_where_there_are_any(server: LiveServer) -> None:
    def allows(count: int) -> bool:
        with target_of(server, parameters="wide") as target:
            default = target.space.default()
            assert default["max_worker_processes"] == 8
            with suppress(SpaceError):
                target.space.validate({**default, "max_worker_processes": count})
                return True
            return False

    assert allows(16)
    server.ask("SELECT pg_create_physical_replication_slot('standby')")
    try:
        assert not allows(16)
        assert allows(4)
    finally:
        server.ask("SELECT pg_drop_replication_slot('standby')")
    assert is_as_before(server)


def test_the_server_is_started_anew_and_at_the_end_with_the_old_values(server: LiveServer) -> None:
    before = server.pid
    with target_of(server) as target:
        default = target.space.default()
        apply_checked(target, target.space.validate({**default, "work_mem": 16384}))
        assert server.pid == before  # which needs no new start
        apply_checked(target, target.space.validate({**default, "shared_buffers": MORE}))
        assert server.ask("SHOW shared_buffers") == "32MB"
        started = server.pid
        assert started != before
        apply_checked(target, target.space.validate({**default, "shared_buffers": MORE, "work_mem": 4096}))
        assert server.pid == started
        target.sample()
        apply_checked(target, default)
        assert is_as_before(server)
        apply_checked(target, target.space.validate({**default, "shared_buffers": MORE}))
    assert is_as_before(server)


def test_a_server_that_does_not_come_up_fails_its_trial_and_runs_again(server: LiveServer) -> None:
    with target_of(server) as target:
        default = target.space.default()
        dies = target.space.validate({**default, "shared_buffers": TOO_MUCH})
        with pytest.raises(StageFailed, match="does not come up with shared_buffers of this trial"):
            target.apply(dies)
        assert is_as_before(server)
        apply_checked(target, target.space.validate({**default, "shared_buffers": MORE}))
        with pytest.raises(StageFailed, match="runs with the old values again"):
            target.apply(dies)
        assert is_as_before(server)
    assert is_as_before(server)


def test_a_new_start_by_somebody_else_still_ends_the_study(server: LiveServer) -> None:
    with pytest.raises(WorkError, match="was started anew in mid-study"), target_of(server) as target:
        apply_checked(target, target.space.validate({**target.space.default(), "shared_buffers": MORE}))
        subprocess.run(restart_command(server), check=True, stdout=subprocess.DEVNULL)
        target.sample()
    assert is_as_before(server)


def test_the_guard_starts_the_server_anew_to_put_the_old_values_back(server: LiveServer) -> None:
    target = target_of(server)
    # Nobody works, so that the floor is violated as soon as clients would have had time to come back.
    floor = {"metric": "throughput_ops_per_s", "minimum": 1e6, "window_ticks": 5, "hold_ticks": 1}
    target.guard_by(GuardSection(floor=(floor,)))
    with target:
        target.apply(target.space.validate({**target.space.default(), "shared_buffers": MORE}))
        until(lambda: target.violation is not None, 30)
        assert "the old values were put back" in str(target.violation)
        assert is_as_before(server)
        apply_checked(target, target.space.default())
        target.sample()


def nobody_holds(server: LiveServer) -> bool:
    """Whether the keeper of the study that was killed is gone."""
    with suppress(Refused), target_of(server):
        return True
    return False


SCRIPT = """
import json, sys
from ascar.systems import open_target
options = json.loads(sys.argv[1])
with open_target({"kind": "postgresql", **options}) as target:
    default = target.space.default()
    print("set", flush=True)
    for number in range(1000):
        target.apply(target.space.validate({**default, "shared_buffers": 32768 + 8 * number}))
        print("set", flush=True)
"""


@pytest.mark.slow
def test_killed_before_and_after_a_new_start_the_server_has_the_old_values(
    server: LiveServer, seed: int
) -> None:
    for turn in range(3):
        words = [sys.executable, "-c", SCRIPT, json.dumps(options_of(server))]
        until(lambda: nobody_holds(server), 60)
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(1 + turn % 2):
                assert process.stdout.readline() == b"set\n"
            time.sleep((seed % 70) / 100)
            os.kill(process.pid, signal.SIGKILL)
        until(lambda: server.auto.read_text() == AUTO, 60)
        until(lambda: server.answers() and is_as_before(server), 60)
