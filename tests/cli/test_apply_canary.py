"""A configuration goes to one server after the other while limits hold: in the end to all, or to none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from canary_fleet import Fleet
from live_redis import LiveRedis, live_redis, redis_installed
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class RedisFleet(Fleet):
    """Two Redis servers."""

    kind = "redis"
    wanted: ClassVar = {"hz": 100, "hash_max_listpack_entries": 1024}
    written: ClassVar = {"hz": "100", "hash_max_listpack_entries": "1024"}

    @staticmethod
    def reached(server: LiveRedis) -> str:
        return f'host = "{server.socket}"\n'

    @staticmethod
    def told(server: LiveRedis, name: str) -> str:
        return server.get(name.replace("_", "-"))

    @staticmethod
    def alive(server: LiveRedis) -> bool:
        return server.socket.exists()


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[LiveRedis, ...]]:
    if not redis_installed():
        pytest.skip("Redis is not installed")
    with live_redis() as first, live_redis() as second, first.clients(), second.clients():
        yield first, second


@pytest.fixture
def fleet(servers: tuple[LiveRedis, ...], keep_run: Callable[..., int], tmp_path: Path) -> Iterator[Fleet]:
    with RedisFleet.of_run(servers, tmp_path, keep_run) as found:
        yield found


def test_all_servers_have_it_while_limits_hold_and_restore_puts_all_back(ascar: Any, fleet: Fleet) -> None:
    done = ascar(*fleet.words("--canary", "2 s", "--json"))
    assert done.status == 0, done.err
    assert [one["path"] for one in done.document["settings"]] == [
        f"server {one.name}" for one in fleet.servers for _ in fleet.wanted
    ]
    assert fleet.has(0)
    assert fleet.has(1)
    assert "in force already" in ascar(*fleet.words("--canary", "1 s")).out
    assert ascar("restore").status == 0
    assert fleet.state() == fleet.before


def test_the_second_server_waits_until_the_first_was_watched(fleet: Fleet) -> None:
    with fleet.applying("--canary", "5 s") as process:
        until(lambda: fleet.has(0))
        assert not fleet.has(1)
        assert process.wait(60) == 0
    assert fleet.has(1)


def test_a_limit_that_the_second_breaks_puts_both_back(ascar: Any, fleet: Fleet) -> None:
    file = fleet.files[1]
    file.write_text(file.read_text().replace("minimum = 1\n", "minimum = 1_000_000\n"))
    done = ascar(*fleet.words("--canary", "4 s"))
    assert done.status == 1
    assert f"server {fleet.servers[1].name}: the mean of throughput_ops_per_s was" in done.error
    assert "the other servers that were set are put back as well" in done.error
    assert fleet.state() == fleet.before


@pytest.mark.slow
def test_a_limit_may_be_a_share_of_what_clients_got_before(ascar: Any, fleet: Fleet) -> None:
    for file in fleet.files:
        file.write_text(file.read_text().replace("minimum = 1\n", 'minimum = "5%"\n'))
    assert ascar(*fleet.words("--canary", "2 s")).status == 0
    assert fleet.has(1)


def test_a_limit_that_the_first_breaks_leaves_the_second_untouched(ascar: Any, fleet: Fleet) -> None:
    file = fleet.files[0]
    file.write_text(file.read_text().replace("minimum = 1\n", "minimum = 1_000_000\n"))
    seen: list[bool] = []
    end = threading.Event()

    def look() -> None:
        while not end.wait(0.05):
            seen.append(fleet.has(1))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        done = ascar(*fleet.words("--canary", "10 s"))
    finally:
        end.set()
        looking.join()
    assert done.status == 1
    assert "the other servers" not in done.error
    assert seen
    assert not any(seen)
    assert fleet.state() == fleet.before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("second", [False, True])
def test_who_is_stopped_leaves_no_server_changed(fleet: Fleet, number: signal.Signals, second: bool) -> None:
    with fleet.applying("--canary", "1 s" if second else "60 s") as process:
        until(lambda: fleet.has(1 if second else 0) or process.poll() is not None)
        process.send_signal(number)
        process.wait(60)
    if process.returncode == 0:
        assert second, "the first server alone is not all of them"
        return  # it had ended; the fixture puts it back
    fleet.comes_back()


def test_the_terminal_is_told_how_long_it_takes(fleet: Fleet) -> None:
    leader, follower = os.openpty()
    try:
        argv = [sys.executable, "-m", "ascar", *fleet.words("--canary", "4 s")]
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=follower) as process:
            assert process.wait(60) == 0
        told = os.read(leader, 100_000).decode()
    finally:
        os.close(leader)
        os.close(follower)
    assert "its limits hold; 1 of 2, 0:0" in told
    assert "its limits hold; 2 of 2, 0:0" in told


@pytest.mark.parametrize("set_before", [True, False], ids=["set", "waiting"])
def test_a_server_that_dies_has_the_others_put_back(fleet: Fleet, tmp_path: Path, set_before: bool) -> None:
    with ExitStack() as held:
        third = held.enter_context(live_redis())
        held.enter_context(third.clients())
        first = fleet.servers[0]
        two = RedisFleet((third, first) if set_before else (first, third), tmp_path, fleet.run)
        with two.applying("--canary", "1 s" if set_before else "60 s") as process:
            until(lambda: two.has(1) if set_before else two.has(0))
            third.stop()
            third.socket.unlink(missing_ok=True)
            _, told = process.communicate(timeout=90)
        assert process.returncode == 1, told
        assert f"server {third.name}: " in told
        until(lambda: first.get("hz") == fleet.before[0]["hz"])


def test_a_limit_that_nobody_could_judge_does_not_hold(ascar: Any, fleet: Fleet, tmp_path: Path) -> None:
    with live_redis() as idle:
        two = RedisFleet((idle, fleet.servers[0]), tmp_path, fleet.run)
        for file in two.files:
            text = file.read_text()
            file.write_text(
                text[: text.index("[[guard")]
                + '[[guard.ceiling]]\nmetric = "latency_ms_mean"\nmaximum = 1e6\nwindow_ticks = 5\n'
            )
        done = ascar(*two.words("--canary", "2 s"))
        assert done.status == 1
        assert f"server {idle.name}: latency_ms_mean: could not be judged in 2 s" in done.error
        assert two.state() == two.before


def test_a_person_can_have_the_last_word(ascar: Any, fleet: Fleet) -> None:
    done = ascar(*fleet.words("--canary", "1 s", "--confirm", "4 s", "--json"))
    assert done.status == 0, done.err
    assert done.document["until_unix_s"] is not None
    assert fleet.has(0)
    assert fleet.has(1)
    fleet.comes_back()
    assert ascar(*fleet.words("--canary", "1 s", "--confirm", "10 min")).status == 0
    assert ascar("confirm", fleet.run, "--json").document["changes"] >= 2
    assert ascar("restore").status == 0
    assert fleet.state() == fleet.before


def test_what_must_not_be_set_is_refused_while_nothing_has_changed(
    ascar: Any, fleet: Fleet, tmp_path: Path
) -> None:
    first, second = fleet.servers
    refusals = {
        "give --canary DURATION": fleet.words(),
        "must be from 1 s to 24 h": fleet.words("--canary", "2 d"),
        "--canary = 'soon'": fleet.words("--canary", "soon"),
        f"--allow-live {first.name}": fleet.words("--canary", "1 s", names=False),
        "--allow-live: is given 3 times for 2 servers": [
            *fleet.words("--canary", "1 s"),
            "--allow-live",
            "another",
        ],
    }
    wrong = fleet.words("--canary", "1 s")
    wrong[wrong.index(second.name)] = first.name
    refusals[f"the server of this study is {second.name}"] = wrong
    (tmp_path / "twice").mkdir()
    twice = RedisFleet((first, first), tmp_path / "twice", fleet.run)
    refusals[f"--server: server {first.name} is named twice"] = twice.words("--canary", "1 s")
    for words, command in refusals.items():
        done = ascar(*command)
        assert done.status == 2, command
        assert words in done.error
        assert fleet.state() == fleet.before, command


def test_one_server_under_two_addresses_is_refused(ascar: Any, fleet: Fleet) -> None:
    first = fleet.servers[0]
    words = RedisFleet((first, first), fleet.files[0].parent, fleet.run).words("--canary", "1 s")
    file, name = fleet.files[1], f"127.0.0.1:{first.port}"
    text = file.read_text().replace(f'host = "{first.socket}"', f'host = "127.0.0.1"\nport = {first.port}')
    file.write_text(text)
    words[len(words) - 1 - words[::-1].index("--allow-live") + 1] = name
    done = ascar(*words)
    assert done.status == 2
    assert "is tuned by another study at this moment" in done.error, "Redis tells of our first session"
    assert fleet.state() == fleet.before


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", "has no limit to watch; write [[guard.floor]]"),
        ('[[guard.floor]]\nmetric = "of_nobody"\nminimum = 1\n', "cannot watch 'of_nobody'"),
        ('[[guard.floor]]\nmetric = "throughput_ops_per_s"\nminimun = 1\n', "minimun"),
        ("[[guard.floor]]\nmetric = 5\nminimum = 1\n", "guard.floor[0]"),
        ('[[guard.floor]]\nmetric = "throughput_ops_per_s"\nminimum = nan\n', "guard"),
        ('[[guard.floor]]\nmetric = "throughput_ops_per_s"\nminimum = "500%"\n', "must be from 0% to 100%"),
        ('[[guard.floor]]\nmetric = "throughput_ops_per_s"\nminimum = 1\nwindow_ticks = "x"\n', "guard"),
        (
            '[[guard.floor]]\nmetric = "throughput_ops_per_s"\nminimum = 1\nwindow_ticks = 50\n',
            "is shorter than the window of the limit of throughput_ops_per_s, 5 s",
        ),
        (
            '[[guard.floor]]\nmetric = "throughput_ops_per_s"\nminimum = 1\nwindow_ticks = 5\n'
            '[[guard.rule]]\nforbid = "hz > 50"\nwhy = "processor"\n',
            "guard.rule: 'hz > 50' forbids the configuration",
        ),
        (
            '[[guard.floor]]\nmetric = "throughput_ops_per_s"\nminimum = 1\nwindow_ticks = 5\n'
            '[[guard.rule]]\nforbid = "hz > 50 and latency_ms_mean > 2"\nwhy = "processor"\n',
            "needs 'latency_ms_mean'; --canary knows parameters alone",
        ),
    ],
)
@pytest.mark.parametrize("how", [(), ("--dry-run",)], ids=["", "dry"])
def test_a_guard_that_cannot_be_kept_is_refused_while_nothing_has_changed(
    ascar: Any, fleet: Fleet, lines: str, words: str, how: tuple[str, ...]
) -> None:
    file = fleet.files[1]
    limited = file.read_text()
    file.write_text(limited[: limited.index("[[guard")] + lines)
    done = ascar(*fleet.words("--canary", "1 s", *how))
    assert done.status == 2, done.out
    assert words in done.error
    assert len(done.err.strip().splitlines()) == 1
    assert fleet.state() == fleet.before


def test_outside_of_its_windows_no_server_is_set(ascar: Any, fleet: Fleet) -> None:
    days = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    in_two_days = days[(datetime.now().weekday() + 2) % 7]
    for file in fleet.files:
        file.write_text(
            f'{file.read_text()}[[guard.window]]\ndays = ["{in_two_days}"]\nfrom = "01:00"\nto = "02:00"\n'
        )
    done = ascar(*fleet.words("--canary", "1 s"))
    assert done.status == 2
    assert "guard.window: changes are allowed in " in done.error
    assert fleet.state() == fleet.before


def test_a_dry_run_tells_of_every_server_and_changes_nothing(ascar: Any, fleet: Fleet) -> None:
    done = ascar(*fleet.words("--canary", "1 min", "--dry-run"))
    assert done.status == 0
    for one in fleet.servers:
        assert one.name in done.out
    assert fleet.state() == fleet.before


def test_only_servers_that_people_use_are_watched(ascar: Any, fleet: Fleet) -> None:
    done = ascar("apply", fleet.run, "--canary", "1 min")
    assert done.status == 2
    assert "--canary: watches servers that people use" in done.error
    assert fleet.state() == fleet.before
