"""Power cuts in the middle of studies and sessions: what was complete, and the machine, are as before."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from ascar.testing import Guest
from power_cuts import KINDS, Machine

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@pytest.fixture(autouse=True)
def guests() -> None:
    lack = Guest.missing()
    if lack is not None:
        pytest.skip(lack)


@pytest.fixture
def cuts(request: pytest.FixtureRequest) -> int:
    return request.config.getoption("--cuts")


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_moment_all_is_as_before(kind: str, tmp_path: Path, seed: int, cuts: int) -> None:
    machine = Machine(kind, tmp_path, random.Random(f"kill {kind} {seed}"))
    assert machine.kills(cuts) == [[]] * cuts


@pytest.mark.parametrize("kind", KINDS)
def test_power_cuts_lose_no_completed_trial_and_leave_nothing(
    kind: str, tmp_path: Path, seed: int, cuts: int
) -> None:
    machine = Machine(kind, tmp_path, random.Random(f"{kind} {seed}"))
    assert machine.cuts(cuts) == [[]] * cuts


def test_without_fsync_the_same_cuts_lose_something(
    tmp_path: Path, seed: int, cuts: int, figures: Counter[str]
) -> None:
    kinds = KINDS if cuts > 1 else KINDS[:1]
    lost: list[list[str]] = []
    for kind in kinds:
        (tmp_path / kind).mkdir()
        machine = Machine(kind, tmp_path / kind, random.Random(f"{kind} {seed}"), fsync=False)
        lost += machine.cuts(cuts)
    figures["cuts that lost something"] += sum(bool(one) for one in lost)
    assert 10 * sum(bool(one) for one in lost) >= len(lost)
