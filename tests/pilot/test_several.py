"""Several sources in one round: all begin together, and none hangs, fails or babbles unnoticed."""

from __future__ import annotations

import sys
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.nodes.local import LocalNode
from ascar.pilot import CommandRunner
from ascar.pilot.several import SeveralSources, Source
from ascar.program.gate import StartingGate, Unstarted

if TYPE_CHECKING:
    from collections.abc import Sequence


class Connecting(LocalNode, frozen=True):
    """This machine behind a connection of which a shell says what it does first."""

    before: str = ""

    def words(self, argv: Sequence[str]) -> list[str]:
        return ["sh", "-c", f'{self.before}\nexec "$@"', "sh", *argv]


def node(before):
    """A node that connects so."""
    return Connecting(name="far", before=before)


NOTES = 'date +%s%N >> "$1"; sleep "$2"; date +%s%N >> "$1"'


def noting(path, seconds, before=None, **options):
    """A source that notes when it begins and when it ends."""
    argv = ("sh", "-c", NOTES, "sh", str(path), str(seconds))
    return CommandRunner(argv, **options, node=None if before is None else node(before))


def together(**runners):
    return SeveralSources([Source(name, runner) for name, runner in runners.items()])


def times_s(path):
    noted = [int(line) / 1e9 for line in path.read_text().splitlines()]
    return list(zip(noted[::2], noted[1::2], strict=True))


def test_none_begins_before_the_slowest_connection_stands(tmp_path):
    near, far = tmp_path / "near", tmp_path / "far"
    sources = together(near=noting(near, 0.01), far=noting(far, 0.01, "sleep 1"))
    for _ in range(2):
        done = sources(None, 60.0)
        assert done is not None
        assert done.seconds < 0.9  # of the connection nothing is counted
    for (one, _), (other, _) in zip(times_s(near), times_s(far), strict=True):
        assert abs(one - other) < 0.5


def test_a_round_ends_with_the_slowest_and_the_next_begins_after_it(tmp_path):
    quick, slow = tmp_path / "quick", tmp_path / "slow"
    sources = together(quick=noting(quick, 0.0), slow=noting(slow, 0.3), far=noting(tmp_path / "f", 0.1, ":"))
    for _ in range(3):
        done = sources(None, 60.0)
        assert done is not None
        assert done.seconds >= 0.3
        assert set(done.readings) == {"quick.duration_s", "slow.duration_s", "far.duration_s"}
    for (_, ended), (begun, _) in pairwise(times_s(slow)):
        assert begun >= ended
    for (_, ended), (begun, _) in zip(times_s(slow), times_s(quick)[1:], strict=False):
        assert begun >= ended


def test_one_that_never_gets_ready_is_named_within_its_limit_and_nobody_begins(tmp_path):
    near = tmp_path / "near"
    sources = together(
        near=noting(near, 0.01), far=noting(tmp_path / "far", 0.01, "sleep 3811", round_limit_s=1.0)
    )
    begun_s = time.monotonic()
    with pytest.raises(StageFailed, match=r"source far: .*not ready to begin within its limit of 1 s"):
        sources(None, 600.0)
    assert time.monotonic() - begun_s < 20
    assert not near.exists()


def test_one_whose_connection_breaks_at_once_is_named_and_nobody_begins(tmp_path):
    near = tmp_path / "near"
    sources = together(
        near=noting(near, 0.01), far=noting(tmp_path / "far", 0.01, "echo no route >&2; exit 255")
    )
    with pytest.raises(EnvironmentLacks, match=r"source far: node far: cannot be reached: no route"):
        sources(None, 600.0)
    assert not near.exists()


def test_a_connection_that_stands_too_late_for_the_session_is_cut_off(tmp_path):
    near = tmp_path / "near"
    sources = together(near=noting(near, 0.01), far=noting(tmp_path / "far", 0.01, "sleep 3812"))
    begun_s = time.monotonic()
    assert sources(None, 1.0) is None
    assert time.monotonic() - begun_s < 20
    assert "far" in sources.cut_off
    assert not near.exists()


def test_the_time_that_a_source_waits_for_others_counts_for_the_session(tmp_path):
    sources = together(near=noting(tmp_path / "n", 3813), far=noting(tmp_path / "f", 3813, "sleep 1"))
    begun_s = time.monotonic()
    assert sources(None, 2.0) is None
    assert time.monotonic() - begun_s < 15
    assert set(sources.cut_off) == {"near", "far"}


def test_what_a_connection_says_before_it_is_ready_is_kept_for_the_error(tmp_path):
    runner = CommandRunner(
        ("sh", "-c", "echo oops >&2; exit 3"), node=node("echo welcome >&2; printf half >&2")
    )
    with pytest.raises(StageFailed, match=r"source far: round: sh exited with 3: halfoops"):
        together(far=runner, near=noting(tmp_path / "n", 0.0))(None, 60.0)


GARBAGE = """
import os
for _ in range(40):
    os.write(1, os.urandom(65536))
os.write(2, os.urandom(200000))
"""


def test_garbage_from_one_source_harms_no_other():
    babbling = CommandRunner((sys.executable, "-c", GARBAGE + "print(); print('x 5')"), {"x": r"^x (\d+)$"})
    fine = CommandRunner(("echo", "x 7"), {"x": r"x (\d+)"})
    done = together(babbling=babbling, fine=fine)(None, 60.0)
    assert done is not None
    assert done.readings["fine.x"] == 7
    assert done.readings["babbling.x"] == 5
    silent = CommandRunner((sys.executable, "-c", GARBAGE), {"x": r"^never (\d+)$"})
    with pytest.raises(StageFailed, match=r"source babbling: .*--metric x = .* found nothing"):
        together(babbling=silent, fine=fine)(None, 60.0)


@pytest.mark.parametrize("told", ["nan", "inf", "-", "1e999"])
def test_what_is_no_number_fails_with_the_source_s_name(told):
    babbling = CommandRunner(("echo", f"x {told}"), {"x": r"x (\S+)"})
    with pytest.raises(StageFailed, match=r"source babbling: "):
        together(babbling=babbling, fine=CommandRunner(("true",)))(None, 60.0)


def test_a_gate_opens_for_all_at_once_or_for_none():
    gate, through = StartingGate(3), []
    threads = [threading.Thread(target=lambda: (gate.wait(), through.append(1))) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    assert not through
    gate.wait()
    for thread in threads:
        thread.join()
    gate.shut()  # too late to keep anybody
    assert len(through) == 2
    shut = StartingGate(2)
    shut.shut()
    for _ in range(2):
        with pytest.raises(Unstarted):
            shut.wait()
