"""The learner's side of falling back: every sequence of states, and what is avoided after it."""

from __future__ import annotations

from itertools import product

import pytest

from ascar.capes.process.fallback import FallbackState, Suspension

INITIAL, TRIED, GOOD = (1.0,), (2.0,), (3.0,)
TUNING, STORAGE, HOLDING, KILLED = FallbackState


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        (None, TUNING),
        ("storage", STORAGE),
        ("storage: no space left on device", STORAGE),
        ("holding until tick 90: the mean of ops was 3, less than 5", HOLDING),
        ("killed", KILLED),
        ("tuning", STORAGE),
        ("", STORAGE),
        ("holdings", STORAGE),
    ],
)
def test_the_reasons_first_word_names_the_state(reason, state):
    assert FallbackState.of(reason) is state


@pytest.mark.parametrize("states", list(product(FallbackState, repeat=4)))
def test_it_is_suspended_in_every_state_but_tuning_and_blames_what_was_in_force(states):
    suspension, setting = None, TRIED
    for state in states:
        known = suspension
        now = TRIED if state is TUNING else GOOD  # another setting is restored
        suspension = Suspension.after(known, state, setting, now)
        assert (suspension is None) == (state is TUNING)
        if suspension is not None:
            assert suspension == Suspension(state, TRIED)
        setting = now


def test_without_a_tick_before_it_blames_what_is_in_force():
    assert Suspension.after(None, HOLDING, None, GOOD) == Suspension(HOLDING, GOOD)


@pytest.mark.parametrize(
    ("state", "blamed", "now", "avoided"),
    [
        (HOLDING, TRIED, GOOD, True),
        (HOLDING, TRIED, TRIED, False),  # nothing was restored
        (HOLDING, INITIAL, GOOD, False),
        (KILLED, TRIED, GOOD, False),
        (STORAGE, TRIED, GOOD, False),
    ],
)
def test_only_a_setting_that_was_left_for_a_floor_is_avoided(state, blamed, now, avoided):
    assert Suspension(state, blamed).avoids(now, INITIAL) is avoided
