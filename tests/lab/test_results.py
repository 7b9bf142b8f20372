"""What runs say: tests, ranks, curves, stopping rules, benchmark files."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import StudyError
from ascar.lab import (
    Benchmark,
    Budget,
    Contender,
    NoiseModel,
    SimulatedSearch,
    Sweep,
    TableSpecification,
    simulate,
)
from ascar.lab.curves import band, best_values, near_optimal, over_time, stops_by_mutations, stops_by_window
from ascar.lab.ranking import compare, ranks
from ascar.lab.summary import regrets
from ascar.systems.recording_columns import TableColumns


class Known:
    """A problem whose objective is maximised, best 10, median 5."""

    name, sign, best, median = "known", -1, -10.0, -5.0


def run_of(values, mutations=None, seconds=None, seed=1):
    losses = -np.array(values, np.float64)
    n = len(losses)
    return SimulatedSearch(
        "x",
        "known",
        seed,
        losses,
        losses.copy(),
        np.full(n, np.nan) if seconds is None else np.array(seconds, np.float64),
        np.zeros(n),
        np.full(n, np.nan) if mutations is None else np.array(mutations, np.float64),
        np.array([[losses.min(), losses.min()]]),
    )


def test_pairs_are_compared_on_the_seeds_that_both_have():
    rng = np.random.default_rng(1)
    base = rng.random(40)
    good = {seed: float(value) for seed, value in enumerate(base)}
    bad = {seed: float(value) + 0.2 + 0.1 * rng.random() for seed, value in enumerate(base[:30])}
    same = dict(good)
    found = {(one.one, one.other): one for one in compare({"p": {"good": good, "bad": bad, "same": same}})}
    worse = found["good", "bad"]
    assert worse.runs == 30
    assert worse.regret_difference == pytest.approx(-0.25, abs=0.03)
    assert worse.p_value < 1e-5
    assert worse.p_value_holm >= worse.p_value
    assert found["good", "same"].p_value == 1.0


def test_ranks_leave_out_problems_that_not_all_were_tried_on():
    found = ranks(
        {"p": {"a": 0.1, "b": 0.2, "c": 0.2}, "q": {"a": 0.3, "b": 0.1, "c": 0.2}, "r": {"a": 0.0, "b": 0.1}}
    )
    assert [(one.name, one.rank_mean, one.first, one.problems) for one in found] == [
        ("b", 1.75, 1, 2),
        ("a", 2.0, 1, 2),
        ("c", 2.25, 0, 2),
    ]


def test_the_share_near_the_optimum_counts_runs():
    runs = [run_of([5, 9.96, 1]), run_of([1, 2, 9.92]), run_of([1, 2])]
    values = best_values(runs, Known())
    assert values.tolist() == [[5, 9.96, 9.96], [1, 2, 9.92], [1, 2, 2]]
    assert near_optimal(values, Known(), 0.99).tolist() == pytest.approx([0, 1 / 3, 2 / 3])
    assert near_optimal(values, Known(), 0.995).tolist() == pytest.approx([0, 1 / 3, 1 / 3])


def test_time_is_what_evaluations_took():
    runs = [run_of([5, 9], seconds=[10, 30]), run_of([1, 7], seconds=[20, 20])]
    times, found = over_time(runs, best_values(runs, Known()), 40.0)
    at = {round(time): column for time, column in zip(times, found.T, strict=True)}
    assert np.isnan(at[5]).all()
    assert at[15][0] == 5
    assert np.isnan(at[15][1])
    assert at[25].tolist() == [5, 1]
    assert at[40].tolist() == [9, 7]
    shown = band(times, found)
    assert np.isfinite(shown.middle).all()
    assert shown.middle[-1] == 8
    assert over_time([run_of([1, 2])], np.ones((1, 2))) is None


def test_a_window_stops_after_so_many_evaluations_without_a_gain():
    found_late = run_of([5, 6, 6, 6, 6, 10])
    found_early = run_of([5, 9.9, 6, 6, 6, 10])
    one, two, five = stops_by_window([found_late, found_early], Known(), (1, 2, 5), 0.05)
    assert (one.stopped, one.successful, one.evaluations) == (1.0, 0.5, 3.0)
    assert (two.stopped, two.successful, two.evaluations) == (1.0, 0.5, 4.0)
    assert (five.stopped, five.successful, five.evaluations) == (0.0, 0.0, 6.0)


def test_diversity_stops_so_many_mutations_after_convergence():
    run = run_of([5, 9.8, 6, 10], mutations=[np.nan, 0, 2, 3])
    zero, two, nine = stops_by_mutations([run], Known(), (0, 2, 9), 0.05)
    assert (zero.successful, zero.evaluations) == (1.0, 2.0)
    assert (two.successful, two.evaluations) == (1.0, 3.0)
    assert (nine.stopped, nine.successful, nine.evaluations) == (0.0, 0.0, 4.0)
    (strict,) = stops_by_mutations([run], Known(), (0,), 0.01)
    assert (strict.stopped, strict.successful) == (1.0, 0.0)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "fs,x,speed\n" + "\n".join(f"{fs},{x},{10 * x + (fs == 'b')}" for x in range(8) for fs in "ab")
    )
    return TableSpecification(str(path), "speed", True, TableColumns(("fs", "x")))


def test_genetic_runs_tell_when_their_population_has_converged(table):
    (run,) = simulate(table, Contender("genetic"), Budget(1, 16), 0)
    assert np.isnan(run.mutations[0])
    (other,) = simulate(table, Contender("random"), Budget(1, 16), 0)
    assert np.isnan(other.mutations).all()


def test_fixed_parameters_stay_and_the_whole_table_judges(table):
    from dataclasses import replace

    fixed = replace(table, fixed=(("x", "3"),))
    problem = fixed.build()
    assert problem.best == -71.0
    runs = simulate(fixed, Contender("random"), Budget(2, 5), 0)
    assert all(set(run.truth) == {-30.0, -31.0} for run in runs)
    assert (regrets(runs, problem, 0) > 0.9).all()
    first = replace(table, fixed=(("fs", ""),)).build()
    assert first.space.default()["fs"] == "a"
    for wrong, message in (((("y", "1"),), "is not a parameter"), ((("fs", "zfs"),), "must be one of a, b")):
        with pytest.raises(StudyError, match=message):
            replace(table, fixed=wrong).build()


def test_searches_begin_where_they_are_told(table):
    from dataclasses import replace

    begun = replace(table, start=((("fs", "b"), ("x", "5")), (("fs", "a"), ("x", "6"))))
    for kind, expected in (("random", [-51.0]), ("dqn", [-51.0]), ("genetic", [-51.0, -60.0])):
        (run,) = simulate(begun, Contender(kind), Budget(1, 4), 0)
        assert run.truth[: len(expected)].tolist() == expected
    (run,) = simulate(begun, Contender("random"), Budget(1, 16), 0)
    assert len(run.truth) == 16


def test_searches_begin_at_the_default_of_every_file_system():
    """As in Cao 5.2: GA and BO with each file system's default, SA, DQN and random with one."""
    from dataclasses import replace

    dataset = TableSpecification("dataset:storage-v5-fileserver", "operations", True)
    formats = ("ext4", "ext2", "ext3", "xfs", "btrfs")
    problem = replace(dataset, start=tuple((("fs", one),) for one in formats)).build()
    assert [one["fs"] for one in problem.start] == list(formats)
    assert problem.start[0] == problem.space.default()
    assert "xfs_inode_size_bytes" in problem.start[3]
    assert "ext_journal_mode" not in problem.start[3]
    for start, message in (
        ((("fs", "xfs"), ("ext_journal_mode", "ordered")), "start: .*ext_journal_mode.* leave it out"),
        ((("fs", "zfs"),), "must be one of"),
    ):
        with pytest.raises(StudyError, match=message):
            replace(dataset, start=(start,)).build()


def test_sweeps_are_read_as_toml_values():
    sweep = Sweep.parse("genetic.mutation=0.01, 1,true,rank")
    assert (sweep.kind, sweep.option, list(sweep.values)) == ("genetic", "mutation", [0.01, 1, True, "rank"])
    assert [one.label for one in sweep.contenders][:1] == ["genetic mutation=0.01"]
    for wrong in ("genetic", "genetic.x", "genetic.x=", ".x=1", "x=1"):
        with pytest.raises(StudyError, match=r"must be KIND\.OPTION=VALUE"):
            Sweep.parse(wrong)


BENCHMARK = """
checkpoints_evaluations = [5, 10]
seeds = 4
[[table]]
name = "one"
file = "table.csv"
objective = "maximize speed"
parameters = ["fs", "x"]
noise = "gaussian:0.1"
[[synthetic]]
name = "made-up"
parameters = 8
effective = 3
seed = 1
noise = "none"
"""


def test_a_benchmark_file_is_read(table, tmp_path):
    path = tmp_path / "bench.toml"
    path.write_text(BENCHMARK)
    benchmark = Benchmark.read(path, tmp_path)
    assert [problem.name for problem in benchmark.problems] == ["one", "made-up"]
    assert (benchmark.checkpoints, benchmark.runs, benchmark.runs_slow) == ((5, 10), 4, None)
    assert benchmark.problems[0].noise == NoiseModel(relative_sd=0.1)
    assert benchmark.problems[0].build().best == -71.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = 4", "seeds = 0", "seeds = 0: must be from 1"),
        ("seeds = 4", "seeds = 4\nsede = 1", "sede: unknown key"),
        ("[5, 10]", "[]", "checkpoints_evaluations"),
        ("maximize speed", "speed", "must be 'maximize COLUMN'"),
        ("gaussian:0.1", "gauss", "must be 'replicates'"),
        ("effective = 3", "effective = 9", "effective = 9: must be from 1 to 7"),
        ('"made-up"', '"one"', "two problems have this name"),
        ("checkpoints", "check points", "is not TOML"),
    ],
)
def test_a_wrong_benchmark_file_is_refused_by_its_key(old, new, message, tmp_path):
    path = tmp_path / "bench.toml"
    path.write_text(BENCHMARK.replace(old, new))
    with pytest.raises(StudyError, match=message):
        Benchmark.read(path, tmp_path)
