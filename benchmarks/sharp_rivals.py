"""Rules, the best static setting, and published controllers, each tuned, on Table 3.4's workloads.

    python -m benchmarks.sharp_rivals --budget 30min
    python -m benchmarks.sharp_rivals --only '^random-write@linux-6'

For each workload, with both elevators that servers can have: rules are searched as `ascar sharp search`
does, with the bound that no group of threads gets less than 90% of what it gets without them. AIMD, CUBIC,
BBR (first and third version), Vegas, Gradient2 and Copa run as published, and with settings that ascar's
optimizer found with 200 runs under the same bound; so does a static window and gap. All then run on the
same 20 seeds, which nothing was chosen by.

Beside the table's workloads, clients that make, stat and remove files: all of this for their streams of
metadata operations (Li, section 3.1.4), which no setting of the data's streams touches.

Tables: total throughput (BTIO: its own speed; operations on metadata) as the gain over the scenario as it is,
with 99% intervals; then what the rules change besides: deviation, 99th percentile of the response time (from
being asked for), Jain's index, the group that loses most.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ascar.pilot.turns import Gain
from ascar.render import estimate
from ascar.sharp import objective_of
from ascar.sharp.contest import under_controller
from ascar.sharp.metric_bounds import bounds_of
from ascar.sharp.tuned_controllers import STATIC, TUNABLE, tune_controller, under_settings
from ascar.simulation import with_storage
from ascar.simulation.groups import group_rates

from . import sharp_rows as rows
from .harness import Benchmark, Piece, table

if TYPE_CHECKING:
    from ascar.simulation import Scenario

STORAGE = ("thesis-2014", "linux-6")
RUNS = 20
TUNING_RUNS, SEARCH_RUNS = 200, 1_000
LEVEL = 0.01
FIGURES = ("stdev_mb_per_s", "latency_ms_p99", "jain_index")
_METADATA_FIGURES = (None, "metadata_latency_ms_p99", "jain_index")
ROWS = (*rows.ROWS, rows.Row("mdtest", 0, 0, "metadata_operations_per_s", "metadata"))


def main() -> None:
    """Search, tune, run, print."""
    benchmark = Benchmark.from_arguments(str(__doc__), "30min")
    benchmark.build = rows.behaviour()
    cases = [(row, storage) for storage in STORAGE for row in ROWS]
    found = benchmark.run(
        [
            piece
            for row, storage in cases
            for piece in (
                Piece(_key(row, storage, "search"), lambda r=row, s=storage: _searched(r, s)),
                *(
                    Piece(
                        _key(row, storage, f"tune {name}"), lambda r=row, s=storage, n=name: _tuned(r, s, n)
                    )
                    for name in (STATIC, *TUNABLE)
                ),
            )
        ]
    )
    found |= benchmark.run(
        [
            Piece(
                _key(row, storage, f"runs {who}"),
                lambda scenario=scenario, row=row: _runs(scenario, row),
                f"{benchmark.build} {hashlib.sha256(scenario.to_json().encode()).hexdigest()[:12]}",
            )
            for row, storage in cases
            for who, scenario in _contenders(row, storage, found).items()
        ]
    )
    for storage in STORAGE:
        print(f"\nElevator {storage}: gain over the scenario as it is (99%)\n")
        _print_gains(found, storage)
        print("\nWhat the rules change besides (99%)\n")
        _print_effects(found, storage)


def _key(row: rows.Row, storage: str, what: str) -> str:
    return f"{row.name}@{storage} {what}"


def _searched(row: rows.Row, storage: str) -> dict[str, Any]:
    scenario = with_storage(row.scenario, storage)
    rules, runs, stopped = rows.bound(
        [scenario], objective_of(row.most), SEARCH_RUNS, followers=row.followers
    )
    return {"rules": rules, "runs": runs, "stopped": stopped}


def _tuned(row: rows.Row, storage: str, name: str) -> dict[str, Any]:
    scenario = with_storage(row.scenario, storage)
    found = tune_controller(
        [scenario],
        name,
        objective_of(row.most),
        TUNING_RUNS,
        bounds=bounds_of(None),
        followers=row.followers,
    )
    return {"settings": dict(found.settings), "runs": found.runs}


def _contenders(row: rows.Row, storage: str, found: dict[str, Any]) -> dict[str, Scenario]:
    """Who takes part, as far as it is known."""
    scenario = with_storage(row.scenario, storage)
    rivals = {name: under_controller(scenario, name, row.followers) for name in TUNABLE}
    all_of_them = {"as it is": scenario} | rivals
    rules = found.get(_key(row, storage, "search"))
    if rules is not None:
        all_of_them["rules"] = rows.under(scenario, rules["rules"], row.followers)
    for name in (STATIC, *TUNABLE):
        tuned = found.get(_key(row, storage, f"tune {name}"))
        if tuned is not None:
            all_of_them[f"{name}, tuned"] = under_settings(scenario, name, tuned["settings"], row.followers)
    return all_of_them


def _figures(row: rows.Row) -> tuple[str | None, ...]:
    """What the rules change besides; None: it is not told of such streams."""
    return FIGURES if row.followers is None else _METADATA_FIGURES


def _runs(scenario: Scenario, row: rows.Row) -> dict[str, Any]:
    outcomes = rows.measured(scenario, RUNS)
    names = [row.figure, *(name for name in _figures(row) if name is not None)]
    groups = [
        group_rates(one) if row.followers is None else [one.metadata_operations_per_s] for one in outcomes
    ]
    return {"figures": {name: [one.figure(name) for one in outcomes] for name in names}, "groups": groups}


def _gain(found: dict[str, Any], row: rows.Row, storage: str, who: str) -> Gain | None:
    own, before = (found.get(_key(row, storage, f"runs {one}")) for one in (who, "as it is"))
    if own is None or before is None:
        return None
    return Gain.of(before["figures"][row.figure], own["figures"][row.figure], "maximize", LEVEL)


def _print_gains(found: dict[str, Any], storage: str) -> None:
    lines: list[list[str]] = []
    for row in ROWS:
        gains = {who: _gain(found, row, storage, who) for who in _contenders(row, storage, found)}
        known = {
            who: gain for who, gain in gains.items() if gain is not None and gain.gain_relative is not None
        }
        if "rules" not in known or f"{STATIC}, tuned" not in known:
            continue
        plain = max((name for name in TUNABLE if name in known), key=lambda name: known[name].estimate)
        tuned = max(
            (f"{name}, tuned" for name in TUNABLE if f"{name}, tuned" in known),
            key=lambda name: known[name].estimate,
        )
        static, rules = known[f"{STATIC}, tuned"], known["rules"]
        runs = found[_key(row, storage, "search")]["runs"]
        lines.append(
            [
                row.name,
                _shown(static),
                f"{_shown(rules)}, {runs} runs",
                f"{plain} {_shown(known[plain])}",
                f"{tuned.partition(',')[0]} {_shown(known[tuned])}",
                f"{rules.estimate / static.estimate:.2f}" if static.estimate >= 0.1 else "",
            ]
        )
    heads = [
        "workload",
        "best static",
        "rules",
        "best rival as published",
        "best rival tuned",
        "rules over static",
    ]
    table(heads, lines)


def _print_effects(found: dict[str, Any], storage: str) -> None:
    lines: list[list[str]] = []
    for row in ROWS:
        own, before = (found.get(_key(row, storage, f"runs {one}")) for one in ("rules", "as it is"))
        if own is None or before is None:
            continue
        cells = [
            "-"
            if name is None
            else _shown(Gain.of(before["figures"][name], own["figures"][name], "maximize", LEVEL))
            for name in _figures(row)
        ]
        groups = zip(zip(*before["groups"], strict=True), zip(*own["groups"], strict=True), strict=True)
        changes = [Gain.of(without, under, "maximize", LEVEL) for without, under in groups]
        lines.append([row.name, *cells, _shown(min(changes, key=lambda one: one.estimate))])
    table(["workload", "deviation", "p99 from ask", "Jain's index", "group that loses most"], lines)


def _shown(gain: Gain) -> str:
    return estimate(gain.gain_relative, gain.gain_low, gain.gain_high)


if __name__ == "__main__":
    main()
