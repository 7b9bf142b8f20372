"""The clock that obeys."""

from __future__ import annotations

import pytest

from ascar.testing import VirtualClock


def test_it_moves_only_when_told():
    clock = VirtualClock(5.0)
    assert clock() == clock() == 5.0
    clock.sleep(2.5)
    assert clock() == 7.5


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_it_does_not_run_backwards(seconds):
    with pytest.raises(ValueError, match="only runs forwards"):
        VirtualClock().sleep(seconds)
