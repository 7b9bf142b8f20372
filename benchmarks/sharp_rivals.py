"""Rules made by machine against other congestion control, each the same everywhere, on Table 3.4's workloads.

    python -m benchmarks.sharp_rivals --budget 5min

The contest of `ascar sharp contest` over all workloads: each under the rule set that comes with ascar for it
(none where none was found to be better than the scenario as it is), and under AIMD, Vegas, Gradient2, Envoy's
gradient controller, Copa and IOPathTune, run by run on the same 40 seeds, which no search has seen. Two
scores: total throughput (BTIO: its own speed), and eq. 3.1 with alpha = 1 (BTIO, for which it has no meaning,
left out).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.sharp.contest import CONTROLLERS, shipped_rules, under_controller

from . import sharp_rows as rows
from .harness import Benchmark, Piece, gain, signed, table

if TYPE_CHECKING:
    from ascar.sharp import RuleSet
    from ascar.simulation import Scenario

RUNS = 40
WORSE_MAX = -0.03


def main() -> None:
    """Run, compare, print."""
    benchmark = Benchmark.from_arguments(str(__doc__), "5min")
    benchmark.build = rows.behaviour()
    pieces = [
        Piece(f"{row.name} {who}", lambda r=row, w=who: _runs(r, w), _build(benchmark.build, row, who))
        for row in rows.ROWS
        for who in ("rules", "even", "none", *CONTROLLERS)
    ]
    found = benchmark.run(pieces)
    for ours, figure, title in (("rules", "total", "Total throughput"), ("even", "even", "tp - stdev")):
        print(f"\n{title}: gain of the rules over each (95%)\n")
        _print(found, ours, figure)


def _runs(row: rows.Row, who: str) -> dict[str, Any]:
    outcomes = rows.measured(_scenario(row, who), RUNS)
    figures = {"total": rows.pairs(outcomes, row.figure), "even": rows.pairs(outcomes, "even")}
    return {"figures": figures}


def _build(build: str, row: rows.Row, who: str) -> str:
    """Results of other rules are not used."""
    rules = _rules(row, who)
    return build if rules is None else f"{build} {hashlib.sha256(rules.text().encode()).hexdigest()[:8]}"


def _rules(row: rows.Row, who: str) -> RuleSet | None:
    return shipped_rules(row.name, even=who == "even") if who in ("rules", "even") else None


def _scenario(row: rows.Row, who: str) -> Scenario:
    if who in CONTROLLERS:
        return under_controller(row.scenario, who)
    rules = _rules(row, who)
    return row.scenario if rules is None else rows.under(row.scenario, rules.text())


def _print(found: dict[str, Any], ours: str, figure: str) -> None:
    lines: list[list[str]] = []
    ahead = behind = even = 0
    worst = np.inf
    for row in rows.ROWS:
        if figure == "even" and row.figure != rows.TOTAL:
            continue
        keys = [f"{row.name} {who}" for who in (ours, "none", *CONTROLLERS)]
        if not all(key in found for key in keys):
            continue
        own, none, *theirs = (found[key]["figures"][figure] for key in keys)
        gains = [gain(own, other) for other in theirs]
        best = min(gains)
        worst = min(worst, best[0])
        verdict = "ahead of all" if best[1] > 0 else "behind one" if best[2] < 0 else "level with the best"
        ahead, behind, even = (
            ahead + (best[1] > 0),
            behind + (best[2] < 0),
            even + (best[1] <= 0 <= best[2]),
        )
        lines.append(
            [
                row.name,
                f"{np.mean(own):.1f}",
                signed(gain(own, none)),
                *(signed(one) for one in gains),
                verdict,
            ]
        )
    table(["workload", "rules", "window 8", *CONTROLLERS, ""], lines)
    print(f"\nahead of all rivals on {ahead}, level with the best on {even}, behind on {behind}; ", end="")
    print(f"against the best rival of a workload at worst {worst:+.1%}")


if __name__ == "__main__":
    main()
