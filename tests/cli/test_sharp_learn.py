"""Numbers of rules learned online, and tuned by a study, from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ascar.sharp import Action, RuleSet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALL = ("--set", "clients.count=3", "--set", "warmup_s=1")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.txt"
    path.write_text(RuleSet.uniform(Action(100, 0, 50_000)).text())
    return path


def test_what_is_learned_is_shown_to_be_better(
    ascar: Callable[..., Any], rules: Path, tmp_path: Path
) -> None:
    """A gap of 50 ms between requests costs half of the throughput; learning finds out."""
    out = tmp_path / "better.txt"
    done = ascar(
        "sharp", "learn", "random-write", *SMALL, "--rules", rules, "--fields", "tau_us", "--budget", "4 min",
        "--out", out, "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    document = done.document
    assert document["improved"]
    assert document["gain_low"] > 0
    assert document["settings"] > 3
    found = RuleSet.parse(out.read_text())
    assert found.rules[0].action.tau_us < 40_000
    assert (found.rules[0].action.m100, found.rules[0].action.b100) == (100, 0)
    assert document["rule_set"]["rules"][0]["tau_us"] == found.rules[0].action.tau_us
    runs = [one for one in ascar("history", "ls", "--json").document["runs"] if one["kind"] == "learning"]
    shown = ascar("history", "show", str(runs[0]["run_id"]), "--json").document
    assert shown["learning"] == document
    assert "improved: rules" in ascar("history", "show", str(runs[0]["run_id"])).out


def test_a_gain_over_scores_below_zero_is_shown_as_one(ascar: Callable[..., Any], tmp_path: Path) -> None:
    """Throughput minus ten standard deviations is below zero, where a share of it would turn the sign."""
    path = tmp_path / "first.txt"
    path.write_text(RuleSet.uniform(Action(100, 0, 20_000)).text())
    given = ("sharp", "learn", "random-shared", "--rules", path, "--objective", "tp-stdev:10")
    given = (*given, "--fields", "tau_us", "--budget", "2 min")
    bound = ascar(*given, "--json").document
    assert not bound["improved"]
    assert "group_share_min >= 0.9 is not kept: a client gets" in bound["broken"]
    assert "not kept, for group_share_min >= 0.9" in ascar(*given).out
    given = (*given, "--constraint", "none")
    done = ascar(*given, "--json")
    assert done.status == 0, done.err
    document = done.document
    assert document["improved"]
    assert (document["gain_relative"], document["gain_low"], document["gain_high"]) == (None, None, None)
    assert 0 < document["difference_low"] < document["difference"] < document["difference_high"]
    said = ascar(*given).out.splitlines()[0]
    assert f"{document['difference']:+.4g} (99% interval +" in said
    assert said.endswith("pairs in turns; kept")


def test_the_window_of_what_a_search_ends_with_is_learned(ascar: Callable[..., Any], tmp_path: Path) -> None:
    """A window of one request is too small for three clients; the rule has m = 0, outside of table 3.2."""
    path = tmp_path / "narrow.txt"
    path.write_text(RuleSet.uniform(Action(0, 100, 0)).text())
    done = ascar(
        "sharp",
        "learn",
        "random-write",
        *SMALL,
        "--rules",
        path,
        "--fields",
        "b100",
        "--budget",
        "2 min",
        "--json",
    )
    assert done.status == 0, done.err
    assert done.document["improved"]
    assert done.document["rule_set"]["rules"][0]["b_x100"] > 100


def test_where_nothing_is_better_nothing_is_kept(ascar: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "good.txt"
    path.write_text(RuleSet.uniform(Action(50, 150, 0)).text())
    done = ascar(
        "sharp", "learn", "random-write", *SMALL, "--rules", path, "--rule", "1", "--fields", "tau_us",
        "--budget", "1 min", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert done.document["improved"] is False
    assert done.document["rules"] == done.document["before"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("random-write",), "rules: no rules are in force; give --rules FILE"),
        (("random-write", "--rules", "RULES", "--fields", "window"), "fields: window; allowed"),
        (("random-write", "--rules", "RULES", "--rule", "2"), "rule 2: there are rules 1 to 1"),
        (
            ("random-write", "--rules", "RULES", "--objective", "latency:99"),
            "--objective names 'latency_ms_p99'",
        ),
        (
            ("random-write", "--rules", "RULES", "--workload", "w"),
            "--workload: allowed only for live controllers",
        ),
        (("--rules", "RULES", "--set", "a=1"), "--set: allowed only with a SCENARIO"),
    ],
)
def test_refused(ascar: Callable[..., Any], rules: Path, arguments: tuple[str, ...], words: str) -> None:
    done = ascar("sharp", "learn", *(str(rules) if one == "RULES" else one for one in arguments))
    assert done.status == 2
    assert words in done.error


def test_a_study_of_rules(ascar: Callable[..., Any], rules: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(f"""
[study]
name = "numbers"
objective = "maximize throughput_mb_per_s"
budget = "3 min"
[target]
kind = "rules"
rules = "{rules}"
fields = ["tau_us"]
scenario = "random-write"
[measurement]
load_min = "2 s"
load_max = "3 s"
[optimizer]
kind = "random"
[stop]
trials = 3
""")
    done = ascar("tune", study, "--json")
    assert done.status in (0, 3), done.err
    assert set(done.document["best"]["configuration"]) == {"rule1_tau_us"}
    assert ascar("space", study).status == 0
