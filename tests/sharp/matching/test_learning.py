"""What is learned from gains: which features count, trees, predictions, choices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.library import GainEntry, Library, grow, learned, lines
from ascar.library.information import CLASSES, gain_classes, information_gain, ranking
from ascar.library.signature import ABSENT, difference, row_of
from ascar.library.tree import Leaf, Shape, Split, leaf_of
from ascar.sharp import Action, RuleSet
from ascar.sharp.matching import Chooser, Predictor
from ascar.sharp.matching.gains import gain_of
from ascar.sharp.matching.traits import TRAITS, effects_of, traits_of

OBJECTIVE = "maximize throughput_mb_per_s"


@pytest.fixture
def library(tmp_path):
    """Three rule sets; gains depend on the share of writes, not on the threads, with a little noise."""
    draw = np.random.default_rng(5)
    with Library.writing(tmp_path / "library.jsonl") as kept:
        ids = []
        for at in range(30):
            share = float(draw.uniform())
            features = {"write_share": share, "threads": float(draw.integers(1, 64)), "stat_share": math.nan}
            kept.add_workload(f"w{at:02}", features)
        for at, tau in enumerate((0, 20_000, 60_000)):
            rules = RuleSet.uniform(Action(70, 100, tau))
            ids.append(kept.add_rules(rules, f"w{at:02}", OBJECTIVE).id)
        for at, key in enumerate(ids):
            for name, one in kept.workloads.items():
                share = one.values["write_share"]
                gain = (0.3, 0.2, -0.4)[at] * (share - 0.5) + float(draw.normal(0, 0.003))
                kept.add_gain(GainEntry(key, name, OBJECTIVE, gain))
        yield kept


def test_features_on_their_scales():
    names = ["a_share", "b_bytes_mean", "c", "d"]
    row = row_of({"a_share": 0.25, "b_bytes_mean": 1024.0, "c": 0.0}, names)
    assert row.tolist() == [0.25, 10.0, ABSENT, ABSENT]
    other = row_of({"b_bytes_mean": 4096.0, "d": 1.0}, names)
    assert difference(row, other).tolist() == [ABSENT, 2.0, 0.0, -ABSENT]


def test_information_gain_is_that_of_the_textbook():
    classes = np.repeat([0, 3], 500)
    knows, other = np.repeat([0.0, 1.0], 500), np.tile([0.0, 1.0], 500)
    assert information_gain(knows, classes) == pytest.approx(1.0, abs=0.01)
    assert information_gain(other, classes) == 0.0
    found = ranking(["other", "knows"], np.stack([other, knows], axis=1), classes)
    assert [one.feature for one in found] == ["knows", "other"]
    assert found[0].share == pytest.approx(1.0, abs=0.01)
    assert [CLASSES[at] for at in gain_classes(np.full(4, 0.2), np.array([-0.05, 0.0, 0.1, 0.19]))] == [
        "harmful", "useless", "part", "kept",
    ]  # fmt: skip


def test_a_tree_finds_the_split_and_prints_it():
    draw = np.random.default_rng(1)
    rows = draw.uniform(size=(200, 3))
    values = np.where(rows[:, 1] > 0.6, 0.2, -0.1)
    tree = grow(rows, values)
    assert isinstance(tree, Split) and tree.feature == 1 and tree.threshold == pytest.approx(0.6, abs=0.02)
    assert isinstance(tree.below, Leaf) and tree.below.mean == pytest.approx(-0.1)
    assert leaf_of(tree, np.array([0.0, 0.9, 0.0])).mean == pytest.approx(0.2)
    text = list(lines(tree, ["x", "share", "z"], lambda _, value: f"{value:.1f}"))
    assert text[0] == "share <= 0.6:" and text[1].startswith("  -10.0%")
    assert isinstance(grow(rows, np.ones(200)), Leaf)
    assert isinstance(grow(rows[:4], values[:4], Shape(leaf_min=3)), Leaf)


def test_traits_say_where_a_window_settles_and_what_it_allows():
    traits = dict(zip(TRAITS, traits_of(RuleSet.uniform(Action(50, 200, 10_000))), strict=True))
    assert traits == pytest.approx({"m": 0.5, "b": 2.0, "tau_ms": 10.0, "window_log2": 2.0, "rules": 1.0})
    features = {
        "request_threads": 4.0, "request_read_gap_s_mean": math.nan, "request_write_gap_s_mean": 0.00125,
        "request_write_in_flight_mean": 32.0,
    }  # fmt: skip
    effects = effects_of(np.array(list(traits.values())), features)  # 200 requests a second and stream
    assert effects.tolist() == pytest.approx([-1.0, -1.0, 0.5])


def test_what_counts_is_learned(library):
    found = learned(library, OBJECTIVE, ["threads", "write_share"])
    assert found.informative[0].feature == "write_share"
    assert found.weights["write_share"] > 0.8
    a, b, c = ({"write_share": share, "threads": threads} for share, threads in ((0, 1), (0, 50), (1, 1)))
    assert found.distance(a, a) == 0
    assert found.distance(a, b) < 0.3 < found.distance(a, c) <= 1
    few = learned(library, "maximize x", ["threads", "write_share"])
    assert few.informative == () and few.weights == {"threads": 0.5, "write_share": 0.5}


def test_gains_of_workloads_never_seen_are_predicted(library):
    hidden = [f"w{at:02}" for at in range(20, 30)]
    predictor = Predictor(library, OBJECTIVE, without=hidden)
    assert len(predictor.gains) == 60
    predicted, true = [], []
    for name in hidden:
        for one in predictor.predict(library.workloads[name].values):
            predicted.append(one.gain)
            true.append(library.gain(one.rules, name, OBJECTIVE).gain)
            assert one.sd >= 0 and one.low(1.0) <= one.gain
    assert np.corrcoef(predicted, true)[0, 1] > 0.9


def test_the_best_is_chosen_or_none(library):
    chooser = Chooser(library, OBJECTIVE)
    writes = chooser.choose({"write_share": 0.97, "threads": 8.0})
    reads = chooser.choose({"write_share": 0.03, "threads": 8.0})
    assert writes.rule_set.rules[0].action.tau_us == 0 and writes.gain > 0.05
    assert reads.rule_set.rules[0].action.tau_us == 60_000 and 0 < reads.low <= reads.gain
    assert reads.nearest in library.workloads and 0 <= reads.distance <= 1
    assert chooser.choose({"write_share": 0.03, "threads": 8.0}, without={reads.rules}) is None
    assert Chooser(library, OBJECTIVE, caution=50.0).choose({"write_share": 0.5, "threads": 8.0}) is None


def test_rules_of_a_hidden_workload_are_hidden_too(library):
    chooser = Chooser(library, OBJECTIVE, without=["w02"])
    assert len(chooser.predictor.rules) == 2
    assert all(name != "w02" for name, _ in chooser.nearest({"write_share": 0.5}))


def test_too_little_to_predict_anything(tmp_path):
    with Library.writing(tmp_path / "l.jsonl") as kept, pytest.raises(InputError, match="holds 0 gains"):
        Predictor(kept, OBJECTIVE)


def test_gains_are_paired():
    gain = gain_of([110, 121, 99], [100, 110, 90])
    assert gain.mean == pytest.approx(0.1) and gain.high - gain.low < 1e-6
    assert gain_of([90.0], [100.0], sign=-1).mean == pytest.approx(0.1)
    assert gain_of([90.0], [100.0]).low is None
    assert gain_of([1.0], [0.0]) is None and gain_of([math.nan], [1.0]) is None
