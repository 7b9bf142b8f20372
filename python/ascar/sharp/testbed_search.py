"""Rules and static settings on a testbed: candidates of a simulation, chosen and compared in turns there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from ascar.errors import InputError
from ascar.pilot.rivals import against_each
from ascar.pilot.turns import PAIRS_MIN, PairTest, compare_in_turns
from ascar.results.rule_search import ContenderFigures, FailedRun, TestbedContender, TestbedProof
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.effects import figure_changes, group_changes, standings
from ascar.sharp.metric_bounds import excess_of
from ascar.sharp.rule_search import search
from ascar.sharp.trials.bench import FRESH, RuleTrial, SimulatedBench
from ascar.sharp.trials.judge import Judge, Judged, SearchLimits
from ascar.sharp.trials.run_journal import About, Journal
from ascar.sharp.trials.testbed_bench import fixed
from ascar.sharp.trials.testbed_places import windows_on
from ascar.sharp.verification import RuleVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ascar.results.contest import ContestEntry
    from ascar.results.rule_search import SearchEnd
    from ascar.rules import RuleSet
    from ascar.sharp.plan import SearchPlan
    from ascar.sharp.task import RealTestbed, Task
    from ascar.sharp.trials.bench import RuleRun
    from ascar.sharp.trials.judge import SearchProgress

RUNS_MIN, RUNS_MAX = 6, 40
"""Runs on a testbed: two turns of three contenders at least."""
Contender = Literal["rules", "default", "best static"]
_WINDOWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256)
_TAUS_US = (5_000, 10_000, 20_000, 40_000)
_SEEDS = 2
_PREDICTED = 8
_FAILURES_MAX = 3
_CONFIDENCE = 0.95
_CHOICE_RUNS = ((28, 3), (16, 2))
"""From so many runs on, so many candidates of a kind are tried before one of each is compared."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a simulation proposes for a testbed.

    Attributes:
        rules: rule sets, the best first.
        statics: static windows and gaps as rule sets, the best first.
        evaluations: runs that the simulation made.
        elapsed_s: seconds that it took.
    """

    rules: tuple[RuleSet, ...]
    statics: tuple[RuleSet, ...]
    evaluations: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class RealProgress:
    """How the runs on a testbed stand.

    Attributes:
        made: runs that have ended.
        of: runs in all.
        failed: those of them that failed.
        setting: what runs now.
        elapsed_s: the time that the search has taken so far.
        left_s: about so long at most; None: nothing tells.
    """

    made: int
    of: int
    failed: int
    setting: str
    elapsed_s: float
    left_s: float | None


@dataclass(frozen=True, slots=True)
class Proven:
    """What the runs on a testbed came to.

    Attributes:
        rules: the rules that were compared.
        static: the static setting that was compared.
        best: the rules with their runs; None: not one run of them succeeded.
        verdict: the rules against the system as it is; None: there were too few turns.
        stopped: why the runs ended.
        proof: all of it for people and programs.
    """

    rules: RuleSet
    static: RuleSet
    best: Judged | None
    verdict: RuleVerdict | None
    stopped: SearchEnd
    proof: TestbedProof


def check_runs(runs: int) -> int:
    """The number of runs that an option gives.

    Raises:
        InputError: it is out of range.
    """
    if not RUNS_MIN <= runs <= RUNS_MAX:
        raise InputError(f"--real-runs = {runs}: must be from {RUNS_MIN} to {RUNS_MAX}")
    return runs


def simulated_first(
    task: Task, system: RealTestbed, listener: Callable[[SearchProgress], None]
) -> Candidates:
    """Search in the testbed's scenario, as in any; and try static windows and gaps there.

    Raises:
        InputError: the journal is of another search, or kernels cannot do what the plan has.
    """
    plan = system.plan_for(task.plan)
    bench = SimulatedBench(system.scenario, task.objective, task.threads, bounds=task.bounds)
    about = About.of(bench, task.objective, plan, task.bounds)
    with Journal(task.journal_path(".first"), about, task.begin) as journal:
        trying = Judge(bench, task.objective, journal, listener=listener, bounds=task.bounds)
        statics = _statics(trying, plan)
        limits = SearchLimits(task.ends.evaluations, task.first_limits().budget_s)
        judge = Judge(bench, task.objective, journal, limits, listener=listener, bounds=task.bounds)
        search(judge, plan)
        found = dict.fromkeys(one.rules.bare() for one in reversed(judge.best_in_order))
        start = plan.start.bare()
        rules = tuple(one for one in found if one != start) or (start,)  # also where there was no time
        return Candidates(rules, statics, trying.evaluations + judge.evaluations, judge.elapsed_s)


def _statics(judge: Judge, plan: SearchPlan) -> tuple[RuleSet, ...]:
    """The best static window and gap of a simulation; then its half and its double, where that may err."""

    def best_of(places: Sequence[tuple[int, int]]) -> tuple[float, tuple[int, int]]:
        tried = judge.extended([Judged.not_run(fixed(*place)) for place in places], _SEEDS)
        return max((one.score, place) for one, place in zip(tried, places, strict=True))

    least, most = plan.windows or (_WINDOWS[0], _WINDOWS[-1])
    windows = sorted({least, most, *(window for window in _WINDOWS if least <= window <= most)})
    best = best_of([(window, 0) for window in windows])
    if plan.windows is None:
        best = max(best, best_of([(best[1][0], tau_us) for tau_us in _TAUS_US]))
    window, tau_us = best[1]
    tried = (window, max(least, window // 2), min(most, 2 * window))
    return tuple(dict.fromkeys(fixed(one, tau_us) for one in tried))


def setting_words(rules: RuleSet | None) -> str:
    """What people call rules, or a static window and gap."""
    if rules is None:
        return "no rules"
    action = rules.rules[0].action
    if len(rules.rules) > 1 or action.m100 != 0 or rules.active_files:
        return f"rules {rules_id(rules)}"
    gap = f", gap {action.tau_us / 1000:g} ms" if action.tau_us else ""
    return f"window {action.b100 / 100:g}{gap}"


@dataclass(slots=True)
class _Course:
    """The runs on a testbed, up to their limits.

    Attributes:
        judge: makes and remembers them.
        runs: their largest number.
        until_s: none is begun when the search has taken so long; None: any time.
        listener: hears of each before it begins.
        failures: those that failed.
        stopped: why no more are made; None: they go on.
    """

    judge: Judge
    runs: int
    until_s: float | None
    listener: Callable[[RealProgress], None]
    made: int = 0
    failures: list[FailedRun] = field(default_factory=list["FailedRun"])
    stopped: SearchEnd | None = None
    _in_a_row: int = 0

    def run(self, rules: RuleSet | None, repeat: int) -> RuleRun | None:
        """Make a run, or recall it; None where it failed, or is not made any more."""
        trial, judge = RuleTrial(rules, repeat), self.judge
        known = judge.journal.known(trial)
        if known is not None and known.failed and self._in_a_row == _FAILURES_MAX - 1:
            # That ended the search; who resumes it may have mended why.
            judge.journal.forget(trial)
            known = None
        is_known = known is not None
        if self.stopped is None and self.made >= self.runs:
            self.stopped = "evaluations"
        elif self.stopped is None and not is_known and self._is_late():
            self.stopped = "time"
        if self.stopped is not None:
            return None
        self._tell(setting_words(rules))
        (found,) = judge.fetch([trial])
        self.made += 1
        judge.evaluations += 1
        if found.failed or not math.isfinite(judge.score(found)):
            reason = found.failed or "the objective has no value there"
            self.failures.append(FailedRun(number=self.made, setting=setting_words(rules), reason=reason))
            self._in_a_row += 1
            if self._in_a_row == _FAILURES_MAX:
                self.stopped = "failures"
            return None
        self._in_a_row = 0
        return found

    def _is_late(self) -> bool:
        return self.until_s is not None and self.judge.elapsed_s >= self.until_s

    def _tell(self, setting: str) -> None:
        elapsed_s = self.judge.elapsed_s
        left = [] if self.until_s is None else [max(0.0, self.until_s - elapsed_s)]
        if self.made:
            left.append((self.runs - self.made) * elapsed_s / self.made)
        self.listener(
            RealProgress(
                self.made, self.runs, len(self.failures), setting, elapsed_s, min(left) if left else None
            )
        )


def prove(
    task: Task,
    system: RealTestbed,
    judge: Judge,
    candidates: Candidates,
    *,
    until_s: float | None,
    listener: Callable[[RealProgress], None],
) -> Proven:
    """Choose among the candidates on the testbed, and let the chosen take turns with the default.

    Runs that chose have no part in the comparison: the best of several is also the luckiest.

    Args:
        task: the task.
        system: the testbed.
        judge: judges runs on it.
        candidates: of the simulation.
        until_s: no run is begun when those on the testbed have taken so long; None: any time.
        listener: hears of each run.
    """
    course = _Course(judge, system.runs, until_s, listener)
    several = next((count for runs, count in _CHOICE_RUNS if system.runs >= runs), 1)
    rules, static = _chosen(course, [candidates.rules[:several], candidates.statics[:several]])
    chosen_in = course.made
    settings: dict[Contender, RuleSet | None] = {"rules": rules, "default": None, "best static": static}
    if rules == static:  # one setting has one place: its runs are not counted twice
        del settings["best static"]
    turns: list[dict[Contender, RuleRun | None]] = []
    for turn in range((system.runs - chosen_in) // len(settings)):
        order = Random(turn).sample(list(settings), len(settings))  # noqa: S311  # no secret
        made = {name: course.run(settings[name], FRESH + turn) for name in order}
        if course.stopped is not None:
            break
        turns.append(made)
    best = [run for one in turns if (run := one["rules"]) is not None]
    proof = TestbedProof(
        nodes=tuple(dict.fromkeys(node.kind for node in system.wanted.node)),
        runs=course.made,
        chosen_in_runs=chosen_in,
        turns=len(turns),
        contenders=_contenders(task, system, settings, turns),
        failures=tuple(course.failures),
        differences=differences(system, settings.values()),
    )
    return Proven(
        rules,
        static,
        _judged(judge, rules, best) if best else None,
        _verdict(task, judge, turns),
        course.stopped or "evaluations",
        proof,
    )


def _chosen(course: _Course, kinds: Sequence[Sequence[RuleSet]]) -> tuple[RuleSet, RuleSet]:
    """The best of each kind: of those tried once the better half is tried again."""
    scores: dict[RuleSet, list[float]] = {one: [] for kind in kinds for one in kind}

    def worth(one: RuleSet) -> float:
        return fmean(scores[one]) if scores[one] else -math.inf

    left = [list(kind) for kind in kinds]
    repeat = 0
    while any(len(kind) > 1 for kind in left) and course.stopped is None:
        # The search begins with a sweep of static settings: one may be among both kinds.
        wanted = list(dict.fromkeys(one for kind in left if len(kind) > 1 for one in kind))
        for one in Random(repeat).sample(wanted, len(wanted)):  # noqa: S311  # no secret
            found = course.run(one, repeat)
            if found is not None:
                scores[one].append(course.judge.value(found))
        left = [sorted(kind, key=worth, reverse=True)[: math.ceil(len(kind) / 2)] for kind in left]
        repeat += 1
    rules, static = (max(kind, key=worth) for kind in left)
    return rules, static


def _judged(judge: Judge, rules: RuleSet, runs: Sequence[RuleRun]) -> Judged:
    return Judged(
        rules,
        tuple(runs),
        scores=tuple(map(judge.value, runs)),
        plain=tuple(map(judge.score, runs)),
        excesses=tuple(excess_of(judge.bounds, one.metrics) for one in runs),
    )


def _verdict(
    task: Task, judge: Judge, turns: Sequence[Mapping[Contender, RuleRun | None]]
) -> RuleVerdict | None:
    """The rules against the system as it is, by all turns."""
    if len(turns) < PAIRS_MIN:
        return None

    def score(run: RuleRun | None) -> float | None:
        return None if run is None else task.objective.score(run.metrics)

    pairs = [(score(one["default"]), score(one["rules"])) for one in turns]
    of_all = PairTest(task.test.level, task.test.margin, len(turns), len(turns), failure_ends=False)
    comparison = compare_in_turns(pairs, task.objective.direction, of_all)
    both = [(one["default"], one["rules"]) for one in turns]
    whole = [(one, other) for one, other in both if one is not None and other is not None]
    if len(whole) < PAIRS_MIN:
        return None
    runs = tuple(one for one, _ in whole), tuple(other for _, other in whole)
    groups = group_changes(judge.bench.groups, runs)
    return RuleVerdict(comparison, figure_changes(runs), groups, standings(judge.bounds, runs, groups))


def _contenders(
    task: Task,
    system: RealTestbed,
    settings: Mapping[Contender, RuleSet | None],
    turns: Sequence[Mapping[Contender, RuleRun | None]],
) -> tuple[TestbedContender, ...]:
    whole = [one for one in turns if None not in one.values()]
    real = _figures(task, {name: [run for one in whole if (run := one[name])] for name in settings})
    bench = SimulatedBench(system.scenario, task.objective, task.threads)
    trials = [RuleTrial(rules, FRESH + at) for rules in settings.values() for at in range(_PREDICTED)]
    runs = list(bench.run(trials))
    simulated = _figures(
        task, {name: runs[at * _PREDICTED :][:_PREDICTED] for at, name in enumerate(settings)}
    )
    return tuple(
        TestbedContender(
            name=name, setting=setting_words(rules), simulated=simulated[name], real=real.get(name)
        )
        for name, rules in settings.items()
    )


def _figures(task: Task, runs: Mapping[Contender, Sequence[RuleRun]]) -> dict[Contender, ContenderFigures]:
    """What contenders did in simulation or on the testbed; nothing where there are too few runs."""
    if min(map(len, runs.values())) < PAIRS_MIN:
        return {}
    scores: dict[str, list[float]] = {
        name: [task.objective.score(one.metrics) for one in own] for name, own in runs.items()
    }
    entries = against_each(scores, task.objective.direction, _CONFIDENCE)
    return {name: _figure(entry, runs[name]) for name, entry in zip(runs, entries, strict=True)}


def _figure(entry: ContestEntry, runs: Sequence[RuleRun]) -> ContenderFigures:
    told = [one.metrics["latency_ms_p99"] for one in runs if "latency_ms_p99" in one.metrics]
    return ContenderFigures(
        mean=entry.mean,
        mean_low=entry.ci_low,
        mean_high=entry.ci_high,
        runs=len(runs),
        latency_ms_p99=fmean(told) if told else None,
        gain_relative=entry.gain_relative,
        gain_low=entry.gain_low,
        gain_high=entry.gain_high,
        difference=entry.difference,
        difference_low=entry.difference_low,
        difference_high=entry.difference_high,
    )


def differences(system: RealTestbed, tried: Iterable[RuleSet | None]) -> tuple[str, ...]:
    """How the simulation of a testbed differs from it, as far as is known beforehand.

    Args:
        system: the testbed.
        tried: the rules that take turns.
    """
    wanted, scenario = system.wanted, system.scenario
    kinds = {node.kind for node in wanted.node}
    said = [
        "time: virtual in simulation; real here, on a machine that does other work too",
        "disks: the same model on both; here its answers wait for a process of this machine to wake up",
        "clients: an application with a cache in simulation; here fio, which keeps as many requests "
        "in flight as the cache would",
    ]
    if any(one.active_files for one in tried if one is not None):
        said.append("active_files: files of a client take turns in simulation; here clients do")
    if windows_on(wanted) is not None:
        said += [
            "windows: of a client's requests in simulation; here of requests to a device, of all clients on "
            "it together, in pieces of max_sectors_kb at most, merged where they are neighbours",
            "default: any number of requests in simulation; here the queue that the kernel gives a device",
        ]
    if scenario.server_count != len(wanted.disk):
        said.append(f"servers: {scenario.server_count} in simulation; disks here: {len(wanted.disk)}")
    links = "unix sockets of this machine" if kinds == {"process"} else "the links of the testbed file"
    said.append(f"network: links and a switch of the scenario in simulation; here {links}")
    return tuple(said)
