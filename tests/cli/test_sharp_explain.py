"""`ascar sharp explain`: words, counts, plots."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from ascar.sharp import Action, Observed, RuleSet, split
from ascar.sharp.deployment import rules_id
from ascar.sharp.rulesets import ruleset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PUBLISHED = (
    "4,2\n"
    "41000,48000,0,2147483647,240,450,100,-170,33000,3011,45000,45000,320\n"
    "48000,2147483647,0,2147483647,0,450,100,90,40000,7426,60000,60000,260\n"
    "0,2147483647,0,2147483647,450,2147483647,100,0,38000,0,0,0,0\n"
    "0,2147483647,0,2147483647,0,450,100,0,38000,0,0,0,0\n"
)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    path = tmp_path / "published.txt"
    path.write_text(PUBLISHED)
    return path


def test_the_published_excerpt(ascar: Callable[..., Any], published: Path) -> None:
    document = ascar("sharp", "explain", published, "--json").document
    words = [(one["when"], one["what"]) for one in document["rules"][:2]]
    assert words == [
        ("not congested and getting worse", "fewer, faster"),
        ("congested, but improving", "more, slower"),
    ]
    assert document["rules"][1]["used_share"] == pytest.approx(7426 / 10437)
    assert (document["scenario"], document["plots"]) == (None, [])
    assert document["id"] == rules_id(RuleSet.parse(PUBLISHED))
    told = ascar("sharp", "explain", published).out.splitlines()
    assert told[1].split()[:10] == ["2", "48-", "0-", "0-4.5", "1", "0.9", "40", "7426", "60", "2.6"]
    assert told[1].rstrip().endswith("more, slower")
    assert "41-48" in told[2]


def test_a_rule_set_that_is_shipped_is_explained_by_its_name(
    ascar: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = ruleset("random-write-even")
    document = ascar("sharp", "explain", "random-write-even", "--json").document
    assert document["id"] == rules_id(shipped)
    assert len(document["rules"]) == len(shipped.rules)
    (tmp_path / "random-write-even").write_text(PUBLISHED)  # a file of that name goes first
    document = ascar("sharp", "explain", "random-write-even", "--json").document
    assert document["id"] == rules_id(RuleSet.parse(PUBLISHED))
    unknown = ascar("sharp", "explain", "random-write-evn")
    assert unknown.status == 2
    assert "random-write-evn" in unknown.error


def test_a_scenario_counts_the_use_and_is_drawn(ascar: Callable[..., Any], tmp_path: Path) -> None:
    rules = split(RuleSet.uniform(Action(100, 0, 20_000)), axes=(0, 2))
    path = tmp_path / "four.txt"
    path.write_text(rules.text())
    done = ascar(
        "sharp", "explain", path, "--scenario", "random-write", "--duration", "3 s",
        "--plots", tmp_path / "figures", "--stream", "3", "--json",
    )  # fmt: skip
    document = done.document
    assert sum(one["used_times"] for one in document["rules"]) > 100
    assert sum(one["used_share"] for one in document["rules"]) == pytest.approx(1)
    names = [tmp_path / "figures" / name for name in ("four-rules.svg", "four-stream-3.svg")]
    assert document["plots"] == [str(one) for one in names]
    for name in names:
        ET.parse(name)
    assert "send EWMA (ms)" in names[0].read_text()
    assert "client 0, server 3" in names[1].read_text()


def test_what_a_set_of_one_rule_does_to_a_stream_over_time(ascar: Callable[..., Any], tmp_path: Path) -> None:
    """A gap of 60 ms is the whole effect: it is named, and seen."""
    path = tmp_path / "paced.txt"
    path.write_text(RuleSet.uniform(Action(100, 0, 60_000)).text())
    options = ("--scenario", "random-write", "--duration", "20 s")
    document = ascar("sharp", "explain", path, *options, "--json").document
    assert document["rules"][0]["what"] == "as many, at least 60 ms apart"
    assert (document["stream"], document["tick_s"]) == (0, 1)
    course = {one["name"]: one["values"] for one in document["course"]}
    assert set(course["gap, ms"]) == {60} and len(course["gap, ms"]) == 20
    assert max(course["waiting, requests"]) > 0
    told = ascar("sharp", "explain", path, *options).out
    assert "gap, ms" in told and "over time" in told
    without = ascar("sharp", "explain", path, "--json").document
    assert (without["stream"], without["tick_s"], without["course"]) == (None, None, [])


def test_rules_of_metadata_streams_have_their_use_and_no_course(
    ascar: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "four.txt"
    path.write_text(split(RuleSet.uniform(Action(100, 0, 1_000)), axes=(0, 2)).text())
    options = ("--scenario", "mdtest", "--metadata", "--duration", "3 s", "--plots", tmp_path, "--json")
    document = ascar("sharp", "explain", path, *options).document
    assert sum(one["used_times"] for one in document["rules"]) > 100
    assert (document["scenario"], document["stream"], document["course"]) == ("mdtest", None, [])
    assert document["plots"] == [str(tmp_path / "four-rules.svg")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--duration", "3 s"), "need --scenario"),
        (("--metadata",), "need --scenario"),
        (("--scenario", "mdtest", "--metadata", "--stream", "1"), "leave it out"),
        (("--scenario", "random-write", "--metadata"), "has none of the operations"),
        (("--scenario", "nobody"), "nobody"),
        (("--scenario", "random-write", "--stream", "20"), "streams are 0 to 19"),
        (("--plot-format", "pdf"), "must be svg or png"),
    ],
)
def test_refused(ascar: Callable[..., Any], published: Path, options: tuple[str, ...], words: str) -> None:
    done = ascar("sharp", "explain", published, *options)
    assert (done.status, words in done.error) == (2, True)


def test_rules_that_are_drawn_are_those_used_most_of_what_holds() -> None:
    """Every cell of a projection has, of the rules that hold somewhere behind it, the most used one."""
    import numpy as np

    from ascar.cli.sharp.explain_plots import _PLANES, _edges, _numbers

    split_twice = split(split(RuleSet.parse(PUBLISHED).bare(), 0), 0)
    used = [replace(one, observed=Observed(99 - at, (1, 1, 100))) for at, one in enumerate(split_twice.rules)]
    rules = replace(split_twice, rules=tuple(used))
    drawn: set[int] = set()
    for plane in _PLANES:
        across, up = (_edges(rules, axis) for axis in plane)
        found = _numbers(rules, plane, across, up)
        for row, column in np.ndindex(found.shape):
            # Inside of the cell: at its edges two rules meet.
            at = (across[column] * 1.0001, up[row] * 1.0001)
            behind = [
                number
                for number, rule in enumerate(rules.rules)
                if all(
                    rule.region[axis].lo <= x < rule.region[axis].hi
                    for axis, x in zip(plane, at, strict=True)
                )
            ]
            assert found[row, column] == min(behind)  # the first one was used most
        drawn |= set(found.reshape(-1).tolist())
    assert len(drawn) > 3
