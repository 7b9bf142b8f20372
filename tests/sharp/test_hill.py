"""Which action is tried next: inside the bounds, each once, on in a direction that brought something."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.errors import InputError
from ascar.sharp import Action
from ascar.sharp.hill import Bounds, HillClimber


def climber(bounds: Bounds, at: Action, seed: int = 0) -> HillClimber:
    return HillClimber(bounds, Random(seed), at)


@given(
    st.integers(30, 200),
    st.integers(-234, 234),
    st.integers(0, 70_000),
    st.integers(0, 1_000),
)
def test_neighbours_differ_in_one_field_and_stay_inside(m100: int, b100: int, tau_us: int, seed: int) -> None:
    at = Action(m100, b100, tau_us)
    found = climber(Bounds(), at, seed)
    for one in found.neighbours():
        changed = [one.m100 != m100, one.b100 != b100, one.tau_us != tau_us]
        assert sum(changed) == 1
        assert Bounds().hold(one)
    assert Bounds().hold(found.jump())


def test_each_neighbour_is_proposed_once_and_then_none() -> None:
    found = climber(Bounds(), Action(100, 0, 20_000))
    seen: list[Action] = []
    while (one := found.propose()) is not None:
        seen.append(one)
        found.stayed(one)
    assert len(seen) == len(set(seen)) == len(set(found.neighbours()))


def test_it_goes_on_in_a_direction_that_brought_something() -> None:
    found = climber(Bounds(), Action(100, 0, 20_000))
    found.moved(Action(100, -30, 20_000))
    further = found.propose()
    assert further == Action(100, -60, 20_000)
    found.stayed(further)
    assert found.propose() != further
    assert Action(100, 0, 20_000) in found.tried  # where it came from was just worse


def test_it_goes_no_further_than_the_bounds() -> None:
    found = climber(Bounds(b100=(-40, 0)), Action(100, 0, 20_000))
    found.moved(Action(100, -30, 20_000))
    proposed = [found.neighbours(), found.propose()]
    assert all(one.b100 >= -40 for one in proposed[0])


def test_a_field_that_cannot_move_does_not() -> None:
    found = climber(Bounds(m100=(100, 100), tau_us=(0, 0)), Action(-1, 0, 0))
    assert {(one.m100, one.tau_us) for one in found.neighbours()} == {(-1, 0)}
    assert climber(Bounds((100, 100), (0, 0), (0, 0)), Action(100, 0, 0)).propose() is None


def test_refused_bounds() -> None:
    with pytest.raises(InputError, match="b100 = 3 to 2"):
        Bounds(b100=(3, 2))
