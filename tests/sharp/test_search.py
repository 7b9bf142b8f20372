"""The rule loop on a simulated cluster: it finds what is known to be best, and the same again."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from ascar.errors import InputError
from ascar.pilot.turns import PairTest
from ascar.sharp import (
    About,
    Action,
    Journal,
    Judge,
    RuleSet,
    RuleTrial,
    SearchLimits,
    SearchPlan,
    SimulatedBench,
    candidates,
    objective_of,
    search,
    verify,
)
from ascar.sharp.plan import FIRST, plan_of
from ascar.simulation import preset, with_settings

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

# Worth having: much throughput at little latency. A queue at the disk costs latency and brings little.
BALANCE = "maximize throughput_mb_per_s / service_time_ms_mean"
DEFAULT_FIXED = RuleSet.uniform(Action(100, 0, 0))  # the window stays as it is, and nothing paces


@pytest.fixture
def scenario():
    return with_settings(preset("random-write"), ["duration_s=2", "warmup_s=1", "clients.count=3"])


@contextmanager
def judging(
    scenario, path: Path, objective: str = BALANCE, plan: SearchPlan | None = None, **settings
) -> Generator[Judge]:
    wanted = objective_of(objective)
    bench = SimulatedBench(scenario, wanted, settings.pop("threads", 2))
    with Journal(
        path, About.of(bench, wanted, plan or SearchPlan()), settings.pop("begin", "new")
    ) as journal:
        yield Judge(bench, wanted, journal, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["sharp", "faithful", "remy"])
def test_the_best_static_setting_is_reached(scenario, tmp_path, schedule):
    plan = plan_of(schedule)
    with judging(scenario, tmp_path / "journal", plan=plan, limits=SearchLimits(1100)) as judge:
        found = search(judge, plan)
        assert found.stopped == ("no-gain" if schedule == "sharp" else "evaluations")
        assert judge.evaluations <= (400 if schedule == "sharp" else 1100)
        assert len(found.best.scores) >= 3
        judge.limits = SearchLimits()
        grid = [Action(0, 100 * window, tau) for window in (1, 2, 8) for tau in range(0, 70_001, 5_000)]
        best = max(judge.measured(RuleSet.uniform(action)).score for action in grid)
        default = judge.measured(DEFAULT_FIXED).score
        assert best > 2 * default  # control matters here
        assert found.best.results[0].metrics["throughput_mb_per_s"] > 0
        assert found.best.score > 0.92 * best
        verdict = verify(judge, found.best.rules, PairTest(pairs_max=10))
    assert verdict.kind == "improved"
    assert verdict.gain.gain_low < verdict.gain.gain_relative < verdict.gain.gain_high
    assert verdict.gain.gain_low > 1


def test_faithful_candidates_are_the_published_ones_in_order(scenario, tmp_path):
    plan = plan_of("faithful", patience=0)
    with judging(scenario, tmp_path / "journal", plan=plan, limits=SearchLimits(42)) as judge:
        search(judge, plan)
        wanted = list(islice(candidates(FIRST), 40))
        assert [judged.rules for judged in judge.seen] == wanted
        assert judge.evaluations == 42  # the last two make sure of the best


def test_results_that_vary_are_looked_at_again_and_the_winner_has_three_runs(tmp_path):
    scenario = with_settings(preset("btio-c"), ["duration_s=8", "warmup_s=0"])
    plan = plan_of("faithful")
    with judging(scenario, tmp_path / "journal", plan=plan, limits=SearchLimits(8)) as judge:
        judge.first_runs(list(islice(candidates(FIRST), 6)))
        assert [judged.uneven for judged in judge.seen] == [True] * 6  # a dump now and then
    steady = with_settings(preset("random-write"), ["duration_s=40"])
    with judging(steady, tmp_path / "other", plan=plan) as judge:
        assert not judge.measured(DEFAULT_FIXED, 1).uneven


def test_threads_do_not_matter(scenario, tmp_path):
    ends = []
    for threads in (1, 3):
        with judging(
            scenario,
            tmp_path / f"{threads}",
            threads=threads,
            limits=SearchLimits(100),
            objective="tp-stdev:1",
        ) as judge:
            found = search(judge, SearchPlan())
            ends.append((found, judge.course))
    assert ends[0] == ends[1]


def test_a_search_goes_on_from_any_run_to_the_same_end(scenario, tmp_path):
    path = tmp_path / "whole"
    with judging(scenario, path, limits=SearchLimits(60)) as judge:
        whole = search(judge, SearchPlan())
        course = judge.course
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + judge.evaluations
    for cut in (1, 2, 20, 60):
        part = tmp_path / f"{cut}"
        part.write_bytes(b"".join(lines[:cut]) + b'{"rules"')
        with judging(scenario, part, limits=SearchLimits(60), begin="resume") as judge:
            again = search(judge, SearchPlan())
            assert (again, judge.course) == (whole, course)
        assert len(part.read_bytes().splitlines()) == len(lines)  # nothing was run twice


def test_splitting_and_no_gain(tmp_path):
    # The first rule cannot be beaten by more than nothing: the objective is the same for all rules.
    scenario = with_settings(preset("random-write"), ["duration_s=1", "warmup_s=0", "clients.count=1"])
    plan = plan_of("remy", patience=1)
    with judging(scenario, tmp_path / "journal", objective="maximize 5 + 0 * tp", plan=plan) as judge:
        found = search(judge, plan)
        assert found.stopped == "no-gain"
        assert (judge.epoch, judge.round) == (4, 4)
        assert found.best.rules == FIRST
    with pytest.raises(InputError, match="schedule = 'random': must be one of sharp, faithful, remy"):
        plan_of("random")
    with pytest.raises(InputError, match="patience = -1"):
        plan_of("sharp", patience=-1)


def test_time_ends_a_search(scenario, tmp_path):
    ticks = iter(range(100_000))
    limits = SearchLimits(budget_s=40)
    with judging(scenario, tmp_path / "journal", limits=limits, clock=lambda: next(ticks)) as judge:
        found = search(judge, SearchPlan())
        assert found.stopped == "time"
        assert 10 < judge.evaluations < 40
        assert found.best is not None
    for wrong in ({"evaluations": 0}, {"budget_s": 0.0}, {"budget_s": float("nan")}):
        with pytest.raises(InputError):
            SearchLimits(**wrong)


def test_progress_tells_where_it_is(scenario, tmp_path):
    told = []
    with judging(scenario, tmp_path / "journal", limits=SearchLimits(12), listener=told.append) as judge:
        search(judge, SearchPlan())
    last = told[-1]
    assert (last.epoch, last.round, last.evaluations) == (1, 1, judge.evaluations)
    assert all(one.left_s is not None for one in told)
    assert any(0 < one.done < one.of for one in told)


def test_rules_that_change_nothing_leave_the_default_fine(scenario, tmp_path):
    with judging(scenario, tmp_path / "journal") as judge:
        verdict = verify(judge, DEFAULT_FIXED, PairTest())
        assert (verdict.kind, verdict.gain.gain_relative, verdict.gain.pairs) == ("default-is-fine", 0, 8)
        assert judge.evaluations == 0
        late = verify(judge, DEFAULT_FIXED, PairTest(), until_s=0)
        assert (late.made, late.ended) == (2, "time")
        assert late.note.startswith("the time was spent")
        worse = verify(judge, RuleSet.uniform(Action(0, 25_600, 0)), PairTest())
        assert worse.kind == "default-is-fine"
        assert worse.gain.gain_high < 0
    with pytest.raises(InputError, match="pairs = 1"):
        PairTest(pairs_max=1)


def test_less_is_better_where_the_objective_says_so(scenario, tmp_path):
    with judging(scenario, tmp_path / "journal", objective="minimize service_time_ms_p99") as judge:
        slow, fast = (judge.measured(RuleSet.uniform(Action(0, 100, tau)), 2) for tau in (0, 70_000))
        assert fast.score > slow.score
        verdict = verify(judge, fast.rules, PairTest())
    assert verdict.kind == "improved"
    default_mean, best_mean = verdict.means
    assert best_mean < default_mean
    gain = verdict.gain
    assert 0 < gain.gain_low < gain.gain_relative < gain.gain_high < 1
    assert gain.difference == pytest.approx(default_mean - best_mean)


def test_sending_less_is_no_shorter_latency(scenario, tmp_path):
    """One request at a time and a pace: the service time is a quarter, and applications wait as long."""
    with judging(scenario, tmp_path / "journal", objective="latency:99") as judge:
        verdict = verify(judge, RuleSet.uniform(Action(0, 100, 70_000)), PairTest())
    assert verdict.kind == "default-is-fine"
    with judging(scenario, tmp_path / "others", objective="minimize service_time_ms_p99") as judge:
        verdict = verify(judge, RuleSet.uniform(Action(0, 100, 70_000)), PairTest())
    assert verdict.gain.gain_relative > 0.5


def test_scores_below_zero_have_a_difference_and_no_relative_gain(scenario, tmp_path):
    with judging(scenario, tmp_path / "journal", objective="maximize 0 - service_time_ms_p99") as judge:
        verdict = verify(judge, RuleSet.uniform(Action(0, 100, 70_000)), PairTest())
    assert verdict.kind == "improved"
    gain = verdict.gain
    assert (gain.gain_relative, gain.gain_low) == (None, None)
    assert 0 < gain.difference_low < gain.difference < gain.difference_high


def test_a_formula_without_a_value_is_no_score(scenario, tmp_path):
    with judging(
        scenario, tmp_path / "journal", objective="maximize 1 / (tp - tp)", limits=SearchLimits(10)
    ) as judge:
        found = search(judge, SearchPlan())
        assert found.best.score == float("-inf")
        assert verify(judge, found.best.rules, PairTest()).kind == "not-verified"


def test_rules_have_counted_what_was_answered(scenario):
    both = with_settings(scenario, ["warmup_s=0"])
    bench = SimulatedBench(both, objective_of("throughput"))
    (result,) = bench.run([RuleTrial(FIRST)])
    used = result.rules.rules[0].observed
    streams = both.client_count * both.server_count
    assert result.metrics["requests"] - streams <= used.used_times <= result.metrics["requests"]
    ack_us, send_us, ratio_x100 = used.means
    assert 0 < ack_us < 1_000_000
    assert 0 < send_us < 1_000_000
    assert ratio_x100 >= 100


def test_a_search_finds_that_files_have_to_take_turns(tmp_path):
    settings = ["workloads[0].threads[0].instances=16", "workloads[0].filesets[0].entries=16"]
    scenario = with_settings(preset("read-ahead-cliff"), [*settings, "warmup_s=2", "duration_s=6"])
    best = {}
    for active_files in ((), (1, 2, 8)):
        plan = SearchPlan(patience=1, active_files=active_files)
        path, limits = tmp_path / f"{len(active_files)}.journal", SearchLimits(evaluations=120)
        with judging(scenario, path, "throughput", plan, limits=limits) as judge:
            best[active_files] = search(judge, plan).best
    free, turned = best.values()
    assert free.rules.active_files == 0
    assert turned.rules.active_files in (1, 2)
    assert turned.score > 1.4 * free.score


def test_a_limit_on_files_is_of_our_schedule_and_a_number_of_files():
    with pytest.raises(InputError, match="use the schedule 'sharp'"):
        SearchPlan(schedule="faithful", active_files=(2,))
    with pytest.raises(InputError, match="--active-files"):
        SearchPlan(active_files=(0,))
