"""Streams of metadata operations: scenarios, rules for them, and a search."""

from __future__ import annotations

import pytest

from ascar.errors import InputError, ScenarioError
from ascar.rules import Action, RuleSet
from ascar.sharp import SimulatedBench, objective_of
from ascar.simulation import Cluster, preset, run_many, with_rule_text, with_settings

SHORT = ("warmup_s=1", "duration_s=4")


def mdtest(*settings):
    return with_settings(preset("mdtest"), [*SHORT, *settings])


def test_fewer_operations_at_a_time_do_more():
    usual, fewer = run_many([mdtest(), mdtest("metadata.control.window=2")])
    assert fewer.metadata_operations_per_s > 1.05 * usual.metadata_operations_per_s
    assert len(usual.clients_metadata_per_s) == 20
    total = sum(usual.clients_metadata_per_s)
    assert total == pytest.approx(usual.metadata_operations_per_s)
    assert 0.9 < usual.jain_index <= 1
    assert usual.throughput_mb_per_s == 0


def test_rules_hold_for_the_metadata_streams_alone():
    rules = RuleSet.uniform(Action(0, 200, 0))
    scenario = with_rule_text(mdtest(), rules.text(), "metadata")
    (outcome,) = run_many([scenario])
    (same,) = run_many([mdtest("metadata.control.window=2")])
    assert outcome.metadata_operations_per_s == pytest.approx(same.metadata_operations_per_s, rel=0.02)
    of_data, of_metadata = outcome.rules
    assert of_data is None
    observed = RuleSet.parse(of_metadata or "").rules[0].observed
    assert observed is not None
    assert observed.used_times > 10_000


def test_rules_for_file_data_leave_metadata_alone():
    (plain,) = run_many([mdtest()])
    (ruled,) = run_many([with_rule_text(mdtest(), RuleSet.uniform(Action(0, 100, 0)).text())])
    assert ruled.metadata_operations_per_s == plain.metadata_operations_per_s


def test_a_bench_shares_out_operations_where_no_data_moves():
    objective = objective_of("metadata-operations")
    SimulatedBench(mdtest(), objective, followers="metadata")
    with pytest.raises(ScenarioError, match="moves no file data, so no stream would follow the rules"):
        SimulatedBench(mdtest(), objective)
    with pytest.raises(ScenarioError, match="metadata: 'random-write' has none of the operations"):
        SimulatedBench(preset("random-write"), objective, followers="metadata")


def test_rules_are_deployed_while_it_runs():
    cluster = Cluster(mdtest())
    cluster.advance()
    assert cluster.deploy(RuleSet.uniform(Action(0, 100, 0)).text(), "metadata") == 20
    assert cluster.rules()[-1] is not None
    assert cluster.deploy(None, "metadata") == 20
    with pytest.raises(InputError, match="the scenario does not control its metadata streams"):
        Cluster(preset("random-write")).deploy(None, "metadata")


def test_what_an_outcome_says_of_metadata_can_be_an_objective():
    (outcome,) = run_many([mdtest()])
    figures = outcome.figures()
    assert figures["metadata_latency_ms_p99"] >= figures["metadata_latency_ms_p50"] > 0
    assert figures["metadata_operations_per_s"] == outcome.metadata_operations_per_s
