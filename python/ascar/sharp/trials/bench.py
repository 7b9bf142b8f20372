"""Where rule sets are tried, on several threads: the benchmark of algorithm 1 on the simulated cluster."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

import msgspec

from ascar.errors import InputError
from ascar.rules import Observed, RuleSet
from ascar.sharp.objectives import ALPHA_FAIRNESS, alpha_fairness
from ascar.simulation import FIGURES, Cluster, with_rule_text
from ascar.simulation.batch import cores
from ascar.simulation.controlled import check_followers, rules_of
from ascar.simulation.groups import Rates, client_rates, group_names, rates_of, shares_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from ascar.objective import Objective
    from ascar.rules import Rule
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.simulation import ClusterOutcome, Scenario
    from ascar.simulation.controlled import Followers

_KEPT = 16  # runs of a scenario and a repeat: one that differs in unused rules alone is not made again
_REPEATS_KEPT = 256
FRESH = 1_000_000
"""Repeats from here on are kept for the last comparison: no candidate was chosen by them."""
_SEED_MAX = 2**63 - 1
_THREADS_MAX = 1024

_LATENCIES = ("latency_ms_mean", "latency_ms_p50", "latency_ms_p90", "latency_ms_p99", "latency_ms_p999")
METRICS = frozenset((*FIGURES, *_LATENCIES, "latency_ms_max", "tp", "stdev", "cv"))
"""What every run tells: figures of a simulated run, tp, stdev and cv of section 3.1.5."""
SHARES: Mapping[str, str] = {
    "group_share_min": "the least of what groups of threads get, as a share of what they get without rules",
    "client_share_min": "the same of single clients",
    "throughput_share": "the total throughput as a share of that without rules",
    "throughput_loss": "what is missing of the total throughput without rules, as a share; 0 where it gains",
}
"""What a simulated run tells besides, by a run without rules on the same random numbers."""


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """One run of the workload.

    Attributes:
        rules: deployed to all controllers; None: the system as it is.
        repeat: the number of the repetition; the same repetition of all rule sets meets the same random
            numbers.
    """

    rules: RuleSet | None
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class RuleRun:
    """What a run brought.

    Attributes:
        metrics: the metrics by name.
        readings: total throughput by tick, MB/s.
        rules: the rules with the controllers' counts; None without rules.
        groups: what each group of the bench got: MB/s, or operations a second where it moves no data.
        failed: why the run failed; it has no metrics then. Empty: it did not.
    """

    metrics: dict[str, float]
    readings: tuple[float, ...]
    rules: RuleSet | None
    groups: tuple[float, ...] = ()
    failed: str = ""


class Bench(Protocol):
    """A system with its signature workload."""

    @property
    def identity(self) -> str:
        """Digest of all that results depend on, but for rules and repeat."""
        ...

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups that share the system, for people."""
        ...

    def run(self, trials: Iterable[RuleTrial]) -> Generator[RuleRun]:
        """Run trials, and hand over each result in their order as soon as it is there."""
        ...


class SimulatedBench:
    """The simulated cluster as a bench: a repeat is a seed.

    Args:
        scenario: the scenario without rules.
        objective: the objective whose metrics the results must have.
        threads: runs at a time; None: one a core. Results do not depend on it.
        also: further scenarios: a run is then one of each, metrics are the means over them, and readings
            those of the first. Rules that serve several loads, or sizes of a cluster, are found that way.
        bounds: the bounds whose metrics the results must have.
        followers: the streams that follow rules.

    Raises:
        InputError: the objective or a bound names a metric that no run has, there is no such group, the seed
            leaves none for repeats, or `threads` is out of range.
    """

    def __init__(
        self,
        scenario: Scenario,
        objective: Objective,
        threads: int | None = None,
        also: Sequence[Scenario] = (),
        *,
        bounds: Sequence[MetricBound] = (),
        followers: Followers = None,
    ) -> None:
        self.scenario = scenario
        self._followers: Followers = followers
        self.also = tuple(also)
        named = {"--objective": objective.formula.names, "--constraint": [one.metric for one in bounds]}
        self._names = tuple(dict.fromkeys(name for names in named.values() for name in names))
        self._unruled: dict[tuple[int, int], Rates] = {}
        self._made: dict[tuple[int, int], deque[RuleRun]] = {}
        self._threads = cores() if threads is None else threads
        if not 1 <= self._threads <= _THREADS_MAX:
            raise InputError(f"threads = {self._threads}: must be from 1 to {_THREADS_MAX}")
        for one in self._scenarios:
            check_followers(one, followers)
            if one.seed > _SEED_MAX - 2 * FRESH:
                raise InputError(f"seed = {one.seed}: must be at most {_SEED_MAX - 2 * FRESH} for a search")
        known = {*METRICS, *SHARES}
        for option, names in named.items():
            for name in names:
                if name not in known and not ALPHA_FAIRNESS.fullmatch(name):
                    raise InputError(
                        f"{option} names {name[:80]!r}; metrics are {', '.join(sorted(known))}, and "
                        "alpha_fairness_N, e.g. alpha_fairness_0p5"
                    )

    @property
    def identity(self) -> str:
        """Digest of the scenarios, and of who follows rules in them."""
        text = "".join(one.to_json() for one in self._scenarios)
        whose = "" if self._followers is None else f" group {self._followers}"
        return hashlib.sha256(f"{text}{whose}".encode()).hexdigest()

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of threads of each scenario."""
        if not self.also:
            return group_names(self.scenario)
        numbered = enumerate(self._scenarios, start=1)
        return tuple(f"{name}, scenario {at}" for at, one in numbered for name in group_names(one))

    @property
    def _scenarios(self) -> tuple[Scenario, ...]:
        return (self.scenario, *self.also)

    def run(self, trials: Iterable[RuleTrial]) -> Generator[RuleRun]:
        """Run trials, and hand over each result in their order as soon as it is there."""
        ended = threading.Event()
        pool = ThreadPoolExecutor(self._threads)
        try:
            yield from self._results(iter(trials), pool, ended)
        finally:
            ended.set()
            pool.shutdown(cancel_futures=True)

    def _results(
        self, trials: Iterator[RuleTrial], pool: ThreadPoolExecutor, ended: threading.Event
    ) -> Iterator[RuleRun]:
        """A few ahead of the one that is waited for."""
        under_way: deque[Future[RuleRun | None]] = deque()
        for trial in trials:
            under_way.append(pool.submit(self._one, trial, ended))
            if len(under_way) > self._threads:
                yield _there(under_way.popleft())
        while under_way:
            yield _there(under_way.popleft())

    def _one(self, trial: RuleTrial, ended: threading.Event) -> RuleRun | None:
        results: list[RuleRun] = []
        for number in range(len(self._scenarios)):
            result = self._result(number, trial, ended)
            if result is None:
                return None
            results.append(result)
        rules = [one.rules for one in results if one.rules is not None]
        metrics = combined([one.metrics for one in results])
        groups = tuple(rate for one in results for rate in one.groups)
        return RuleRun(metrics, results[0].readings, merged(rules) if rules else None, groups)

    def _result(self, number: int, trial: RuleTrial, ended: threading.Event) -> RuleRun | None:
        made = self._made.setdefault((number, trial.repeat), deque(maxlen=_KEPT))
        if len(self._made) > _REPEATS_KEPT * len(self._scenarios):
            self._made.pop(next(iter(self._made)), None)
        if trial.rules is not None:
            for known in tuple(made):
                if known.rules is not None and _acts_alike(trial.rules, known.rules):
                    return replace(known, rules=_with_use(trial.rules, known.rules))
        result = self._run_one(number, trial, ended)
        if result is not None and trial.rules is not None:
            made.append(result)
        return result

    def _run_one(self, number: int, trial: RuleTrial, ended: threading.Event) -> RuleRun | None:
        own = self._scenarios[number]
        seeded = msgspec.structs.replace(own, seed=own.seed + trial.repeat)
        scenario = seeded
        if trial.rules is not None:
            scenario = with_rule_text(seeded, trial.rules.bare().text(), self._followers)
        outcome = _outcome(scenario, ended)
        if outcome is None:
            return None
        metrics = metrics_of(outcome, self._names)
        rates = rates_of(outcome)
        if not SHARES.keys().isdisjoint(self._names):
            key = (number, trial.repeat)
            if trial.rules is None:
                self._unruled[key] = rates
            without = self._without_rules(key, seeded, ended)
            if without is None:
                return None
            metrics |= shares_of(rates, without)
        used = [RuleSet.parse(text) for text in rules_of(outcome, scenario, self._followers)]
        rules = None if trial.rules is None else merged(used) if used else trial.rules
        return RuleRun(metrics, outcome.total_mb_per_s, rules, rates.groups)

    def _without_rules(self, key: tuple[int, int], seeded: Scenario, ended: threading.Event) -> Rates | None:
        """What shares are of: the run of the same random numbers without rules, made once."""
        if key not in self._unruled:
            outcome = _outcome(seeded, ended)
            if outcome is None:
                return None
            self._unruled[key] = rates_of(outcome)
        return self._unruled[key]


def _acts_alike(rules: RuleSet, known: RuleSet) -> bool:
    """Whether a run under `rules` is one under `known`, for they differ only in rules that it never used."""
    return (
        (rules.updates_per_second, rules.active_files, len(rules.rules))
        == (known.updates_per_second, known.active_files, len(known.rules))
    ) and all(
        one.region == other.region
        and (one.action == other.action or (other.observed is not None and other.observed.used_times == 0))
        for one, other in zip(rules.rules, known.rules, strict=True)
    )


def _with_use(rules: RuleSet, known: RuleSet) -> RuleSet:
    """Rules with what was counted of others like them."""
    pairs = zip(rules.rules, known.rules, strict=True)
    return replace(rules, rules=tuple(replace(one, observed=other.observed) for one, other in pairs))


def _outcome(scenario: Scenario, ended: threading.Event) -> ClusterOutcome | None:
    """A run to its end; None where the bench was left meanwhile."""
    cluster = Cluster(scenario)
    while not cluster.finished:
        if ended.is_set():
            return None
        cluster.advance()
    return cluster.outcome()


def _there(future: Future[RuleRun | None]) -> RuleRun:
    result = future.result()
    assert result is not None, "only a bench that was left gives up runs"
    return result


def metrics_of(outcome: ClusterOutcome, names: Sequence[str] = ()) -> dict[str, float]:
    """The metrics of a run.

    Args:
        outcome: the outcome of the run.
        names: among them those that are reckoned on demand, such as "alpha_fairness_2".
    """
    metrics = outcome.figures()
    metrics |= {name: float(getattr(outcome.latency, name)) for name in (*_LATENCIES, "latency_ms_max")}
    tp, stdev = outcome.throughput_per_client_mb_per_s, outcome.stdev_pooled_mb_per_s
    metrics |= {"tp": tp, "stdev": stdev, "cv": stdev / tp if tp > 0 else 0.0}
    for name in names:
        if found := ALPHA_FAIRNESS.fullmatch(name):
            metrics[name] = alpha_fairness(client_rates(outcome), float(found[1].replace("p", ".")))
    return metrics


def combined(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The metrics of one run of several scenarios: means over them, of the least shares the least."""
    return {
        name: (min if name.endswith("_share_min") else fmean)(one[name] for one in runs) for name in runs[0]
    }


def merged(rule_sets: Sequence[RuleSet]) -> RuleSet:
    """One rule set of which several controllers or runs have statistics."""
    rules: list[Rule] = []
    for alike in zip(*(one.rules for one in rule_sets), strict=True):
        seen = [one.observed for one in alike if one.observed is not None]
        rules.append(replace(alike[0], observed=Observed.merged(seen)))
    return replace(rule_sets[0], rules=tuple(rules))
