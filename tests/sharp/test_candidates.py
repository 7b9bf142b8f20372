"""Candidates of a round, and splitting."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascar.errors import InputError
from ascar.rules import INFINITY
from ascar.sharp import Action, Interval, Observed, Rule, RuleSet, candidates, split
from ascar.sharp.schedules.candidates import B100, M100, TAU_US, varied

GOLDEN = Path(__file__).parents[3] / "shared" / "data" / "sharp_golden"
EVERYWHERE = (Interval(0, INFINITY), Interval(0, INFINITY), Interval(100, INFINITY))


def test_the_published_candidates_again() -> None:
    if not GOLDEN.exists():
        pytest.skip("the published search's candidates are not on this machine")
    base = RuleSet.parse((GOLDEN / "base_ruleset.txt").read_text())
    golden = (GOLDEN / "candidates_round1.txt").read_text()
    found = (f"# {number}\n{one.text()}" for number, one in enumerate(candidates(base), start=11))
    assert "".join(found) == golden


def test_changes_grow_geometrically_up_to_the_farther_bound() -> None:
    assert M100.around(99) == [94, 104, 86, 111, 69, 128, 169]
    assert B100.around(-29) == [-59, 1, -88, 30, -147, 89, 206]
    assert TAU_US.around(28_512)[:4] == [28_012, 29_012, 27_372, 29_651]
    assert min(TAU_US.around(0)) > 0


def test_all_three_variables_change_together() -> None:
    start = Action(100, 0, 20_000)
    for action in varied(start):
        assert action.m100 != start.m100
        assert action.b100 != start.b100
        assert action.tau_us != start.tau_us


def test_no_multiplication_counts_as_one() -> None:
    assert list(varied(Action(-1, 0, 20_000))) == list(varied(Action(100, 0, 20_000)))


def test_the_hottest_rule_is_split_at_its_means() -> None:
    seen = Observed(7, (50, 60, 250))
    whole = RuleSet((Rule(EVERYWHERE, Action(100, 0, 20_000), seen),))
    parts = split(whole)
    assert len(parts.rules) == 8
    assert parts.rules[0].region == (Interval(0, 50), Interval(0, 60), Interval(100, 250))
    assert parts.rules[-1].region == (Interval(50, INFINITY), Interval(60, INFINITY), Interval(250, INFINITY))
    assert RuleSet.parse(parts.text()) == parts  # they cover the space


def test_a_rule_never_used_is_split_in_the_middle_and_one_axis_alone_in_two() -> None:
    whole = RuleSet.uniform(Action(100, 0, 20_000))
    parts = split(whole, axes=(0,))
    assert [rule.region[0] for rule in parts.rules] == [
        Interval(0, INFINITY // 2),
        Interval(INFINITY // 2, INFINITY),
    ]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "n_rules"),
        ("1,2\n0,10,0,10,0,10,100,0,0\n", "no rule"),
        ("1,2\n0,10,0,10,0,10,100,0,x\n", "tau_us"),
        ("2,2\n0,2147483647,0,2147483647,0,2147483647,100,0,0\n", "n_rules"),
    ],
)
def test_what_is_no_rule_set_is_refused_with_the_place(text: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        RuleSet.parse(text)
