from __future__ import annotations

import numpy as np
import pytest

from ascar.analysis.marginals import marginals
from ascar.results.trial import Purpose
from ascar.space import ChangeCost, Configuration, Space, categorical, floating, integer, ordinal


def rows_of(found):
    return {label: len(scores) for label, scores in found.rows}


def test_the_parameter_that_matters_comes_first(space, make):
    first = marginals(make.search(space, 120), space)[0]
    assert first.parameter == "fs"
    assert [label for label, _ in first.rows] == ["ext4", "xfs", "btrfs"]
    assert first.share > 0.9


def test_rows_hold_every_scored_trial_once(space, make):
    trials = make.search(space, 120)
    scored = sum(trial.score is not None for trial in trials)
    for found in marginals(trials, space):
        assert sum(rows_of(found).values()) == scored


def test_where_a_parameter_does_not_apply(space, make):
    found = {one.parameter: one for one in marginals(make.search(space, 120), space)}["agcount"]
    assert found.rows[-1][0] == "n/a"


def test_one_value_alone_says_nothing(space, make):
    trials = [make.trial(n, space.default(), float(n)) for n in range(1, 9)]
    assert marginals(trials, space) == []
    assert marginals([], space) == []


def test_the_verification_is_left_out(space, make):
    xfs = Configuration({"fs": "xfs", "agcount": 1, "read_ahead_kb": 0, "barrier": True})
    trials = [make.trial(1, space.default(), 1.0), make.trial(2, xfs, 9.0, Purpose.VERIFY)]
    assert marginals(trials, space) == []


def test_many_numbers_become_ranges_of_about_equal_size(make):
    space = Space((integer("n", (0, 10_000), default=0, cost=ChangeCost.DYN_KERNEL),))
    rng = np.random.default_rng(3)
    trials = [
        make.trial(i, Configuration({"n": int(rng.integers(0, 10_000))}), float(i)) for i in range(1, 61)
    ]
    (found,) = marginals(trials, space)
    assert 4 <= len(found.rows) <= 8
    assert sum(rows_of(found).values()) == 60
    assert max(rows_of(found).values()) <= 20


def test_floats_and_special_values(make):
    space = Space(
        (floating("x", (1.0, 2.0), default=1.0, cost=ChangeCost.DYN_KERNEL, special={0: "automatic"}),)
    )
    values = [0.0, *np.linspace(1, 2, 20)]
    trials = [make.trial(i, Configuration({"x": float(v)}), v) for i, v in enumerate(values, start=1)]
    (found,) = marginals(trials, space)
    assert sum(rows_of(found).values()) == 21


def test_many_words_are_cut_to_the_commonest(make):
    words = [f"w{n}" for n in range(30)]
    space = Space((categorical("p", words, default="w0", cost=ChangeCost.DYN_KERNEL),))
    trials = [make.trial(i, Configuration({"p": words[i % 30]}), float(i)) for i in range(1, 100)]
    (found,) = marginals(trials, space)
    assert len(found.rows) == 8
    assert found.rows[-1][0] == "23 others"
    assert sum(rows_of(found).values()) == 99


def test_ordinals_keep_their_order(make):
    space = Space((ordinal("size", ["4k", "64k", "1m"], default="4k", cost=ChangeCost.DYN_KERNEL),))
    trials = [
        make.trial(i, Configuration({"size": v}), 1.0) for i, v in enumerate(["1m", "4k", "64k"], start=1)
    ]
    (found,) = marginals(trials, space)
    assert [label for label, _ in found.rows] == ["4k", "64k", "1m"]


@pytest.mark.parametrize("value", ["", " ", "x" * 200])
def test_odd_words(make, value):
    space = Space((categorical("p", [value, "other"], default="other", cost=ChangeCost.DYN_KERNEL),))
    trials = [
        make.trial(i, Configuration({"p": v}), float(i)) for i, v in enumerate([value, "other"] * 2, start=1)
    ]
    (found,) = marginals(trials, space)
    assert all(0 < len(label) <= 24 for label, _ in found.rows)
