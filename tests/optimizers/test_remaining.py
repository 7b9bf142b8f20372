"""What is left to gain: against systems whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.optimizers import Evaluation, open_optimizer
from ascar.optimizers.remaining import RemainingGains
from ascar.optimizers.stopping import RemainingGain, progress_of
from ascar.results.trial import TrialState
from ascar.space import Space, integer


def space() -> Space:
    return Space(tuple(integer(name, (0, 20), default=0, cost="dyn-kernel") for name in ("a", "b", "c")))


def loss_of(one) -> float:
    return 100 + 2 * (one["a"] - 12) ** 2 + 0.5 * (one["b"] - 7) ** 2


def told(remaining: RemainingGains, one, noise: float) -> None:
    remaining.tell(Evaluation(one, TrialState.COMPLETE, loss_of(one) * (1 + noise), None, 1.0))


def test_it_says_nothing_before_ten_configurations_are_measured():
    remaining = RemainingGains(space(), 1)
    for one in space().sample(np.random.default_rng(1), 9):
        told(remaining, one, 0.0)
    assert remaining.share_below(10.0) is None


def test_it_is_unsure_at_first_and_sure_once_the_best_is_found():
    optimizer = open_optimizer({"kind": "auto"}, space(), 1)
    remaining, rng = RemainingGains(space(), 1), np.random.default_rng(2)
    shares: dict[int, float | None] = {}
    for number in range(1, 41):
        one = optimizer.ask()
        evaluation = Evaluation(one, TrialState.COMPLETE, loss_of(one) * (1 + 0.01 * rng.normal()), None, 1.0)
        optimizer.tell(evaluation)
        remaining.tell(evaluation)
        if number in (10, 11, 12, 38, 39, 40):
            shares[number] = remaining.share_below(0.05)
    assert shares[10] is None
    assert shares[11] is None, "three looks are asked for"
    assert shares[12] is not None
    assert shares[12] < 0.5
    assert shares[40] is not None
    assert shares[40] > 0.9
    # More is never less likely.
    least, most = remaining.share_below(0.01), remaining.share_below(0.5)
    assert least is not None
    assert most is not None
    assert least <= shares[40] <= most


@pytest.mark.parametrize("sign", [1, -1])
def test_the_gain_is_relative_to_what_is_recommended(sign):
    # Losses of one sign, as a latency (positive) and a throughput (negative): the truth is a tenth.
    remaining, rng = RemainingGains(space(), 3), np.random.default_rng(3)
    for one in space().sample(rng, 40):
        level = 90 + one["a"] if sign > 0 else -(110 - one["a"])
        remaining.tell(Evaluation(one, TrialState.COMPLETE, level * (1 + 0.002 * rng.normal()), None, 1.0))
    gains = remaining.draws()
    assert gains is not None
    assert (gains >= 0).all()
    assert np.median(gains) < 0.05


def test_all_failures_leave_nothing_to_say():
    remaining = RemainingGains(space(), 1)
    for one in space().sample(np.random.default_rng(1), 30):
        remaining.tell(Evaluation(one, TrialState.FAILED, None))
    assert remaining.share_below(0.1) is None


def test_the_criterion_goes_on_while_nobody_knows_and_names_what_it_rests_on():
    class Known:
        def __init__(self, share):
            self.share = share

        def share_below(self, gain):
            assert gain == 0.02
            return self.share

    from dataclasses import replace

    at = progress_of([], 1.0)
    assert RemainingGain()(at) is None
    for share, ends in ((None, False), (0.89, False), (0.9, True)):
        reason = RemainingGain()(replace(at, remaining=Known(share)))
        assert (reason is not None) is ends
    assert "2.00%" in RemainingGain()(replace(at, remaining=Known(0.95)))
    assert "95.0%" in RemainingGain()(replace(at, remaining=Known(0.95)))
