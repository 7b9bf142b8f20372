from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.pilot import combine
from ascar.results.measurement import Series


def test_rates_of_nodes_add_up_however_their_readings_lie():
    slow = Series(np.arange(1.0, 11.0), np.full(10, 100.0))
    fast = Series(np.arange(0.7, 11.0, 0.5), np.full(21, 50.0))
    together = combine({"a": slow, "b": fast})
    assert together.nodes == 2
    assert together.series.values == pytest.approx(150.0)
    assert together.series.seconds[0] == pytest.approx(1.2)  # from 0.2 on both are measured
    assert together.left_out == 0


def test_what_was_moved_is_kept():
    rng = np.random.default_rng(2)
    at_s = np.cumsum(rng.uniform(0.5, 1.5, 400))
    values = rng.uniform(50, 150, 400)
    found = combine({"a": Series(at_s, values)}, step_s=7.0).series
    moved = np.interp(
        [found.seconds[0] - 7.0, found.seconds[-1]],
        np.concatenate([[at_s[0] - np.median(np.diff(at_s))], at_s]),
        np.concatenate([[0], np.cumsum(values * np.diff(at_s, prepend=at_s[0] - np.median(np.diff(at_s))))]),
    )
    assert found.values.sum() * 7.0 == pytest.approx(moved[1] - moved[0])


def test_means_are_averaged():
    at_s = np.arange(1.0, 5.0)
    together = combine({"a": Series(at_s, np.full(4, 10.0)), "b": Series(at_s, np.full(4, 30.0))}, "mean")
    assert together.series.values.tolist() == [20.0] * 4


def test_instants_at_which_a_node_was_silent_are_left_out():
    whole = Series(np.arange(1.0, 101.0), np.full(100, 1.0))
    gap = np.concatenate([np.arange(1.0, 41.0), np.arange(60.0, 101.0)])
    together = combine({"a": whole, "b": Series(gap, np.full(len(gap), 1.0))})
    assert together.left_out == 20
    assert len(together.series) == 80
    assert not ((together.series.seconds > 40) & (together.series.seconds <= 60)).any()


def test_nodes_that_cannot_be_combined_are_refused():
    early = Series(np.arange(1.0, 5.0), np.ones(4))
    late = Series(np.arange(101.0, 105.0), np.ones(4))
    with pytest.raises(InputError, match="0 s in common"):
        combine({"a": early, "b": late})
    with pytest.raises(InputError, match="at least 2"):
        combine({"a": early, "b": Series(np.ones(1), np.ones(1))})
    with pytest.raises(InputError, match="at least one"):
        combine({})
    with pytest.raises(InputError, match="steps"):
        combine({"a": Series(np.ones(5), np.ones(5))})
    with pytest.raises(InputError, match="steps"):
        combine({"a": early}, step_s=1e-9)
