"""What one request costs through congestion.h, under 29 rules: a reply, and the leaving of the next request.

`make c-library` first. The program is `benchmarks/stream_cost.c`; the rules are those of
`crates/congestion/examples/reply_cost.rs`, with actions that hold no request back.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ascar.rules import INDICATOR_LIST, INFINITY, Action, Interval, Rule, RuleSet

ROOT = Path(__file__).resolve().parent.parent
SPLITS = ((7_000, 7_000, 400), (3_000, 3_000, 250), (11_000, 11_000, 700), (2_000, 8_000, 150))
"""Points at which a rule becomes eight: 29 rules, as most sets of the thesis have at most (3.1.6)."""

Region = tuple[Interval, ...]


def rule_text() -> str:
    """The rules as a file."""
    regions: list[Region] = [tuple(Interval(one.least, INFINITY) for one in INDICATOR_LIST[:3])]
    for point in SPLITS:
        around = next(one for one in regions if all(map(_is_inside, one, point)))
        regions.remove(around)
        regions += [
            tuple(
                _half(interval, at, part >> axis & 1)
                for axis, (interval, at) in enumerate(zip(around, point, strict=True))
            )
            for part in range(8)
        ]
    return RuleSet(tuple(Rule(region, Action(100, 0, 0)) for region in regions)).text()


def _is_inside(interval: Interval, at: int) -> bool:
    return interval.lo < at < interval.hi


def _half(interval: Interval, at: int, upper: int) -> Interval:
    return Interval(at, interval.hi) if upper else Interval(interval.lo, at)


def measure(prefix: Path, folder: Path, batches: int) -> dict[str, dict[str, Any]]:
    """The costs under the original and the extended controller, in nanoseconds a request."""
    program, rules = folder / "stream_cost", folder / "rules.txt"
    source = ROOT / "benchmarks" / "stream_cost.c"
    library = [f"-I{prefix}/include", f"-L{prefix}/lib", "-lascar", f"-Wl,-rpath,{prefix}/lib"]
    subprocess.run(["cc", "-std=c99", "-O2", "-o", program, source, *library], check=True)
    rules.write_text(rule_text(), "utf-8")

    def ran(extended: str) -> dict[str, Any]:
        command = [program, rules, extended, str(batches)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    return {"faithful": ran("0"), "extended": ran("1")}


def main() -> None:
    """Print one JSON document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--prefix", type=Path, default=ROOT / "target" / "c", help="where the library is installed"
    )
    parser.add_argument("--batches", type=int, default=100_000, help="batches of 64 requests")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        costs = measure(words.prefix, Path(folder), words.batches)
    print(json.dumps({"cost": costs, "processors": os.cpu_count()}, indent=2))


if __name__ == "__main__":
    main()
