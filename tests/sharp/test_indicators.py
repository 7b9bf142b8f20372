"""Rules that tell the kinds of streams apart: further indicators, from the file to the search."""

from __future__ import annotations

import pytest

from ascar.errors import InputError
from ascar.rules import INDICATORS, INFINITY, Action, RuleSet
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
from ascar.sharp.words import explain
from ascar.simulation import parse_scenario, run_many, with_rule_text

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


def test_a_search_uses_what_tells_two_tenants_apart(tmp_path):
    objective = objective_of("throughput")
    plan = SearchPlan(along=("pt_ratio", "write_share"), start=FIRST)
    bench = SimulatedBench(parse_scenario(TENANTS), objective)
    with Journal(tmp_path / "journal", About.of(bench, objective, plan)) as journal:
        found = search(Judge(bench, objective, journal, SearchLimits(400)), plan).best
    assert found is not None
    cuts = {rule.region[INDICATORS.index("write_share")] for rule in found.rules.rules}
    assert len(cuts) > 1
    assert all(len(rule.region) == INDICATORS.index("write_share") + 1 for rule in found.rules.rules)


@pytest.mark.parametrize(
    ("along", "schedule"), [(("colour",), "sharp"), ((), "sharp"), (("write_share",), "faithful")]
)
def test_a_plan_that_cannot_be_is_refused(along, schedule):
    with pytest.raises(InputError, match="--along"):
        SearchPlan(schedule, along=along)
