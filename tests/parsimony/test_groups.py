"""Which names are left out together, without a system."""

from __future__ import annotations

import random

import pytest

from ascar.parsimony.groups import Shrinking, shrunk

NAMES = tuple(f"p{index:02}" for index in range(20))


def counted(needed, tried):
    """A list is good enough with all the needed names in it."""

    def good(kept):
        tried.append(kept)
        return kept if needed <= set(kept) else None

    return good


@pytest.mark.parametrize(
    "needed", [{"p00"}, {"p19"}, {"p03", "p17"}, set(NAMES), {"p00", "p01", "p02", "p10"}]
)
@pytest.mark.parametrize("guess", [1, 3, 20])
def test_what_is_needed_is_kept_and_nothing_else(needed, guess):
    tried: list[tuple[str, ...]] = []
    assert set(shrunk(NAMES, guess, counted(needed, tried))) == needed


def test_one_of_many_that_was_guessed_takes_one_comparison():
    tried: list[tuple[str, ...]] = []
    assert shrunk(NAMES, 1, counted({"p00"}, tried)) == ("p00",)
    assert len(tried) == 1


def test_an_order_that_is_all_wrong_costs_a_logarithm_a_name():
    tried: list[tuple[str, ...]] = []
    shrunk(NAMES, 1, counted({"p18", "p19"}, tried))
    assert len(set(tried)) <= 2 * 2 * 5


def test_one_that_hurts_unless_another_is_set_goes_first_and_then_the_other():
    # "hurts" needs "helps" beside it; neither is needed.
    def good(kept):
        return kept if "main" in kept and ("hurts" not in kept or "helps" in kept) else None

    assert shrunk(("main", "hurts", "helps"), 3, good) == ("main",)


@pytest.mark.parametrize("seed", range(20))
def test_the_end_is_minimal_for_any_rule(seed):
    rng = random.Random(seed)
    answers: dict[tuple[str, ...], bool] = {}

    def good(kept):
        return kept if answers.setdefault(kept, rng.random() < 0.4) else None

    names = NAMES[:8]
    left = shrunk(names, 3, good)
    for name in left:
        without = tuple(one for one in left if one != name)
        assert not without or good(without) is None


def test_names_that_must_stay_beside_others_come_back_with_them():
    def good(kept):
        names = set(kept) | ({"p01"} if "p00" in kept else set())
        return tuple(sorted(names)) if "p00" in names else None

    assert shrunk(NAMES, 1, good) == ("p00", "p01")


def test_what_was_put_off_is_left_out_when_it_is_asked_again():
    patience = 0

    def good(kept):
        return kept if "p00" in kept and len(kept) >= 2 - patience else None

    shrinking = Shrinking(NAMES, good)
    shrinking.run(1)
    assert len(shrinking.kept) == 2
    patience = 1
    shrinking.run(1)
    assert shrinking.kept == ("p00",)
