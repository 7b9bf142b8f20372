"""What rules are worth on workloads that they were not made for, and what the rule library makes of it.

Two parts. *Altered* (Li, section 3.2.6, Figure 3.4): one rule set on 20 workloads with a feature or two
changed; for one of the two, rules made with several numbers of clients beside. *Unseen*: a library is
bootstrapped on the common workloads and tried on altered ones; then a tenth of all workloads at a time is
hidden from it, with the rules made for them, and it chooses for each of these by its features alone. The
choice and the best of all rule sets are measured again on fresh seeds, so that neither is favoured by luck;
no rules count as a gain of zero.

    python -m benchmarks.sharp_library --budget 25min

The library is kept in build/sharp-library; what is there is not made again.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ascar.library.store import Library
from ascar.sharp import Journal, Judge, RuleSet, SearchLimits, SimulatedBench, objective_of, search
from ascar.sharp.matching.alteration import alterations
from ascar.sharp.matching.bootstrap import BootstrapProgress, Effort, Workloads, bootstrap
from ascar.sharp.matching.choice import Chooser
from ascar.sharp.matching.common import Mix, common_set
from ascar.sharp.matching.gains import gains
from ascar.sharp.plan import SearchPlan
from ascar.sharp.trials.run_journal import About
from ascar.simulation import Cluster, Scenario, preset, with_settings

from .harness import Benchmark, Piece, percent, table

OBJECTIVE = objective_of("throughput")
DIRECTORY = Path(__file__).parents[1] / "build" / "sharp-library"
LIBRARY = DIRECTORY / "library.jsonl"
ALTERED = 400
EVALUATIONS = 150
PAIRS = 3
PAIRS_AGAIN = 8
FOLDS = 10
SEED_AGAIN = 50_000_000  # added to a scenario's: no run of search or bootstrap has met these
CAUTIONS = (0.0, 0.25, 0.5, 1.0)

FILESERVER = (
    ("clients 2", ["clients.count=2"]),
    ("clients 3", ["clients.count=3"]),
    ("clients 8", ["clients.count=8"]),
    ("clients 10", ["clients.count=10"]),
    ("threads 10", ["workloads.threads.instances=10"]),
    ("threads 25", ["workloads.threads.instances=25"]),
    ("threads 100", ["workloads.threads.instances=100"]),
    ("files 1 MiB", ["workloads.filesets.size_mib=1"]),
    ("files 20 MiB", ["workloads.filesets.size_mib=20"]),
    ("10,000 files", ["workloads.filesets.entries=10000"]),
)
"""What Table 3.4's file server is changed to."""
SIZES = (2, 10)
"""With so many clients, too, `fileserver-2-10` is made (`--also`)."""
WRITER = {
    "write 0.25 MiB": {"write_mib": 0.25},
    "write 4 MiB": {"write_mib": 4.0},
    "write 10 MiB": {"write_mib": 10.0},
    "sequential write": {"write_random": False},
    "r:w 0.5": {"read_to_write": 0.5},
    "r:w 1": {"read_to_write": 1.0},
    "r:w 4": {"read_to_write": 4.0},
    "read 10 MiB": {"read_mib": 10.0},
    "threads 4": {"threads": 4},
    "clients 10": {"clients": 10},
}
"""What sequential reads with random writes, the workload of Figure 3.4, are changed to."""
FIGURE = Mix(0.1, 1.0, read_random=False, threads=16, direct=True)


def main() -> None:
    """Do all parts as far as the budget reaches."""
    given = Benchmark.from_arguments(__doc__ or "", "25min")
    given.build = _simulator()
    start_s = time.monotonic()
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    _altered(given.run(_altered_pieces()))
    left_s = given.budget_s - (time.monotonic() - start_s)
    if left_s <= 0 or not _bootstrapped(left_s):
        print("the library is not complete; the same command goes on", file=sys.stderr)
        raise SystemExit(3)
    given.budget_s = max(1.0, given.budget_s - (time.monotonic() - start_s))
    found = given.run(_unseen_pieces())
    _unseen(found)
    if len(found) < FOLDS:
        raise SystemExit(3)


def _simulator() -> str:
    """What results depend on: other builds of the same simulator may go on with them."""
    outcomes = "".join(str(Cluster(preset(name)).run(3).requests) for name in ("random-write", "fileserver"))
    return hashlib.sha256(outcomes.encode()).hexdigest()[:12]


def _rules_for(name: str, scenario: Scenario, also: tuple[Scenario, ...] = ()) -> RuleSet:
    """The rules that a search makes for it, or for several scenarios."""
    path = DIRECTORY / f"{name}.rules"
    if path.exists():
        return RuleSet.parse(path.read_text())
    bench, plan = SimulatedBench(scenario, OBJECTIVE, also=also), SearchPlan()
    journal = path.with_suffix(".journal")
    begin = "resume" if journal.exists() else "new"
    with Journal(journal, About.of(bench, OBJECTIVE, plan), begin) as kept:
        found = search(Judge(bench, OBJECTIVE, kept, SearchLimits(EVALUATIONS)), plan)
    assert found.best is not None, "a search of some evaluations has a best"
    path.write_text(found.best.observed.text())
    return found.best.observed


def _altered_pieces() -> list[Piece]:
    def piece(
        base: str, change: str, own: Scenario, other: Scenario, also: tuple[Scenario, ...] = ()
    ) -> Piece:
        def run() -> dict[str, Any]:
            bench = SimulatedBench(_again(other), OBJECTIVE)
            (gain,) = gains(bench, OBJECTIVE, [_rules_for(base, own, also)], PAIRS_AGAIN)
            assert gain is not None, "throughput is above zero"
            return {"base": base, "change": change, "gain": gain.mean, "low": gain.low, "high": gain.high}

        return Piece(f"altered {base}: {change}", run)

    server, writer = preset("fileserver"), FIGURE.scenario("figure-3-4")
    found = [piece("fileserver", "none", server, server), piece("figure-3-4", "none", writer, writer)]
    sizes = tuple(with_settings(server, [f"clients.count={count}"]) for count in SIZES)
    found.append(piece("fileserver-2-10", "none", server, server, sizes))
    for change, settings in FILESERVER:
        other = with_settings(server, settings)
        found.append(piece("fileserver", change, server, other))
        found.append(piece("fileserver-2-10", change, server, other, sizes))
    for change, keys in WRITER.items():
        found.append(piece("figure-3-4", change, writer, replace(FIGURE, **keys).scenario("altered")))
    return found


def _altered(found: dict[str, dict[str, Any]]) -> None:
    print("\n## One rule set on altered workloads\n")
    rows = [
        [one["base"], one["change"], percent((one["gain"], one["low"], one["high"]))]
        for one in found.values()
    ]
    table(["rules made for", "change", "gain in throughput (95%)"], rows)


def _workloads() -> Workloads:
    mixed = alterations(ALTERED)
    return Workloads(common_set(), {name: mix.scenario(name) for name, mix in mixed.items()})


def _bootstrapped(budget_s: float) -> bool:
    effort = Effort(SearchPlan(), EVALUATIONS, PAIRS, budget_s=budget_s)

    def tell(step: BootstrapProgress) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{step.what} {step.done}/{step.of} {step.workload}", end="", file=sys.stderr)

    with Library.writing(LIBRARY) as library:
        return bootstrap(library, _workloads(), OBJECTIVE, effort, listener=tell).complete


def _unseen_pieces() -> list[Piece]:
    library = Library.read(LIBRARY)
    everything = _workloads()
    scenarios = {**everything.common, **everything.altered}
    names = sorted(scenarios)
    random.Random(1).shuffle(names)
    digest = hashlib.sha256(LIBRARY.read_bytes()).hexdigest()[:8]

    def piece(fold: int) -> Piece:
        hidden = names[fold::FOLDS]
        return Piece(f"unseen {digest} {fold}", lambda: {"workloads": _fold(library, scenarios, hidden)})

    return [piece(fold) for fold in range(FOLDS)]


def _fold(library: Library, scenarios: dict[str, Scenario], hidden: list[str]) -> list[dict[str, Any]]:
    """What a library that has never seen some workloads chooses for them."""
    chooser = Chooser(library, OBJECTIVE.text, without=hidden)
    found: list[dict[str, Any]] = []
    for name in hidden:
        features = library.workloads[name].values
        predicted = chooser.predicted(features)
        true = {one.rules: library.gain(one.rules, name, OBJECTIVE.text) for one in predicted}
        known = {key: one.gain for key, one in true.items() if one is not None}
        best = max(known, key=lambda key: known[key])
        nearest = next(
            (n for n, _ in chooser.nearest(features) if library.made_for.get((n, OBJECTIVE.text))), ""
        )
        ids = library.made_for.get((nearest, OBJECTIVE.text), [])
        chosen = {str(caution): _choice(predicted, caution) for caution in CAUTIONS}
        asked = sorted({best, *ids, *(one for one in chosen.values() if one is not None)})
        sets = [library.solutions[key].rule_set for key in asked]
        bench = SimulatedBench(_again(scenarios[name]), OBJECTIVE)
        again = dict(zip(asked, gains(bench, OBJECTIVE, sets, PAIRS_AGAIN), strict=True))
        measured = {key: 0.0 if one is None else one.mean for key, one in again.items()}
        found.append(
            {
                "name": name,
                "best": max(0.0, measured[best]),
                "chosen": {key: 0.0 if one is None else measured[one] for key, one in chosen.items()},
                "nearest": measured.get(ids[0], 0.0) if ids else 0.0,
                "predicted": [one.gain for one in predicted if one.rules in known],
                "true": [known[one.rules] for one in predicted if one.rules in known],
            }
        )
    return found


def _choice(predicted: list[Any], caution: float) -> str | None:
    best = max(predicted, key=lambda one: one.low(caution))
    return best.rules if best.low(caution) > 0 else None


def _unseen(found: dict[str, dict[str, Any]]) -> None:
    rows = [one for fold in found.values() for one in fold["workloads"]]
    if not rows:
        return
    print("\n## Unseen workloads\n")
    draw = np.random.default_rng(1)
    samples = [draw.integers(0, len(rows), len(rows)) for _ in range(1000)]

    def spread(figure: Any) -> tuple[float, float, float]:
        values = [figure([rows[at] for at in sample]) for sample in samples]
        low, high = np.quantile(values, (0.025, 0.975))
        return figure(rows), float(low), float(high)

    def kept(of: Any) -> Any:
        return lambda some: sum(of(one) for one in some) / max(sum(one["best"] for one in some), 1e-9)

    def correlation(some: list[dict[str, Any]]) -> float:
        predicted = np.concatenate([one["predicted"] for one in some])
        true = np.concatenate([one["true"] for one in some])
        return float(np.corrcoef(predicted, true)[0, 1])

    out: list[list[str]] = []
    for caution in CAUTIONS:
        share = spread(kept(lambda one, key=str(caution): one["chosen"][key]))
        worst = min(one["chosen"][str(caution)] for one in rows)
        given = sum(one["chosen"][str(caution)] != 0 for one in rows)
        out.append([f"predicted, caution {caution:g}", percent(share), f"{worst:+.1%}", f"{given}"])
    nearest = spread(kept(lambda one: one["nearest"]))
    out.append(
        ["rules of the most alike workload", percent(nearest), f"{min(o['nearest'] for o in rows):+.1%}", "-"]
    )
    table(["choice", "of the best available gain (95%)", "worst", "given rules"], out)
    mean_best = float(np.mean([one["best"] for one in rows]))
    center, low, high = spread(correlation)
    errors = np.concatenate([np.subtract(one["predicted"], one["true"]) for one in rows])
    print(f"{len(rows)} workloads, {len(errors)} pairs; best available gain {mean_best:.1%} on average")
    print(f"correlation of predicted with true gain {center:.3f} ({low:.3f} to {high:.3f})")
    print(
        f"mean absolute error {np.mean(np.abs(errors)):.3f}, "
        f"root mean square {np.sqrt(np.mean(errors**2)):.3f}"
    )


def _again(scenario: Scenario) -> Scenario:
    return msgspec.structs.replace(scenario, seed=scenario.seed + SEED_AGAIN)


if __name__ == "__main__":
    main()
