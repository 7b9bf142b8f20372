"""Rules that tell the kinds of streams apart: further indicators, from the file to the search."""

from __future__ import annotations

import pytest

from ascar.errors import InputError
from ascar.rules import INDICATORS, INFINITY, Action, Observed, RuleSet
from ascar.sharp import (
    About,
    Journal,
    Judge,
    SearchLimits,
    SearchPlan,
    SimulatedBench,
    objective_of,
    search,
    split,
)
from ascar.sharp.schedules.splitting import split_in_the_middle
from ascar.sharp.trials import bench as bench_module
from ascar.sharp.trials.bench import RuleTrial
from ascar.sharp.words import explain
from ascar.simulation import parse_scenario, preset, run_many, with_rule_text, with_settings

TENANTS = """
name = "tenants"
warmup_s = 1
duration_s = 4
[[clients]]
count = 3
workload = "writers"
[[clients]]
count = 3
workload = "readers"
[[workloads]]
name = "writers"
filesets = [{ name = "file", size_mib = 2560 }]
threads = [{ instances = 32, flowops = [{ op = "write", random = true, directio = true }] }]
[[workloads]]
name = "readers"
filesets = [{ name = "file", size_mib = 2560 }]
threads = [{ instances = 4, flowops = [{ op = "read", iosize_kib = 64, directio = true }] }]
"""
FIRST = RuleSet.uniform(Action(100, 0, 0))


def test_rules_over_further_indicators_are_written_and_read_as_they_are():
    for count in range(3, len(INDICATORS) + 1):
        rules = FIRST.with_indicators(count)
        assert len(rules.rules[0].region) == count
        assert RuleSet.parse(rules.text()) == rules
        assert rules.text().splitlines()[0] == ",".join(("1", "2", *INDICATORS[3:count]))
    assert FIRST.with_indicators(6).with_indicators(4) == FIRST.with_indicators(6)


def test_streams_tell_what_they_request():
    scenario = parse_scenario(TENANTS)
    followed = with_rule_text(scenario, FIRST.with_indicators(len(INDICATORS)).text())
    (outcome,) = run_many([followed])
    writers, readers = (RuleSet.parse(text or "").rules[0].observed for text in outcome.rules)
    assert writers is not None
    assert readers is not None
    at = {name: number for number, name in enumerate(INDICATORS)}
    assert writers.means[at["write_share"]] >= 990
    assert readers.means[at["write_share"]] == 0
    assert writers.means[at["sequential_share"]] <= 50
    assert readers.means[at["sequential_share"]] >= 900
    assert writers.means[at["request_kib"]] == 1024
    assert 64 <= readers.means[at["request_kib"]] <= 66


def test_a_rule_is_split_along_them_and_said_in_words():
    scenario = parse_scenario(TENANTS)
    (outcome,) = run_many([with_rule_text(scenario, FIRST.with_indicators(8).text())])
    seen = RuleSet.parse(outcome.rules[0] or "")
    parts = split(seen, 0, (INDICATORS.index("request_kib"),))
    assert [rule.region[7].hi for rule in parts.rules] == [1024, INFINITY]
    text = parts.with_action(0, Action(0, 800, 0)).text()
    low, high = explain(RuleSet.parse(text))
    assert (low.when, high.when) == (
        "as usual, few KiB a request",
        "as usual, many KiB a request",
    )


READERS = """
name = "readers"
warmup_s = 1
duration_s = 4
[[servers]]
count = 2
[[clients]]
count = 2
workload = "readers"
cache = { page_cache_mib = 0 }
[[workloads]]
name = "readers"
filesets = [{ name = "file", size_mib = 2560 }]
threads = [{ instances = 4, flowops = [{ op = "read" }] }]
"""


def test_a_search_finds_a_rule_for_writers_and_one_for_readers(tmp_path):
    writers = with_settings(preset("random-write"), ["warmup_s=1", "duration_s=4"])
    objective = objective_of("throughput")
    plan = SearchPlan(along=("pt_ratio", "write_share"))
    bench = SimulatedBench(writers, objective, also=[parse_scenario(READERS)])
    with Journal(tmp_path / "journal", About.of(bench, objective, plan)) as journal:
        found = search(Judge(bench, objective, journal, SearchLimits(600)), plan).best
    assert found is not None
    at = INDICATORS.index("write_share")
    of_writers = [rule for rule in found.rules.rules if rule.region[at].lo == 500]
    of_readers = [rule for rule in found.rules.rules if rule.region[at].hi == 500]
    assert of_writers
    assert of_readers
    assert {rule.action for rule in of_writers} != {rule.action for rule in of_readers}


def test_what_was_observed_in_several_places_is_weighed_by_its_uses():
    several = [Observed(1, (10, 100, 700)), Observed(3, (50, 20, 100)), Observed(0, (9, 9, 900))]
    assert Observed.merged(several) == Observed(4, (40, 40, 250))
    assert Observed.merged([Observed(0, (0, 0, 0))]) == Observed(0, (0, 0, 0))


def told_apart(write_window, read_window):
    """Rules for writers, and for readers."""
    at = INDICATORS.index("write_share")
    parts = split_in_the_middle(FIRST.with_indicators(at + 1), 0, (at,))
    readers = parts.with_action(0, Action(0, 100 * read_window, 0))
    return readers.with_action(1, Action(0, 100 * write_window, 0))


def test_a_run_that_differs_in_unused_rules_alone_is_not_made_again(monkeypatch):
    made = []
    run = bench_module._outcome
    monkeypatch.setattr(
        bench_module, "_outcome", lambda *arguments: (made.append(arguments), run(*arguments))[1]
    )
    writers = with_settings(preset("random-write"), ["warmup_s=0.5", "duration_s=2"])
    readers = with_settings(preset("random-read"), ["warmup_s=0.5", "duration_s=2"])
    objective = objective_of("throughput")
    trials = [RuleTrial(told_apart(*windows), 3) for windows in ((8, 8), (2, 8), (2, 16), (8, 8), (4, 1))]
    found = list(SimulatedBench(writers, objective, 1, [readers]).run(trials))
    # Writers with windows of 8, 2 and 4, readers with 8, 16 and 1.
    assert len(made) == 6
    for trial, one in zip(trials, found, strict=True):
        (alone,) = SimulatedBench(writers, objective, 1, [readers]).run([trial])
        assert alone == one
        assert one.rules is not None
        assert [rule.action for rule in one.rules.rules] == [rule.action for rule in trial.rules.rules]
    # Another repeat is another run.
    made.clear()
    bench = SimulatedBench(writers, objective, 1)
    list(bench.run([RuleTrial(told_apart(8, 8), 3), RuleTrial(told_apart(8, 4), 4), RuleTrial(FIRST, 4)]))
    assert len(made) == 3


@pytest.mark.parametrize(
    ("along", "schedule"), [(("colour",), "sharp"), ((), "sharp"), (("write_share",), "faithful")]
)
def test_a_plan_that_cannot_be_is_refused(along, schedule):
    with pytest.raises(InputError, match="--along"):
        SearchPlan(schedule, along=along)
