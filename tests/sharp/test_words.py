"""Rule sets in words: the published excerpt, and what nothing was counted of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ascar.rules import INFINITY
from ascar.sharp import Action, Interval, Observed, Rule, RuleSet, split
from ascar.sharp.words import explain, settles_at, window_after


def bounded(ack: tuple[int, int], ratio: tuple[int, int]) -> tuple[Interval, ...]:
    return Interval(*ack), Interval(0, INFINITY), Interval(*ratio)


def test_the_published_excerpt_reads_as_in_the_text() -> None:
    """Table 3.5, whose words section 3.2.4 gives: fewer but faster, more but slower."""
    rules = RuleSet(
        (
            Rule(
                bounded((41_000, 48_000), (240, 450)),
                Action(100, -170, 33_000),
                Observed(3011, (45_000, 45_000, 320)),
            ),
            Rule(
                bounded((48_000, INFINITY), (0, 450)),
                Action(100, 90, 40_000),
                Observed(7426, (60_000, 60_000, 260)),
            ),
        )
    )
    first, second = explain(rules)
    assert (first.when, first.what) == ("not congested and getting worse", "fewer, faster")
    assert (second.when, second.what) == ("congested, but improving", "more, slower")
    assert first.used_share == pytest.approx(3011 / 10437)
    assert (first.window_settles_at, second.window_settles_at) == (1.0, 256.0)


def test_without_counts_the_region_tells() -> None:
    whole = RuleSet.uniform(Action(-1, 0, 20_000))
    assert [(one.when, one.what, one.used_share) for one in explain(whole)] == [
        ("always", "as many, at least 20 ms apart", None)
    ]
    parts = [one.when for one in explain(split(whole, axes=(0, 2)))]
    assert parts == [
        "not congested and improving",
        "not congested and getting worse",
        "congested, but improving",
        "congested and getting worse",
    ]


def test_a_queue_that_grows_and_one_that_drains() -> None:
    """Requests that leave faster than replies come, and the other way round."""
    parts = split(RuleSet.uniform(Action(-1, 0, 0)), axes=(0, 1))
    words = [one.when for one in explain(parts)]
    assert words[1] == "not congested, a queue drains"
    assert words[2] == "congested, a queue grows"
    assert all(one.what == "as many, unpaced" for one in explain(parts))


def test_a_rule_that_was_never_used_is_told_by_its_region() -> None:
    parts = split(RuleSet.uniform(Action(-1, 0, 0)), axes=(0,))
    used = replace(parts.rules[0], observed=Observed(10, (5, 5, 100)))
    never = replace(parts.rules[1], observed=Observed(0, (0, 0, 0)))
    first, second = explain(RuleSet((used, never)))
    assert (first.when, first.used_share) == ("as usual", 1.0)
    assert (second.when, second.used_share) == ("congested", 0.0)


@pytest.mark.parametrize(
    ("action", "after", "end"),
    [
        (Action(-1, 0, 0), 8.0, None),
        (Action(100, 0, 0), 8.0, None),
        (Action(50, 200, 0), 6.0, 4.0),
        (Action(100, -50, 0), 7.5, 1.0),
        (Action(200, 0, 0), 16.0, 256.0),
        (Action(50, 400, 0), 8.0, 8.0),
    ],
)
def test_where_windows_go(action: Action, after: float, end: float | None) -> None:
    assert window_after(action, 8.0) == after
    assert settles_at(action) == (None if end is None else pytest.approx(end))
