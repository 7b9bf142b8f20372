from __future__ import annotations

from itertools import pairwise

import pytest

from ascar.errors import InputError
from ascar.pilot import Round, WorkAmounts


def _run(schedule, rounds, seconds_of):
    """Rounds of a schedule: (work amount, used)."""
    told = []
    for _ in range(rounds):
        amount = schedule.next()
        told.append((amount, schedule.learn(Round(seconds_of(amount), amount))))
    return told


def test_rounds_grow_by_a_slice_and_then_spread_over_the_range():
    schedule = WorkAmounts(1, 1e9, short_round_s=1.0, first_result_s=60, first_rounds=10)
    told = _run(schedule, 40, lambda amount: amount / 10)
    used = [amount for amount, is_used in told if is_used]
    growing = used[:10]
    steps = [b - a for a, b in pairwise(growing)]
    assert steps == pytest.approx([steps[0]] * 9)
    assert sum(growing) / 10 == pytest.approx(60, rel=0.25)
    spread = used[10:25]
    low, high = used[0], 2 * growing[-1]
    assert sorted(spread) == pytest.approx([low + (high - low) * i / 16 for i in range(1, 16)])


def test_a_round_that_is_mostly_no_work_is_too_short_however_long_it_takes():
    """Ten seconds of set-up: rounds take longer than the shortest allowed from the first on."""
    told = _run(WorkAmounts(1, 1e6, short_round_s=1.0), 12, lambda amount: 10 + amount / 10)
    first_used = next(amount for amount, used in told if used)
    assert first_used >= 10 * 10  # alpha times the speed
    assert [amount for amount, used in told if not used] == [
        2**i for i in range(len(told)) if 2**i < first_used
    ]


def test_no_round_leaves_the_range_or_takes_longer_than_planned():
    schedule = WorkAmounts(3, 500, whole=True, short_round_s=0.5, longest_round_s=20)
    told = _run(schedule, 120, lambda amount: amount / 20)
    assert all(3 <= amount <= 400 and amount == int(amount) for amount, _ in told)


def test_where_even_the_most_work_is_short_it_is_used():
    told = _run(WorkAmounts(1, 4), 6, lambda amount: 0.001)
    assert told[2] == (4, True)
    assert all(used for amount, used in told[3:] if amount == 4)


def test_one_amount_alone_is_a_range():
    assert all(amount == 5 and used for amount, used in _run(WorkAmounts(5, 5), 5, lambda amount: 2.0))


def test_rounds_of_unit_readings_are_as_long_as_is_needed_but_at_most_twice_the_longest():
    schedule = WorkAmounts(1, 1e6, short_round_s=1.0)
    while not schedule.learn(Round((amount := schedule.next()) / 10, amount)):
        pass
    assert schedule.next_for(1e6) == 2 * amount
    assert schedule.next_for(1e6) == 4 * amount
    assert schedule.next_for(0.0) == amount


def test_too_little_work_is_avoided_but_not_by_one_wild_estimate():
    schedule = WorkAmounts(1, 1e6, short_round_s=1.0, first_result_s=20, first_rounds=5)
    _run(schedule, 9, lambda amount: amount / 10)
    before = schedule.low
    schedule.avoid(1e12)
    assert schedule.low < 1e6
    assert min(schedule.next() for _ in range(10)) > before
    schedule.avoid(0.0)
    assert schedule.low == pytest.approx(before)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1), (2, 1), (1, float("inf")), (float("nan"), 1)])
def test_a_range_must_start_above_zero_and_end_later(low, high):
    with pytest.raises(InputError, match="0 < least <= most"):
        WorkAmounts(low, high)


def test_rounds_differ_where_set_up_outweighs_the_whole_range():
    schedule = WorkAmounts(1, 16)
    amounts = []
    for _ in range(20):
        amount = schedule.next()
        schedule.learn(Round(3 + amount / 10, amount))
        amounts.append(amount)
    assert amounts[:5] == [1, 2, 4, 8, 16]
    assert all(8 <= amount <= 16 for amount in amounts[5:])
    assert len(set(amounts[5:])) > 5


def test_whole_amounts_are_at_least_one():
    assert WorkAmounts(0.2, 3.9, whole=True).next() == 1
    with pytest.raises(InputError, match="whole number"):
        WorkAmounts(0.2, 0.9, whole=True)
