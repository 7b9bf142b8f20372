"""Gains that a few would pay for: bounds of groups in searches, and what is told of every rule set."""

from __future__ import annotations

import pytest

from ascar.cli.sharp.system import group_rules_of
from ascar.errors import InputError, Refused
from ascar.pilot.turns import PairTest
from ascar.sharp import (
    About,
    Action,
    Journal,
    Judge,
    RuleRun,
    RuleSet,
    RuleTrial,
    SearchLimits,
    SearchPlan,
    SimulatedBench,
    objective_of,
    search,
)
from ascar.sharp.contest import AS_IT_IS, contenders_of, contest, rehearse, with_tuned
from ascar.sharp.effects import figure_changes, group_changes, standings
from ascar.sharp.metric_bounds import MetricBound, bounds_of, excess_of, penalty
from ascar.sharp.trials.bench import combined
from ascar.sharp.tuned_controllers import tune_controller
from ascar.sharp.verification import verify_all
from ascar.simulation import Cluster, parse_scenario, with_settings
from ascar.simulation.groups import Rates, group_names, group_rates, least_share, shares_of

PACED = RuleSet.uniform(Action(50, 150, 60_000))  # few requests of each stream, 60 ms apart
MIXED = """
name = "mixed"
warmup_s = 1
duration_s = 8
[[clients]]
count = 4
workload = "writers"
[[clients]]
count = 2
workload = "readers"
[[workloads]]
name = "writers"
filesets = [{ name = "file", size_mib = 5120 }]
[[workloads.threads]]
instances = 64
flowops = [{ op = "write", iosize_kib = 1024, random = true, directio = true }]
[[workloads]]
name = "readers"
filesets = [{ name = "file", size_mib = 5120 }]
[[workloads.threads]]
instances = 8
flowops = [{ op = "read", iosize_kib = 256, random = true, directio = true }]
"""


@pytest.fixture
def mixed():
    """Many writers, who gain when they are paced, and a few readers, who lose by it."""
    return parse_scenario(MIXED)


def searched(scenario, path, bounds, objective="throughput", evaluations=150, followers=None):
    wanted = objective_of(objective)
    bench = SimulatedBench(scenario, wanted, 2, bounds=bounds, followers=followers)
    plan = SearchPlan()
    with Journal(path, About.of(bench, wanted, plan, bounds)) as journal:
        judge = Judge(bench, wanted, journal, SearchLimits(evaluations), bounds=bounds)
        found = search(judge, plan)
        return verify_all(judge, found.best.rules, PairTest(pairs_max=8))


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["throughput", "minimize service_time_ms_p99"])
def test_a_search_with_bounds_starves_nobody(mixed, tmp_path, objective):
    usual = bounds_of(None)
    free = searched(mixed, tmp_path / "free", (), objective)
    bound = searched(mixed, tmp_path / "bound", usual, objective)
    least = {id(one): 1 + min(group.change for group in one.groups) for one in (free, bound)}
    assert least[id(free)] < 0.85  # what the gain is bought with
    assert least[id(bound)] > 0.88
    assert not bound.broken
    assert free.comparison.improved


def test_no_gain_is_claimed_of_rules_that_break_a_bound(mixed, tmp_path):
    wanted, usual = objective_of("throughput"), bounds_of(None)
    bench = SimulatedBench(mixed, wanted, 2, bounds=usual)
    with Journal(tmp_path / "journal", About.of(bench, wanted, SearchPlan(), usual)) as journal:
        judge = Judge(bench, wanted, journal, bounds=usual)
        verdict = verify_all(judge, PACED, PairTest(pairs_max=8))
        assert judge.measured(PACED).score < 0 < judge.measured(RuleSet.uniform(Action(100, 0, 0))).score
    assert verdict.comparison.improved
    assert verdict.kind == "not-verified" and verdict.gain is None
    assert verdict.note.startswith("the rules break group_share_min >= 0.9: 0.")
    (standing,) = verdict.bounds
    assert standing.standing == "broken" and standing.low < standing.value < standing.high < 0.9
    readers = next(one for one in verdict.groups if one.name == "readers")
    assert readers.change < -0.3 and readers.change_high < -0.1
    assert {one.name for one in verdict.figures} >= {"throughput_mb_per_s", "latency_ms_p99", "jain_index"}


def test_shares_are_of_the_run_without_rules_on_the_same_seed(mixed):
    bench = SimulatedBench(mixed, objective_of("throughput"), 2, bounds=bounds_of(None))
    without, paced = bench.run([RuleTrial(None, 3), RuleTrial(PACED, 3)])
    assert without.metrics["group_share_min"] == without.metrics["client_share_min"] == 1.0
    assert bench.groups == group_names(mixed) == ("writers", "readers")
    assert paced.metrics["group_share_min"] == pytest.approx(least_share(paced.groups, without.groups))
    assert paced.metrics["client_share_min"] <= paced.metrics["group_share_min"] < 0.9


def test_groups_have_names_and_rates(mixed):
    load = mixed.workloads[0]
    looking = parse_scenario(
        MIXED.replace(
            'flowops = [{ op = "read", iosize_kib = 256, random = true, directio = true }]',
            'flowops = [{ op = "statfile" }]',
        )
    )
    outcome = Cluster(looking).run()
    assert outcome.groups[1].read_mb_per_s == 0 < outcome.groups[1].operations
    assert [one.moves_data for one in outcome.groups] == [True, False]
    assert group_rates(outcome)[1] == outcome.groups[1].operations / outcome.virtual_seconds
    two = parse_scenario(
        MIXED.replace('workload = "readers"\n[[workloads]]', 'workload = "writers"\n[[workloads]]')
    )
    assert group_names(two) == ("writers, clients 1", "writers, clients 2")
    assert load.name == "writers"
    assert least_share((5.0, 0.0), (10.0, 0.0)) == 0.5
    assert least_share((0.0,), (0.0,)) == 1.0


@pytest.mark.parametrize(
    ("text", "metric", "is_floor", "limit"),
    [
        ("group_share_min>=0.95", "group_share_min", True, 0.95),
        ("10 >= latency_ms_p99", "latency_ms_p99", False, 10),
    ],
)
def test_bounds_are_read(text, metric, is_floor, limit):
    assert MetricBound.parse(text) == MetricBound(metric, is_floor, limit)


@pytest.mark.parametrize(
    "text", ["", "jain_index", "jain_index > 0.9", "a >= b", "2 >= 1", "tp >= 1e999", "x" * 5000]
)
def test_what_is_no_bound_is_refused(text):
    with pytest.raises(InputError, match="--constraint = ") as error:
        MetricBound.parse(text)
    assert "must be 'METRIC >= NUMBER'" in str(error.value) and len(str(error.value)) < 400


def test_bounds_of_options(mixed):
    assert [str(one) for one in bounds_of(None)] == ["group_share_min >= 0.9"]
    assert bounds_of(["none"]) == ()
    with pytest.raises(InputError, match="stands beside others"):
        bounds_of(["none", "jain_index >= 0.9"])
    with pytest.raises(InputError, match="--constraint names 'nothing'; metrics are"):
        SimulatedBench(mixed, objective_of("throughput"), bounds=bounds_of(["nothing >= 1"]))


def test_what_breaks_a_bound_is_worth_less_than_what_keeps_it():
    bound = MetricBound("jain_index", True, 0.9)
    assert bound.excess(0.9) == bound.excess(1.0) == 0
    assert bound.excess(0.45) == pytest.approx(0.5)
    assert MetricBound("x", False, 0.0).excess(2.0) == MetricBound("x", False, 1e-320).excess(2.0) == 1e6
    assert excess_of((bound,), {}) == 0  # the run does not tell it
    scale = 100.0
    for better in (-1.0, 300.0):  # minimised and maximised
        kept = -scale if better < 0 else 1.0
        assert better - penalty(better, scale, 0.01) < kept
    assert penalty(-1.0, scale, 0.5) > penalty(-1.0, scale, 0.1)
    assert penalty(float("-inf"), scale, 0.5) == 0


def test_figures_that_are_zero_have_no_change_and_starved_groups_have():
    def run(groups, jain):
        return RuleRun({"throughput_mb_per_s": 10.0, "jain_index": jain}, (), None, groups)

    without = tuple(run((10.0 + at / 10, 0.0), 0.0) for at in range(6))
    under = tuple(run((0.0, 0.0), 0.5) for _ in range(6))
    total, fair = figure_changes((without, under))
    assert total.change == 0 and fair.change is None
    starved, idle = group_changes(("a", "b"), (without, under))
    assert starved.change == pytest.approx(-1) and idle.change is None
    (standing,) = standings(bounds_of(None), (without, under), (starved, idle))
    assert standing.standing == "broken" and standing.value == pytest.approx(0)
    assert figure_changes(((), ())) == group_changes(("a",), ((), ())) == ()
    (nothing,) = standings(bounds_of(None), ((), ()), ())
    assert nothing.standing == "open" and nothing.value is None


def test_contests_and_rehearsals_tell_who_pays(mixed):
    found = contest(contenders_of(mixed, PACED, ("aimd",)), objective_of("throughput"), 6, 0.95)
    assert [one.name for one in found.effects] == ["rules", "aimd"]
    readers = next(one for one in found.effects[0].groups if one.name == "readers")
    assert readers.change < -0.3
    with pytest.raises(Refused, match=r"break group_share_min >= 0.9 in mixed: 0\.\d+ .*nothing was changed"):
        rehearse(mixed, PACED)
    slow = RuleSet.uniform(Action(100, 0, 60_000_000))  # one request a minute
    with pytest.raises(Refused, match="the throughput in mixed is"):
        rehearse(mixed, slow)
    rehearse(mixed, RuleSet.uniform(Action(100, 0, 0)))


def test_controllers_are_tuned_with_the_runs_that_they_may_take(mixed):
    told = []
    wanted = objective_of("throughput")
    contenders, tuned = with_tuned(
        contenders_of(mixed, None, ("aimd", "vegas", "io-path-tune")), wanted, 8, listener=told.append
    )
    assert list(contenders) == [
        AS_IT_IS,
        *("aimd", "vegas", "io-path-tune"),
        *("best static", "aimd, tuned", "vegas, tuned"),
    ]
    assert [one.runs for one in tuned] == [8, 8, 8] and told[-1].share == 1
    vegas = tuned[2].settings
    assert vegas["vegas_beta"] > vegas["vegas_alpha"]
    assert contenders["vegas, tuned"].control.rivals.vegas_beta == vegas["vegas_beta"]
    narrow = with_settings(mixed, ["control.window_max=16"])
    tuned_narrow = tune_controller([narrow], "fixed", wanted, 12)
    assert tuned_narrow.of(narrow).control.window <= 16
    again = tune_controller([mixed], "aimd", wanted, 8)
    assert again.settings == tuned[1].settings
    for name, runs, words in (("reno", 8, "controller = 'reno'"), ("aimd", 1, "runs = 1")):
        with pytest.raises(InputError, match=words):
            tune_controller([mixed], name, wanted, runs)


@pytest.mark.slow
def test_tuned_controllers_are_better_on_fresh_seeds(mixed):
    scenario = with_settings(mixed, ["duration_s=5"])
    wanted = objective_of("throughput")
    contenders, _ = with_tuned(contenders_of(scenario, None, ("aimd",)), wanted, 60)
    means = {one.name: one.mean for one in contest(contenders, wanted, 6, 0.95).entries}
    assert means["best static"] > 1.02 * means[AS_IT_IS]
    assert means["aimd, tuned"] > means["aimd"]


def test_rules_of_one_client_group_leave_the_controls_of_the_others_alone(mixed):
    wanted, usual = objective_of("throughput"), bounds_of(None)
    of_all, of_writers = (
        list(
            SimulatedBench(mixed, wanted, 2, bounds=usual, followers=group).run(
                [RuleTrial(None, 3), RuleTrial(PACED, 3)]
            )
        )
        for group in (None, 0)
    )
    assert of_all[0].groups == of_writers[0].groups
    without, paced = of_writers
    assert paced.rules.rules[0].observed.used_times > 0
    assert paced.rules.bare() == PACED
    # Readers are not paced; they get what the writers leave.
    assert paced.groups[1] > 1.5 * of_all[1].groups[1]
    assert paced.groups[1] > 0.95 * without.groups[1]


def test_a_client_group_that_is_not_there_is_refused(mixed):
    with pytest.raises(InputError, match="client group 3: 'mixed' has 2, counted from 1"):
        SimulatedBench(mixed, objective_of("throughput"), followers=2)


@pytest.mark.slow
def test_rules_of_the_group_that_crowds_help_the_others_too(mixed, tmp_path):
    usual = bounds_of(None)
    shared = searched(mixed, tmp_path / "shared", usual)
    own = searched(mixed, tmp_path / "own", usual, followers=0)
    assert own.kind == shared.kind == "improved"
    assert not own.broken
    assert min(one.change for one in own.groups) > 0.04
    assert min(one.change for one in shared.groups) < 0


def test_rules_of_other_groups_are_named_once_and_belong_to_others(mixed, tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text(PACED.text())
    ruled = group_rules_of([f"1={path}"], 2)(mixed)
    assert ruled.clients[0].control.rules == PACED.text()
    assert ruled.clients[1].control is None
    for given, group in (([f"1={path}"], None), ([f"1={path}"], 1), ([f"1={path}", f"1={path}"], 2)):
        with pytest.raises(InputError, match="--group-rules = '1=.*of another group than --client-group"):
            group_rules_of(given, group)
    with pytest.raises(InputError, match="--group-rules = 'one': must be N=FILE"):
        group_rules_of(["one"], 2)
    with pytest.raises(InputError, match="client group 7"):
        group_rules_of([f"7={path}"], 2)(mixed)


def test_a_loss_is_what_is_missing_and_nothing_where_there_is_a_gain():
    none = (0.0, 0.0)
    less = shares_of(Rates((30.0, 50.0), (30.0, 50.0), none), Rates((60.0, 40.0), (60.0, 40.0), none))
    assert less["throughput_share"] == pytest.approx(0.8)
    assert less["throughput_loss"] == pytest.approx(0.2)
    assert less["group_share_min"] == pytest.approx(0.5)
    more = shares_of(Rates((120.0,), (120.0,), (0.0,)), Rates((100.0,), (100.0,), (0.0,)))
    assert (more["throughput_share"], more["throughput_loss"]) == (pytest.approx(1.2), 0)
    assert combined([less, more])["throughput_loss"] == pytest.approx(0.1)
    nothing = shares_of(Rates((0.0,), (0.0,), (0.0,)), Rates((0.0,), (0.0,), (0.0,)))
    assert nothing["throughput_loss"] == 0


def test_operations_on_metadata_count_only_where_no_data_moves():
    reference = Rates((100.0,), (100.0, 0.0), (5_000.0, 4_000.0))
    starved = shares_of(Rates((100.0,), (0.0, 0.0), (9_000.0, 4_000.0)), reference)
    assert (starved["client_share_min"], starved["throughput_share"]) == (0, 0)
    slower = shares_of(Rates((100.0,), (100.0, 0.0), (5_000.0, 2_000.0)), reference)
    assert (slower["client_share_min"], slower["throughput_share"]) == (pytest.approx(0.5), 1)
    alone = shares_of(Rates((1.0,), (0.0,), (3_000.0,)), Rates((1.0,), (0.0,), (2_000.0,)))
    assert (alone["client_share_min"], alone["throughput_share"]) == (pytest.approx(1.5),) * 2
