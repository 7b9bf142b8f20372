"""`ascar sharp search` from the outside: documents, files, refusals, and what a kill leaves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from ascar.sharp import RuleSet

TINY = ("--duration", "1 s", "--set", "warmup_s=0.5", "--set", "clients.count=2", "--quiet")


def search(ascar, out, *options):
    return ascar("sharp", "search", "random-write", "--out", str(out), *TINY, *options)


def test_a_search_as_a_document_and_a_rule_file(ascar, tmp_path):
    out = tmp_path / "rules.txt"
    document = search(ascar, out, "--objective", "tp-stdev:1", "--evaluations", "30", "--json").document
    assert (document["objective"], document["evaluations"]) == ("maximize tp - 1 * stdev", 30)
    assert (document["schedule"], document["stopped"]) == ("sharp", "evaluations")
    best = RuleSet.parse(out.read_text())
    assert best.rules[0].observed.used_times == document["best"]["rules"][0]["used_times"] > 0
    assert document["best"]["runs"] == 3
    assert document["verification"]["pairs"] >= 8
    counted = len((tmp_path / "rules.txt.journal").read_text().splitlines()) - 1
    assert counted == 30 + 2 * document["verification"]["pairs"]
    again = search(
        ascar, out, "--objective", "tp-stdev:1", "--evaluations", "30", "--json", "--resume"
    ).document
    assert {**again, "elapsed_s": 0} == {**document, "elapsed_s": 0}
    ran = ascar("sim", "run", "random-write", "--rules", str(out), "--duration", "1 s", "--json")
    assert ran.document["controller"] == "rules"
    kept = ascar("history", "show", "rules.txt", "--json").document
    assert (kept["kind"], kept["state"], kept["outcome"], kept["trials"]) == ("search", "complete", None, [])
    assert {**kept["search"], "schema": 0} == {**again, "schema": 0}
    shown = ascar("history", "show", "rules.txt").out
    assert "search for random-write, maximize tp - 1 * stdev" in shown
    assert str(out) in shown.replace("\n", "")
    refused = ascar("report", kept["run_id"], "--out", tmp_path / "report")
    assert refused.status == 2
    assert f"run {kept['run_id']}: is a search, where a study is wanted" in refused.error


def test_a_search_in_words(ascar, tmp_path):
    done = search(ascar, tmp_path / "rules.txt", "--evaluations", "12", "--schedule", "faithful")
    assert done.status == 0
    assert "12 runs, 1 epochs, 1 rounds" in done.out
    assert "the default is fine: " in done.out or "improved: " in done.out
    assert "pairs on fresh seeds" in done.out


@pytest.mark.slow
def test_a_killed_search_loses_no_run_and_comes_to_the_same_end(ascar, tmp_path):
    options = ("--evaluations", "600", "--objective", "minimize latency_ms_mean", "--json")
    whole = search(ascar, tmp_path / "whole.txt", *options).document
    out, journal = tmp_path / "rules.txt", tmp_path / "rules.txt.journal"
    command = [sys.executable, "-m", "ascar", "sharp", "search", "random-write", "--out", str(out)]
    endless = ("--evaluations", "1000000", "--patience", "0", *options[2:])  # it cannot end before the kill
    process = subprocess.Popen(
        [*command, *TINY, *endless], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 40):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = journal.read_bytes()
    kept = kept[: kept.rindex(b"\n") + 1]
    assert not out.exists()
    document = search(ascar, out, *options, "--resume").document
    assert journal.read_bytes().startswith(kept)
    entries = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    assert len({(entry["rules"], entry["repeat"]) for entry in entries}) == len(entries)
    assert out.read_bytes() == (tmp_path / "whole.txt").read_bytes()
    ours, theirs = ({**one, "elapsed_s": 0, "out": ""} for one in (document, whole))
    assert ours == theirs


def test_what_is_there_is_kept_unless_asked(ascar, tmp_path):
    out = tmp_path / "rules.txt"
    assert search(ascar, out, "--evaluations", "6").status == 0
    assert "already exists" in search(ascar, out, "--evaluations", "6").error
    out.unlink()
    assert "go on with --resume" in search(ascar, out, "--evaluations", "6").error
    changed = search(ascar, out, "--evaluations", "6", "--resume", "--objective", "jain")
    assert (
        "its search had objective = 'maximize throughput_mb_per_s, group_share_min >= 0.9'" in changed.error
    )
    assert (
        "its search had system = "
        in search(ascar, out, "--evaluations", "6", "--resume", "--seed", "5").error
    )
    assert search(ascar, out, "--evaluations", "6", "--objective", "jain", "--force").status == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--objective", "speed"), "--objective = 'speed'"),
        (("--objective", "maximize speed"), "names 'speed'; metrics are"),
        (("--schedule", "random"), "must be one of sharp, faithful, remy"),
        (("--schedule", "faithful"), "--budget, --evaluations: must be given"),
        (("--patience", "0"), "--budget, --evaluations: must be given"),
        (("--resume", "--force"), "give one of them"),
        (("--resume",), "does not exist; leave --resume out"),
        (("--budget", "soon"), "--budget = 'soon'"),
        (("--budget", "0 s"), "--budget = '0 s'"),
        (("--pairs", "1"), "pairs = 1"),
        (("--seed", str(2**63 - 1)), "seed = "),
        (("--rules", "/dev/null"), "/dev/null"),
        (("--set", "clients.count=0"), "clients"),
    ],
)
def test_bad_input_is_refused_before_anything_is_run(ascar, tmp_path, options, told):
    done = search(ascar, tmp_path / "rules.txt", *options)
    assert done.status == 2
    assert told in done.error
    assert list(tmp_path.iterdir()) == []
    assert search(ascar, tmp_path / "no" / "rules.txt", "--evaluations", "5").status == 2


def test_rules_for_two_sizes_of_a_cluster(ascar, tmp_path):
    out = tmp_path / "rules.txt"
    document = search(ascar, out, "--evaluations", "20", "--also", "clients.count=5", "--json").document
    assert document["also"] == 1
    alone = search(ascar, tmp_path / "alone.txt", "--evaluations", "20", "--json").document
    # Five clients bring more than two: the means over both runs lie above those of two alone.
    assert document["course"][0]["score"] > alone["course"][0]["score"]
    again = search(ascar, out, "--evaluations", "20", "--resume")
    assert "its search had system = " in again.error
    assert "clients[0].size" in search(ascar, tmp_path / "no.txt", "--also", "clients.size=5").error


def test_a_search_that_begins_in_another_scenario(ascar, tmp_path):
    out = tmp_path / "rules.txt"
    options = ("--first-in", "capes-1-9", "--evaluations", "20", "--json")
    document = search(ascar, out, *options).document
    assert document["first_in"] == "capes-1-9"
    assert document["evaluations"] == 20
    assert document["first_evaluations"] > 20
    kept = (tmp_path / "rules.txt.first.journal").read_text()
    assert len(kept.splitlines()) == 1 + document["first_evaluations"]
    # Killed in its first phase: there is a part of its journal, and none of the second.
    (tmp_path / "rules.txt.journal").unlink()
    out.unlink()
    (tmp_path / "rules.txt.first.journal").write_text("\n".join(kept.splitlines()[:20]) + "\n")
    again = search(ascar, out, *options, "--resume").document
    assert {**again, "elapsed_s": 0} == {**document, "elapsed_s": 0}
    refused = search(
        ascar, tmp_path / "no.txt", "--first-in", "capes-1-9", "--schedule", "faithful", "--evaluations", "9"
    )
    assert "only 'sharp' has two phases" in refused.error
