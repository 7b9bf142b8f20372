"""Rules made with 5 clients and 4 servers, deployed as they are on 500 clients and 400 or 100 servers.

    python -m benchmarks.sharp_scale --budget 20min

The rule sets that come with the program, on clusters a hundred times as large, against the scenario as it is
(window 8) and the static window and gap that was best with 5 clients and 4 servers; run by run on the same
seeds. 500 clients on 100 servers press four times as hard on each as 5 on 4. "rules" were made with 5 clients
and 4 servers alone, "rules of several sizes" with 5, 10 and 20 clients on 4 servers (`--also clients.count=10
--also clients.count=20`): of three searches what was best there on 10 further seeds.

    python -m benchmarks.sharp_scale --budget 0s --ship    write these into the package
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.sharp.rulesets import RULESETS, ruleset
from ascar.simulation import with_control, with_settings

from . import sharp_rows as rows
from .harness import Benchmark, Piece, gain, present, signed, table
from .sharp_table34 import CHOICE_FIRST, CHOICE_SEEDS, SHIPPED

if TYPE_CHECKING:
    from ascar.simulation import Scenario

SEEDS = 8
SECONDS = 20
MADE_WITH = (5, 10, 20)
SEARCHES = 3
RUNS_MAX = 600


@dataclass(frozen=True, slots=True)
class Size:
    """Of a cluster."""

    clients: int
    servers: int

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.clients} x {self.servers}"


SIZES = (Size(5, 4), Size(500, 400), Size(500, 100))
WHO = ("none", "static", "rules", "sizes")
LOADS = tuple(row for row in rows.ROWS if {row.name, f"{row.name}-sizes"} <= set(RULESETS))


def main() -> None:
    """Run and print."""
    ship = "--ship" in sys.argv
    sys.argv = [one for one in sys.argv if one != "--ship"]
    benchmark = Benchmark.from_arguments(str(__doc__), "20min")
    benchmark.build = rows.behaviour()
    made = benchmark.run(
        [
            Piece(f"{row.name} made {number}", lambda r=row, n=number: _made(r, n))
            for number in range(SEARCHES)
            for row in LOADS
        ]
    )
    if ship:
        _ship(made)
    static = benchmark.run([Piece(f"{row.name} static", lambda r=row: _best_static(r)) for row in LOADS])
    pieces: list[Piece] = []
    for size in SIZES:
        for row in LOADS:
            if f"{row.name} static" not in static:
                continue  # the budget ended before its static setting was found
            for who in WHO:
                pieces += [
                    Piece(
                        f"{row.name} {size.name} {who} {seed}",
                        lambda r=row, z=size, w=who, s=seed: _run(static, r, z, w, s),
                        f"{benchmark.build} {_digest(row, who)}".strip(),
                    )
                    for seed in range(SEEDS)
                ]
    found = benchmark.run(pieces)
    lines: list[list[str]] = []
    for row in LOADS:
        line = [row.name]
        for size in SIZES:
            runs = {who: _all(found, row, size, who) for who in WHO}
            if not all(len(one) == SEEDS for one in runs.values()):
                line += ["-"] * 4
                continue
            line += [
                f"{np.mean(runs['none']):,.0f}",
                signed(gain(runs["rules"], runs["none"])),
                signed(gain(runs["sizes"], runs["none"])),
                signed(gain(runs["static"], runs["none"])),
            ]
        lines.append(line)
    heads = [
        f"{size.name}: {what}"
        for size in SIZES
        for what in ("MB/s as it is", "rules (95%)", "sizes (95%)", "static (95%)")
    ]
    table(["workload", *heads], lines)


def _best_static(row: rows.Row) -> dict[str, Any]:
    window, tau_us = rows.static(row)
    return {"window": window, "tau_us": tau_us}


def _made(row: rows.Row, number: int) -> dict[str, Any]:
    """Rules of several sizes by one search, and what they are worth on these sizes."""
    scenarios = [with_settings(row.scenario, [f"clients[0].count={count}"]) for count in MADE_WITH]
    text = rows.sized(scenarios, row.most, number, RUNS_MAX)
    worth: list[float] = []
    for one in scenarios:
        ours, theirs = (
            np.mean(rows.pairs(rows.measured(scenario, CHOICE_SEEDS, CHOICE_FIRST), row.figure))
            for scenario in (rows.under(one, text), one)
        )
        worth.append(float(ours / theirs - 1))
    return {"rules": text, "worth": worth}


def _ship(made: dict[str, dict[str, Any]]) -> None:
    for row in LOADS:
        own = [one for key, one in made.items() if key.startswith(f"{row.name} made ")]
        if own:
            best = max(own, key=_worth)
            (SHIPPED / f"{row.name}-sizes.rules").write_text(best["rules"])
            print(row.name, len(own), [f"{one:+.1%}" for one in best["worth"]])


def _worth(made: dict[str, Any]) -> float:
    return sum(made["worth"])


def _digest(row: rows.Row, who: str) -> str:
    """Of the rules: results of others are not used."""
    if who not in ("rules", "sizes"):
        return ""
    name = row.name if who == "rules" else f"{row.name}-sizes"
    return hashlib.sha256(ruleset(name).text().encode()).hexdigest()[:8]


def _run(static: dict[str, Any], row: rows.Row, size: Size, who: str, seed: int) -> dict[str, Any]:
    scenario = _sized(row, size)
    if who in ("rules", "sizes"):
        name = row.name if who == "rules" else f"{row.name}-sizes"
        scenario = rows.under(scenario, ruleset(name).text())
    elif who == "static":
        point = static[f"{row.name} static"]
        scenario = with_control(scenario, window=point["window"], tau_us=point["tau_us"])
    (outcome,) = rows.measured(scenario, 1, rows.FRESH + seed)
    return {"total": outcome.figure(row.figure)}


def _sized(row: rows.Row, size: Size) -> Scenario:
    changes = [
        f"clients[0].count={size.clients}",
        f"servers[0].count={size.servers}",
        f"duration_s={SECONDS}",
    ]
    return with_settings(row.scenario, changes)


def _all(found: dict[str, Any], row: rows.Row, size: Size, who: str) -> list[float]:
    keys = [f"{row.name} {size.name} {who} {seed}" for seed in range(SEEDS)]
    return [one["total"] for one in present(found, keys)]


if __name__ == "__main__":
    main()
