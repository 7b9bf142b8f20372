"""`ascar sharp`: rule files in, rule files out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascar.sharp import RuleSet

GOLDEN = Path(__file__).parents[3] / "shared" / "data" / "sharp_golden"
RULES = """2,2
0,50000,0,2147483647,100,2147483647,100,0,20000,7,20000,21000,300
50000,2147483647,0,2147483647,100,2147483647,87,-59,25916,2,80000,81000,400
"""


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text(RULES)
    return path


def test_candidates_are_rule_files_one_after_the_other(ascar, rules):
    done = ascar("sharp", "candidates", str(rules))
    assert done.status == 0
    first, *others = done.out.removeprefix("# 1\n").split("# 2\n", 1)[0].splitlines()
    assert first == "2,2"
    assert others[1] == RULES.splitlines()[2]  # the hottest rule alone changes
    assert others[0].split(",")[6:9] != RULES.splitlines()[1].split(",")[6:9]


def test_the_published_round_to_the_letter(ascar):
    if not GOLDEN.exists():
        pytest.skip("the published search's candidates are not on this machine")
    done = ascar("sharp", "candidates", str(GOLDEN / "base_ruleset.txt"), "--faithful")
    assert done.out == (GOLDEN / "candidates_round1.txt").read_text()


def test_candidates_as_a_document(ascar, rules):
    document = ascar("sharp", "candidates", str(rules), "--json").document
    assert document["varied_rule"] == 1
    assert document["base"]["rules"][0]["used_times"] == 7
    assert [one["number"] for one in document["candidates"][:2]] == [1, 2]


def test_another_rule_can_be_varied(ascar, rules):
    document = ascar("sharp", "candidates", str(rules), "--rule", "2", "--json").document
    assert document["varied_rule"] == 2
    done = ascar("sharp", "candidates", str(rules), "--rule", "2")
    first = done.out.removeprefix("# 1\n").split("# 2\n", 1)[0].splitlines()
    assert first[1] == RULES.splitlines()[1] and first[2] != RULES.splitlines()[2]
    refused = ascar("sharp", "candidates", str(rules), "--rule", "3")
    assert (refused.status, "has rules 1 to 2" in refused.error) == (2, True)


def test_rules_for_metadata_say_so(ascar, tmp_path):
    out, first = tmp_path / "metadata.txt", tmp_path / "first.txt"
    words = ["search", "mdtest", "--metadata", "--duration", "2 s", "--evaluations", "20", "--out", str(out)]
    document = ascar("sharp", *words, "--json", "--quiet", "--set", "warmup_s=0.5").document
    assert document["followers"] == "metadata"
    figures = {one["name"] for one in document["verification"]["figures"]}
    assert {"metadata_operations_per_s", "metadata_latency_ms_p99", "jain_index"} <= figures
    assert "throughput_mb_per_s" not in figures
    first.write_text("1,2,active_files=2\n0,2147483647,0,2147483647,100,2147483647,100,0,0\n")
    refused = ascar("sharp", *words, "--force", "--rules", str(first))
    assert (refused.status, "active_files=2 is for streams of file data" in refused.error) == (2, True)


def test_indicators_that_rules_bound_are_shown(ascar, tmp_path):
    out = tmp_path / "kinds.txt"
    words = ["--along", "write_share", "--duration", "2 s", "--evaluations", "40", "--out", str(out)]
    done = ascar("sharp", "search", "random-write", *words, "--quiet", "--force")
    assert "ack ms" in done.out
    assert out.read_text().splitlines()[0].endswith("slow_ack_ewma,timeout_rate,write_share")


def test_a_split_covers_what_was_split(ascar, rules):
    done = ascar("sharp", "split", str(rules))
    assert len(RuleSet.parse(done.out).rules) == 9
    document = ascar("sharp", "split", str(rules), "--rule", "2", "--along", "pt_ratio", "--json").document
    assert document["split_rule"] == 2
    assert len(document["rules"]) == 3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["candidates", "missing.txt"], "missing.txt: No such file or directory; give a rule file"),
        (["split", "RULES", "--rule", "3"], "--rule = 3: .* has rules 1 to 2"),
        (["split", "RULES", "--along", "rtt"], "--along = 'rtt': allowed: ack_ewma"),
        (["split", "RULES", "--along", "write_share"], "--along = 'write_share': .* bounds ack_ewma"),
        (["search", "mdtest", "--out", "no.txt"], "moves no file data, .* --metadata makes rules"),
        (
            ["search", "mdtest", "--metadata", "--client-group", "1", "--out", "no.txt"],
            "--client-group with --metadata: it is for streams of file data",
        ),
        (
            ["search", "mdtest", "--metadata", "--active-files", "2", "--out", "no.txt"],
            "--active-files with --metadata",
        ),
        (
            ["search", "random-read", "--metadata", "--out", "no.txt"],
            "'random-read' has none of the operations",
        ),
        (
            ["search", "random-read", "--along", "rtt", "--out", "no.txt"],
            "--along = 'rtt': allowed: ack_ewma",
        ),
        (
            ["search", "random-read", "--along", "write_share", "--schedule", "remy", "--out", "no.txt"],
            "schedule = 'remy': .* no --along",
        ),
    ],
)
def test_a_mistake_is_one_line(ascar, rules, arguments, named):
    done = ascar("sharp", *(str(rules) if one == "RULES" else one for one in arguments))
    assert done.status == 2
    assert re.search(named, done.error)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"1,2\n1,2,3\n", b"x" * (2 << 20), b"1,2\n" + b"9" * 400]
)
def test_a_file_that_holds_no_rules_is_one_line(ascar, tmp_path, content):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    done = ascar("sharp", "candidates", str(path))
    assert done.status == 2
    assert str(path) in done.error
    assert len(done.error) < 400
