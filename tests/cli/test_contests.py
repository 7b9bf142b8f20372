"""`ascar sharp contest` and `ascar capes contest`, from the outside."""

from __future__ import annotations

import pytest

QUICK = ("--duration", "3 s", "--runs", "4", "--quiet")


def test_rules_are_compared_with_each_controller_on_the_same_seeds(ascar):
    done = ascar("sharp", "contest", "random-write", *QUICK, "--controllers", "aimd,copa", "--json")
    assert done.status == 0, done.err
    found = done.document
    assert found["rules"] == "random-write"
    assert found["objective"] == "maximize throughput_mb_per_s"
    assert found["first_seed"] > 1_000_000
    assert [one["name"] for one in found["contenders"]] == ["rules", "as it is", "aimd", "copa"]
    first, plain, *_ = found["contenders"]
    assert (first["verdict"], first["gain_relative"], first["p_value"]) == ("itself", None, None)
    assert all(len(one["scores"]) == 4 for one in found["contenders"])
    assert first["ci_low"] <= first["mean"] <= first["ci_high"]
    assert plain["gain_low"] <= plain["gain_relative"] <= plain["gain_high"]
    again = ascar("sharp", "contest", "random-write", *QUICK, "--controllers", "aimd,copa", "--json")
    assert again.document == found


def test_a_gain_is_of_the_first_whichever_way_the_objective_points(ascar):
    latency = ("--objective", "minimize latency_ms_mean", "--controllers", "aimd", "--runs", "6")
    found = ascar("sharp", "contest", "random-write", "--duration", "3 s", *latency, "--json").document
    first, *others = found["contenders"]
    for one in others:
        assert (one["difference"] > 0) == (first["mean"] < one["mean"])
        if one["verdict"] == "better":
            assert one["difference_low"] > 0


def test_without_rules_the_scenario_as_it_is_comes_first(ascar):
    done = ascar("sharp", "contest", "random-read", *QUICK, "--controllers", "vegas")
    assert done.status == 0, done.err
    assert "no rules come with ascar for it" in done.out
    assert "gain of as it is" in done.out
    assert "vegas" in done.out


def test_tuned_controllers_and_what_all_of_them_change(ascar):
    done = ascar(
        "sharp", "contest", "random-write", *QUICK, "--controllers", "cubic,bbr,bbr3", "--tune", "4", "--json"
    )
    assert done.status == 0, done.err
    names = [one["name"] for one in done.document["contenders"]]
    assert names == [
        *("rules", "as it is", "cubic", "bbr", "bbr3"),
        *("best static", "cubic, tuned", "bbr, tuned", "bbr3, tuned"),
    ]
    assert [(one["controller"], one["runs"]) for one in done.document["tuned"]] == [
        *(("fixed", 4), ("cubic", 4), ("bbr", 4), ("bbr3", 4))
    ]
    effects = {one["name"]: one for one in done.document["effects"]}
    assert set(effects) == set(names) - {"as it is"}
    for one in effects.values():
        figures = {figure["name"]: figure for figure in one["figures"]}
        assert figures["throughput_mb_per_s"]["default_mean"] > 0
        assert [group["name"] for group in one["groups"]] == ["random"] or len(one["groups"]) == 1


def test_rules_of_a_file_take_part(ascar, tmp_path):
    file = tmp_path / "own.rules"
    assert ascar("sharp", "explain", "random-write").status == 0
    from ascar.sharp import Action, RuleSet

    file.write_text(RuleSet.uniform(Action(100, 0, 20_000)).text())
    done = ascar(
        "sharp", "contest", "random-write", *QUICK, "--rules", file, "--controllers", "aimd", "--json"
    )
    assert done.status == 0, done.err
    assert done.document["rules"] == str(file)


def test_controllers_of_metadata_streams_are_compared_by_their_operations(ascar, tmp_path):
    from ascar.sharp import Action, RuleSet

    file = tmp_path / "own.rules"
    file.write_text(RuleSet.uniform(Action(0, 100, 0)).text())
    words = ("--metadata", "--rules", file, "--controllers", "aimd", "--tune", "4", "--json")
    done = ascar("sharp", "contest", "mdtest", *QUICK, *words)
    assert done.status == 0, done.err
    found = done.document
    assert found["objective"] == "maximize metadata_operations_per_s"
    scores = {one["name"]: one["mean"] for one in found["contenders"]}
    assert set(scores) == {"rules", "as it is", "aimd", "best static", "aimd, tuned"}
    assert min(scores.values()) > 100
    assert scores["rules"] != scores["as it is"], "a window of one request is another one than eight"
    refused = ascar("sharp", "contest", "random-write", "--metadata")
    assert refused.status == 2
    assert "has none of the operations" in refused.error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--controllers", "reno"), "--controllers = 'reno': must be of aimd, cubic, bbr, bbr3, vegas"),
        (("--controllers", ","), "--controllers = ',': must be names"),
        (("--runs", "1"), "--runs = 1: must be at least 2"),
        (("--confidence", "1"), "--confidence = 1.0: must be from 0.5 to below 1"),
        (("--objective", "maximize speed"), "speed"),
        (("--rules", "nothing-here"), "nothing-here"),
    ],
)
def test_bad_input_of_a_rule_contest_is_refused_in_one_line(ascar, arguments, words):
    done = ascar("sharp", "contest", "random-write", "--duration", "1 s", *arguments)
    assert done.status == 2
    assert words in done.error


def test_learners_play_the_same_games(ascar):
    games = ("--game", "thesis", "--runs", "4", "--noise-sd", "50%", "--json")
    done = ascar("capes", "contest", "--algorithms", "sweep,random", *games)
    assert done.status == 0, done.err
    found = done.document
    assert [one["name"] for one in found["records"]] == ["sweep", "random"]
    sweep = found["records"][0]
    assert (sweep["success_rate"], sweep["success_high"], sweep["ticks_median"]) == (1, 1, 98)
    assert 0 < sweep["success_low"] < 1
    alone = ascar("capes", "game", "--algorithm", "random", *games).document
    assert [one["near_share"] for one in alone["played"]] == found["contenders"][1]["scores"]


def test_people_read_who_is_ahead(ascar):
    done = ascar("capes", "contest", "--algorithms", "sweep,random", "--game", "thesis", "--runs", "4")
    assert done.status == 0, done.err
    assert "the thesis game, 4 runs of each" in done.out
    assert "100% (40% to 100%)" in done.out
    assert "gain of sweep" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--algorithms", "modern"), "1 to compare: name at least two"),
        (("--algorithms", "modern,dqn"), "--algorithms 'dqn': must be one of modern, classic, sweep, random"),
        (("--runs", "1"), "--runs = 1: must be at least 2"),
        (("--confidence", "0.3"), "--confidence = 0.3"),
        (("--noise-sd", "much"), "--noise-sd = 'much'"),
    ],
)
def test_bad_input_of_a_learner_contest_is_refused_in_one_line(ascar, arguments, words):
    done = ascar("capes", "contest", *arguments)
    assert done.status == 2
    assert words in done.error
