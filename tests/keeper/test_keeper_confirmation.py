"""Changes that stay only if they are confirmed, whoever dies, and whatever the clock says."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar.errors import InputError, KeeperLost, Refused, StageFailed
from ascar.systems.applied import applied_knobs, unconfirmed
from ascar.systems.keeper import Hold, Keeper, restore_all
from process_state import wait_for_end
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

OWNER = "apply 3 (disk)"
LONG_S = 300.0


def queue(device: Path, name: str = "read_ahead_kb") -> Path:
    return Path("/sys/block", device.name, "queue", name)


def knob(device: Path, name: str = "read_ahead_kb") -> str:
    return f"block.{device.name}.{name}"


def text(path: Path) -> str:
    return path.read_text().strip()


def waiters(state: Path) -> list[int]:
    """The processes that wait for a confirmation."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            ended = (place / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            continue
        if b"--wait" in words and str(state).encode() in words and not ended:
            found.append(int(place.name))
    return sorted(found)


@pytest.fixture(autouse=True)
def none_left(state: Path) -> Iterator[None]:
    yield
    restore_all(state_dir=state, everything=True)
    until(lambda: not waiters(state))


@pytest.fixture
def old(loop: Path) -> str:
    return text(queue(loop))


def put_in_force(state: Path, loop: Path, seconds: float, value: int = 512, owner: str = OWNER) -> None:
    with Keeper(owner, state_dir=state, hold=Hold(seconds)) as keeper:
        keeper.knob_write(knob(loop), value)
    assert text(queue(loop)) == str(value)


def change_journal(state: Path, before: str, after: str) -> None:
    (journal,) = state.glob("*.jsonl")
    changed = journal.read_text().replace(before, after)
    assert changed != journal.read_text()
    rewrite(journal, changed)


def rewrite(journal: Path, content: str) -> None:
    """At once: others are reading it."""
    draft = journal.with_suffix(".draft")
    draft.write_text(content)
    draft.replace(journal)


def move_deadline(state: Path, **moved: int) -> None:
    """Change a journal's deadline: `unix_s` or `boot_ms`, by so much."""
    (journal,) = state.glob("*.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    until = lines[-1]["unconfirmed"]["until"]
    for key, by in moved.items():
        until[key] += by
    rewrite(journal, "".join(json.dumps(line) + "\n" for line in lines))


def test_what_nobody_confirms_is_put_back_in_time(state: Path, loop: Path, old: str) -> None:
    begun_s = time.monotonic()
    put_in_force(state, loop, 3.0)
    (waiting,) = restore_all(state_dir=state).unconfirmed
    assert (waiting.owner, waiting.changes) == (OWNER, 1)
    assert 0 <= waiting.left_s <= 3
    assert abs(waiting.until_unix_s - time.time() - waiting.left_s) <= 2
    assert applied_knobs(state) == {knob(loop): "512"}
    until(lambda: text(queue(loop)) == old)
    assert 3.0 <= time.monotonic() - begun_s < 20
    until(lambda: not list(state.glob("*.jsonl")) and not waiters(state))
    assert unconfirmed(state) == ()


def test_what_is_confirmed_stays_and_nobody_waits_any_more(state: Path, loop: Path, old: str) -> None:
    put_in_force(state, loop, 4.0)
    until(lambda: len(waiters(state)) == 2)
    with Keeper("confirm", state_dir=state) as keeper:
        (waiting,) = keeper.confirmation().unconfirmed
        assert unconfirmed(state)[0].owner == waiting.owner == OWNER
        assert keeper.confirm(OWNER) == 1
        assert keeper.confirmation().unconfirmed == ()
    until(lambda: not waiters(state))
    time.sleep(4.0)
    assert restore_all(state_dir=state).restored == ()
    assert text(queue(loop)) == "512"
    assert restore_all(state_dir=state, everything=True).restored == (knob(loop),)
    assert text(queue(loop)) == old


def test_a_process_that_is_killed_is_replaced(state: Path, loop: Path, old: str) -> None:
    put_in_force(state, loop, 6.0)
    for _ in range(2):
        until(lambda: len(waiters(state)) == 2)
        os.kill(waiters(state)[0], signal.SIGKILL)
    until(lambda: text(queue(loop)) == old)
    until(lambda: not waiters(state))


def test_whoever_starts_next_puts_back_when_all_were_killed(state: Path, loop: Path, old: str) -> None:
    put_in_force(state, loop, 2.0)
    end_s = time.monotonic() + 2.0
    while left := waiters(state):  # the one that is left starts another
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if time.monotonic() < end_s:
        time.sleep(end_s - time.monotonic() + 0.1)
    with Keeper("a study", state_dir=state) as keeper:
        assert text(queue(loop)) == old
        reverted = keeper.confirmation().reverted
        assert reverted is not None
        assert reverted.owner == OWNER
        assert reverted.report.restored == (knob(loop),)


def test_the_end_of_a_users_session_puts_back_and_a_closed_terminal_does_not(
    state: Path, loop: Path, old: str
) -> None:
    put_in_force(state, loop, LONG_S)
    until(lambda: len(waiters(state)) == 2)
    for pid in waiters(state):
        os.kill(pid, signal.SIGHUP)
    time.sleep(1.0)
    assert text(queue(loop)) == "512"
    os.kill(waiters(state)[0], signal.SIGTERM)
    until(lambda: text(queue(loop)) == old and not waiters(state))


def test_the_clock_of_the_day_decides_nothing(state: Path, loop: Path, old: str) -> None:
    put_in_force(state, loop, LONG_S)
    move_deadline(state, unix_s=-86_400)  # as if the clock had been set forward by a day
    assert restore_all(state_dir=state).restored == ()
    assert text(queue(loop)) == "512"
    move_deadline(state, unix_s=2 * 86_400, boot_ms=-int(LONG_S * 1000))  # and back, when the time is over
    until(lambda: text(queue(loop)) == old)


def test_after_a_reboot_nothing_waits_any_more(state: Path, loop: Path, old: str) -> None:
    put_in_force(state, loop, LONG_S)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    change_journal(state, boot_id, "another-boot")
    report = restore_all(state_dir=state)
    assert (report.restored, report.failed, report.unconfirmed) == ((), (), ())
    assert list(state.glob("*.jsonl")) == []
    assert text(queue(loop)) == "512", "settings of the kernel go with the boot, and are not replayed"
    queue(loop).write_text(old)


def test_what_somebody_else_changes_meanwhile_is_left_alone_and_named(state: Path, loop: Path) -> None:
    put_in_force(state, loop, 2.0)
    queue(loop).write_text("96")
    until(lambda: not list(state.glob("*.jsonl")))
    assert text(queue(loop)) == "96"
    with Keeper("confirm", state_dir=state) as keeper:
        reverted = keeper.confirmation().reverted
    assert reverted is not None
    (left,) = reverted.report.left_alone
    assert (left.target, left.expected, left.found) == (knob(loop), "512", "96")


def test_a_knob_that_waits_is_nobody_elses(state: Path, loop: Path) -> None:
    put_in_force(state, loop, LONG_S)
    with Keeper("a study", state_dir=state) as keeper:
        with pytest.raises(Refused, match=r"apply 3 \(disk\).* waits for its confirmation, \d+ s left"):
            keeper.knob_write(knob(loop), 64)
        with pytest.raises(Refused, match="waits for its confirmation"):
            keeper.lock(knob(loop))
        keeper.knob_write(knob(loop, "nomerges"), 1)
    assert text(queue(loop)) == "512"


def test_a_second_one_is_not_put_in_force_on_top(state: Path, loop: Path, old: str) -> None:
    put_in_force(state, loop, LONG_S)
    for seconds in (None, LONG_S):
        with pytest.raises(Refused, match="before something else is put in force"):
            Keeper("apply 4 (x)", state_dir=state, hold=Hold(seconds)).start()
    assert restore_all(state_dir=state, everything=True).restored == (knob(loop),)
    assert text(queue(loop)) == old


def test_of_two_at_the_same_time_one_is_put_back(state: Path, loop: Path) -> None:
    other = queue(loop, "nomerges")
    second = Keeper("apply 4 (x)", state_dir=state, hold=Hold(LONG_S)).start()
    put_in_force(state, loop, LONG_S)
    second.knob_write(knob(loop, "nomerges"), 1)
    with pytest.raises(Refused, match="before something else is put in force"):
        second.close()
    assert text(other) == "0"
    assert text(queue(loop)) == "512"


def test_only_what_waits_can_be_confirmed(state: Path, loop: Path, old: str) -> None:
    with Keeper("confirm", state_dir=state) as keeper, pytest.raises(Refused, match="nothing of it waits"):
        keeper.confirm(OWNER)
    put_in_force(state, loop, 3.0)
    with Keeper("confirm", state_dir=state) as keeper:
        with pytest.raises(Refused, match="nothing of it waits"):
            keeper.confirm("apply 4 (x)")
        until(lambda: text(queue(loop)) == old)
        with pytest.raises(Refused, match="nothing of it waits"):
            keeper.confirm(OWNER)


def test_a_holding_keeper_that_is_killed_leaves_what_the_next_one_puts_back(
    state: Path, loop: Path, old: str
) -> None:
    keeper = Keeper(OWNER, state_dir=state, hold=Hold(LONG_S)).start()
    keeper.knob_write(knob(loop), 512)
    pid = keeper.pid
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(KeeperLost):
        keeper.close()
    wait_for_end(pid)
    assert restore_all(state_dir=state).restored == (knob(loop),)
    assert text(queue(loop)) == old


def test_an_error_keeps_nothing_in_force(state: Path, loop: Path, old: str) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        Keeper(OWNER, state_dir=state, hold=Hold(LONG_S)) as keeper,
    ):
        keeper.knob_write(knob(loop), 512)
        raise ZeroDivisionError
    assert text(queue(loop)) == old
    assert waiters(state) == []


def test_nothing_that_was_changed_needs_no_confirmation(state: Path) -> None:
    with Keeper(OWNER, state_dir=state, hold=Hold(LONG_S)):
        pass
    assert waiters(state) == []


@pytest.mark.parametrize("seconds", [0, -1, 604_801, 1e300])
def test_a_time_that_is_none_is_refused_and_everything_is_put_back(
    state: Path, loop: Path, old: str, seconds: float
) -> None:
    with pytest.raises(InputError, match="allowed are"):
        put_in_force(state, loop, seconds)
    until(lambda: text(queue(loop)) == old and not waiters(state))


def test_only_what_is_to_stay_can_wait(raw) -> None:
    reply = raw().ask("await_confirmation", seconds=10)
    assert reply["error"]["kind"] == "input"
    assert "--hold" in reply["error"]["message"]


def test_a_full_disk_keeps_nothing_in_force(tmp_path: Path, loop: Path, old: str, small_disk) -> None:
    disk = small_disk(1)
    state = disk / "state"
    with (
        pytest.raises((StageFailed, Refused), match="journal"),
        Keeper(OWNER, state_dir=state, hold=Hold(LONG_S)) as keeper,
    ):
        keeper.knob_write(knob(loop), 512)
        with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            while True:
                filler.write(b"x" * 4096)
        # What is left of the journal's last page is filled up by lines that are undone at once.
        for value in range(600, 640):
            keeper.knob_write(knob(loop), value)
    (disk / "filler").unlink()
    until(lambda: text(queue(loop)) == old and not waiters(state))


CLIENT = """
import sys
from pathlib import Path
from ascar.systems.keeper import Hold, Keeper
with Keeper("apply 3 (disk)", state_dir=Path(sys.argv[1]), hold=Hold(1.0)) as keeper:
    keeper.knob_write(sys.argv[2], 512)
    keeper.knob_write(sys.argv[3], 1)
print("in force", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["client", "keeper", "both"])
def test_whoever_is_killed_at_whatever_moment_nothing_unconfirmed_stays(
    state: Path, loop: Path, old: str, whom: str, seed: int
) -> None:
    source = random.Random(f"{whom} {seed}")
    for _ in range(5):
        words = [sys.executable, "-c", CLIENT, str(state), knob(loop), knob(loop, "nomerges")]
        client = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(source.uniform(0.2, 0.9))
        if whom != "client":
            children = subprocess.run(
                ["pgrep", "-P", str(client.pid), "ascard"], capture_output=True, text=True, check=False
            )
            for pid in map(int, children.stdout.split()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if whom != "keeper":
            client.kill()
        client.communicate()
        end_s = time.monotonic() + 60
        while text(queue(loop)) != old or text(queue(loop, "nomerges")) != "0" or list(state.glob("*.jsonl")):
            assert time.monotonic() < end_s, (text(queue(loop)), list(state.glob("*")))
            if whom != "client":  # what a killed keeper leaves, the next one finds
                restore_all(state_dir=state)
            time.sleep(0.05)
        until(lambda: not waiters(state))
