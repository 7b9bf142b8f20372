"""The runs on a testbed: chosen, in turns, failed by name; a bench that only pretends stands for it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import InputError
from ascar.pilot.turns import PairTest
from ascar.rules import RuleSet
from ascar.sharp import About, Journal, Judge, RuleRun, SearchPlan, objective_of
from ascar.sharp.metric_bounds import bounds_of
from ascar.sharp.task import Ends, RealTestbed, Task
from ascar.sharp.testbed_search import (
    RUNS_MAX,
    Candidates,
    Proven,
    RealProgress,
    check_runs,
    differences,
    prove,
    setting_words,
    simulated_first,
)
from ascar.sharp.trials.testbed_bench import fixed
from ascar.sharp.trials.testbed_places import scenario_on
from ascar.simulation import with_settings
from ascar.testbed.file import testbed_of as bed_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from ascar.sharp import RuleTrial

OBJECTIVE = objective_of("throughput")
TINY = ["duration_s=1", "warmup_s=0.5", "clients.count=2"]
BED = bed_of(
    {
        "testbed": {"name": "bed"},
        "node": [{"name": "server"}, {"name": "clients"}],
        "disk": [{"name": "disk", "node": "server", "scenario": "random-write", "size": "4GiB"}],
        "proxy": [{"node": "clients", "disks": ["disk"]}],
    },
    Path("/"),
)
KERNELS = bed_of(
    {
        "testbed": {"name": "bed"},
        "node": [
            {"name": "server", "kind": "kernel"},
            {"name": "client", "kind": "kernel", "attach": [{"server": "server", "port": 10_809}]},
        ],
        "disk": [{"name": "disk", "node": "server", "scenario": "random-write", "size": "4GiB"}],
        "agent": [{"node": "client", "windows": {"devices": ["nbd15"], "minimum": 5, "maximum": 40}}],
    },
    Path("/"),
)
SCENARIO = with_settings(scenario_on(BED), TINY)
STATICS = tuple(fixed(window) for window in (4, 2, 8))
RULES = tuple(fixed(window, 1) for window in (30, 31, 32))
LIMIT = 100.0


@dataclass
class Pretended:
    """A bench whose throughput is by window, and which fails where it is told to."""

    groups: tuple[str, ...] = ("client 1", "client 2")
    identity: str = "pretended"
    failing: set[int] = field(default_factory=set[int])
    made: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def run(self, trials: Iterable[RuleTrial]) -> Generator[RuleRun]:
        for trial in trials:
            self.made.append((setting_words(trial.rules), trial.repeat))
            if len(self.made) in self.failing:
                yield RuleRun({}, (), None, failed="node server: ended in the run")
                continue
            window = 5.0 if trial.rules is None else trial.rules.rules[0].action.b100 / 100
            rate = window + len(self.made) % 3 / 10
            metrics = {"throughput_mb_per_s": rate, "latency_ms_p99": 2 * rate}
            yield RuleRun(metrics, (rate,), trial.rules, (rate / 2, rate / 2))


def task_of(runs: int, out: Path, begin: Any = "new") -> Task:
    return Task(
        system=RealTestbed(BED, SCENARIO, runs),
        also=(),
        first_in=None,
        objective=OBJECTIVE,
        bounds=bounds_of(None),
        plan=SearchPlan(),
        ends=Ends(None, None),
        test=PairTest(),
        threads=1,
        out=out,
        begin=begin,
    )


def proven(
    bench: Pretended,
    runs: int,
    out: Path,
    *,
    begin: Any = "new",
    until_s: float | None = None,
    rules: tuple[RuleSet, ...] = RULES,
) -> tuple[Proven, list[RealProgress]]:
    task, told = task_of(runs, out, begin), list[RealProgress]()
    assert isinstance(task.system, RealTestbed)
    about = About.of(bench, OBJECTIVE, task.plan, task.bounds)
    with Journal(task.journal_path(), about, begin) as journal:
        judge = Judge(bench, OBJECTIVE, journal, bounds=task.bounds)
        candidates = Candidates(rules, STATICS, 0, 0.0)
        found = prove(task, task.system, judge, candidates, until_s=until_s, listener=told.append)
    return found, told


def test_forty_runs_choose_among_three_of_each_and_take_ten_turns(tmp_path: Path) -> None:
    bench = Pretended()
    found, told = proven(bench, RUNS_MAX, tmp_path / "rules")
    proof = found.proof
    assert len(bench.made) == proof.runs == len(told) == RUNS_MAX
    assert (proof.chosen_in_runs, proof.turns, proof.failures) == (10, 10, ())
    assert (setting_words(found.rules), setting_words(found.static)) == (
        "window 32, gap 0.001 ms",
        "window 8",
    )
    turns = bench.made[10:]
    assert [{repeat for _, repeat in turns[at : at + 3]} for at in range(0, 30, 3)] == [
        {1_000_000 + turn} for turn in range(10)
    ]
    assert len({tuple(name for name, _ in turns[at : at + 3]) for at in range(0, 30, 3)}) > 1
    rules, default, static = proof.contenders
    assert (rules.name, default.name, static.name) == ("rules", "default", "best static")
    assert rules.real is not None and default.real is not None and static.real is not None
    assert rules.real.mean > static.real.mean > default.real.mean
    assert rules.real.gain_relative is None and default.real.gain_low is not None
    assert default.real.gain_low > 3
    assert (default.real.runs, default.simulated.runs) == (10, 8)
    assert found.verdict is not None and found.verdict.kind == "improved"
    assert found.best is not None and len(found.best.results) == 10
    assert told[-1].left_s is not None and told[-1].made == RUNS_MAX - 1


def test_few_runs_choose_nothing(tmp_path: Path) -> None:
    found, _ = proven(Pretended(), 8, tmp_path / "rules")
    assert (found.proof.chosen_in_runs, found.proof.turns, found.proof.runs) == (0, 2, 6)
    assert setting_words(found.static) == "window 4"


def test_a_run_that_fails_is_named_and_the_next_goes_on(tmp_path: Path) -> None:
    bench = Pretended(failing={2, 20})
    found, told = proven(bench, RUNS_MAX, tmp_path / "rules")
    assert found.proof.runs == RUNS_MAX
    assert [(one.number, one.reason) for one in found.proof.failures] == [
        (2, "node server: ended in the run"),
        (20, "node server: ended in the run"),
    ]
    assert all(one.setting for one in found.proof.failures)
    real = found.proof.contenders[1].real
    assert real is not None and real.runs == 9  # the turn of run 20 is left out for all
    assert told[-1].failed == 2


def test_three_failures_in_a_row_end_it(tmp_path: Path) -> None:
    bench = Pretended(failing=set(range(1, 100)))
    found, _ = proven(bench, RUNS_MAX, tmp_path / "rules")
    assert (len(bench.made), found.stopped, found.best, found.verdict) == (3, "failures", None, None)
    assert all(one.real is None for one in found.proof.contenders)


def test_who_resumes_after_three_failures_goes_on_with_the_last_of_them(tmp_path: Path) -> None:
    for _ in range(2):  # the reason is still there when it is resumed for the first time
        bench = Pretended(failing=set(range(1, 100)))
        begin = "resume" if (tmp_path / "rules.journal").exists() else "new"
        found, _ = proven(bench, RUNS_MAX, tmp_path / "rules", begin=begin)
        assert found.stopped == "failures"
    assert len(bench.made) == 1
    bench = Pretended()
    found, _ = proven(bench, RUNS_MAX, tmp_path / "rules", begin="resume")
    assert (len(bench.made), found.proof.runs, found.stopped) == (RUNS_MAX - 2, RUNS_MAX, "evaluations")
    assert [one.number for one in found.proof.failures] == [1, 2]
    again, _ = proven(Pretended(failing={1}), RUNS_MAX, tmp_path / "rules", begin="resume")
    assert again.proof == found.proof


def test_a_static_setting_among_the_rules_is_run_and_counted_once(tmp_path: Path) -> None:
    bench = Pretended()
    found, _ = proven(bench, RUNS_MAX, tmp_path / "rules", rules=(*RULES[:2], STATICS[0]))
    proof = found.proof
    assert len(set(bench.made)) == len(bench.made) == proof.runs
    assert [one.name for one in proof.contenders] == ["rules", "default", "best static"]


def test_rules_that_are_the_best_static_setting_have_one_place(tmp_path: Path) -> None:
    bench = Pretended()
    found, _ = proven(bench, RUNS_MAX, tmp_path / "rules", rules=(STATICS[2],))
    proof = found.proof
    assert found.rules == found.static == STATICS[2]
    assert len(set(bench.made)) == len(bench.made) == proof.runs
    assert [one.name for one in proof.contenders] == ["rules", "default"]
    assert proof.turns == (RUNS_MAX - proof.chosen_in_runs) // 2
    assert proof.contenders[1].real is not None and proof.contenders[1].real.runs == proof.turns
    assert found.verdict is not None and found.verdict.kind == "improved"


def test_a_search_without_time_for_a_run_still_has_rules_to_compare(tmp_path: Path) -> None:
    task = replace(task_of(6, tmp_path / "rules"), ends=Ends(2, None))
    assert isinstance(task.system, RealTestbed)
    found = simulated_first(task, task.system, lambda _: None)
    assert found.rules == (task.plan.start.bare(),)


def test_candidates_for_kernels_are_what_their_queues_can_do(tmp_path: Path) -> None:
    system = RealTestbed(KERNELS, with_settings(scenario_on(KERNELS), TINY), 6)
    task = replace(task_of(6, tmp_path / "rules"), system=system, ends=Ends(60, None))
    found = simulated_first(task, system, lambda _: None)
    assert len(found.statics) > 1
    actions = [rule.action for one in (*found.rules, *found.statics) for rule in one.rules]
    assert {one.tau_us for one in actions} == {0}
    assert all(500 <= one.b100 <= 4_000 for one in actions if one.m100 == 0)
    lines = (tmp_path / "rules.first.journal").read_text().splitlines()[1:]
    tried = [RuleSet.parse(text) for line in lines if (text := json.loads(line)["rules"])]
    assert len(tried) > 60
    assert {rule.action.tau_us for one in tried for rule in one.rules} == {0}
    said = "\n".join(differences(system, found.statics))
    assert "max_sectors_kb" in said


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"active_files": (2,)}, "--active-files: active_files: a kernel's queue has no turns"),
        ({"start": replace(fixed(4), active_files=2)}, "--rules: active_files: a kernel's queue has no"),
        ({"along": ("pt_ratio", "write_share")}, "--along = write_share: kernels count what ack_ewma"),
        ({"start": fixed(4, 5)}, "--rules: rule 1: a kernel's queue has no gap"),
        ({"start": fixed(4).with_indicators(5)}, "--rules: rule 1: a kernel's queue has no gap"),
    ],
)
def test_what_queues_of_kernels_cannot_do_is_refused_before_a_run(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        RealTestbed(KERNELS, SCENARIO, 6).plan_for(SearchPlan(**asked))
    assert RealTestbed(BED, SCENARIO, 6).plan_for(SearchPlan(**asked)) == SearchPlan(**asked)


def test_an_interrupted_one_makes_no_run_twice(tmp_path: Path) -> None:
    class Ended(Exception):
        pass

    @dataclass
    class Interrupted(Pretended):
        def run(self, trials: Iterable[RuleTrial]) -> Generator[RuleRun]:
            for found in super().run(trials):
                if len(self.made) == 17:
                    raise Ended
                yield found

    whole, _ = proven(Pretended(failing={3}), RUNS_MAX, tmp_path / "whole")
    with pytest.raises(Ended):
        proven(Interrupted(failing={3}), RUNS_MAX, tmp_path / "rules")
    rest = Pretended()
    rest.made = [("before", 0)] * 16  # so that it goes on as the first would have
    again, _ = proven(rest, RUNS_MAX, tmp_path / "rules", begin="resume")
    assert len(rest.made) == RUNS_MAX
    assert again.proof == whole.proof


def test_the_time_ends_it_before_a_run(tmp_path: Path) -> None:
    found, _ = proven(Pretended(), RUNS_MAX, tmp_path / "rules", until_s=1e-9)
    assert (found.proof.runs, found.stopped, found.verdict) == (0, "time", None)


@pytest.mark.parametrize("runs", [-1, 5, 41, 10**9])
def test_the_number_of_runs_has_limits(runs: int) -> None:
    with pytest.raises(InputError, match=f"--real-runs = {runs}: must be from 6 to 40"):
        check_runs(runs)


def test_how_both_grounds_differ_is_said() -> None:
    said = differences(RealTestbed(BED, SCENARIO, 6), [None])
    assert [one.partition(":")[0] for one in said] == ["time", "disks", "clients", "servers", "network"]
    with_turns = differences(RealTestbed(BED, SCENARIO, 6), [_with_turns()])
    assert any(one.startswith("active_files:") for one in with_turns)


def _with_turns() -> Any:
    return replace(fixed(4), active_files=2)
