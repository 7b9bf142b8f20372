"""The verdict on phases in turns."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.capes.session.proof import ComparedPhase, judge, line_of
from ascar.objective import Objective

MORE, LESS = Objective.parse("maximize ops"), Objective.parse("minimize latency")


def phases(gain, pairs=12, seed=1, noise=0.05):
    """Pairs in a drawn order, on a machine that grows slower, tick noise that is correlated."""
    rng = np.random.default_rng(seed)
    made = []
    for pair in range(pairs):
        first = bool(rng.integers(2))
        for is_tuned in (first, not first):
            level = 1000 * (1 - 0.02 * pair) * ((1 + gain) if is_tuned else 1)
            wobble = np.convolve(rng.standard_normal(30), [0.6, 0.4], "valid") * noise
            made.append(ComparedPhase(is_tuned, tuple(level * (1 + wobble))))
    return made


@pytest.mark.parametrize(
    ("gain", "objective", "claim"),
    [(0.2, MORE, "gain"), (-0.2, MORE, "loss"), (-0.2, LESS, "gain"), (0.2, LESS, "loss"), (0, MORE, "none")],
)
def test_what_is_there_is_found_though_the_machine_drifts(gain, objective, claim):
    found = judge(phases(gain), objective, 0.05)
    assert found.claim == claim
    assert found.pairs == 12
    assert found.baseline_ticks == found.tuned_ticks == 12 * 29
    assert 12 <= found.baseline_samples <= found.baseline_ticks
    low, high = found.gain_low, found.gain_high
    assert low <= found.gain <= high
    if objective is MORE:
        assert low <= gain <= high
    assert ("nothing is claimed" in line_of(found)) == (claim == "none")


def test_no_difference_is_seldom_called_one():
    claims = [judge(phases(0, seed=seed, pairs=6), MORE, 0.05).claim for seed in range(200)]
    assert sum(one != "none" for one in claims) <= 0.05 * 200 + 6


def test_too_little_claims_nothing():
    for count in (0, 1, 2, 3):
        found = judge(phases(0.5)[:count], MORE, 0.05)
        assert (found.claim, found.gain, found.pairs) == ("none", None, count // 2)
        assert "nothing is claimed" in line_of(found)
        assert ("1 pair of phases" in line_of(found)) == (found.pairs == 1)


def test_a_system_at_zero_has_no_gain():
    still = [ComparedPhase(at % 2 == 1, (0.0, 0.0, 0.0)) for at in range(8)]
    assert judge(still, MORE, 0.05).claim == "none"
