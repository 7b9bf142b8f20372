"""What the benchmarks share: a budget of time, results that a later run goes on from, intervals, tables.

A benchmark is a list of pieces of work, each with a key. What a piece found is one line of its results
file; a run carries out the pieces that have no line yet until its budget is over, and then shows what all
lines say. Lines of another build of the program are left alone and not used; with `--recorded` nothing is
measured, and the newest line of each piece is shown, of whichever build, with the days on which they were.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import hashlib
import importlib.util
import json
import math
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
Estimate = tuple[float, float, float]
"""A value with the ends of its 95% interval, which are nan where there is none."""
Found = dict[str, dict[str, Any]]
"""What the pieces found, by their keys."""
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """`90s`, `10min`, `1h`: seconds.

    Raises:
        argparse.ArgumentTypeError: it is none of these.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *(s|min|h)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a time such as 90s, 10min or 1h")
    return float(found[1]) * _UNITS[found[2]]


def build(*files: Path) -> str:
    """A short name of a build, of the compiled half where no files are named: builds do not mix."""
    contents = b"".join(file.read_bytes() for file in files or crate_sources("python"))
    return hashlib.sha256(contents).hexdigest()[:12]


def crate_sources(*names: str) -> list[Path]:
    """What crates are compiled from: their sources, those of the crates they need, and all versions.

    Two machines compile different bytes from the same sources, and go on from each other's results.
    """
    waiting, crates = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name in crates:
            continue
        crates.add(name)
        needs = tomllib.loads((ROOT / "crates" / name / "Cargo.toml").read_text()).get("dependencies", {})
        waiting += [one.removeprefix("ascar-") for one in needs if one.startswith("ascar-")]
    folders = [ROOT / "crates" / name for name in sorted(crates)]
    files = [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]
    sources = [file for file in files if not {"tests", "examples"} & set(file.relative_to(ROOT).parts)]
    lists = [ROOT / "python/ascar/catalogues/linux.toml"] if "keeper" in crates else []
    return [ROOT / "Cargo.toml", ROOT / "Cargo.lock", *sources, *lists]


def sources(*names: str, within: tuple[str, ...]) -> str:
    """The same of modules and of all that they import: for work that needs nothing of the compiled half.

    Args:
        names: of modules.
        within: imports are followed into modules whose names begin so.
    """
    waiting, texts = list(names), dict[str, bytes]()
    while waiting:
        name = waiting.pop()
        found = importlib.util.find_spec(name)
        if name in texts or found is None or found.origin is None:
            continue
        texts[name] = Path(found.origin).read_bytes()
        imports = (one for one in ast.walk(ast.parse(texts[name])) if isinstance(one, ast.ImportFrom))
        waiting += [one.module for one in imports if one.module and one.module.startswith(within)]
    return hashlib.sha256(b"".join(texts[name] for name in sorted(texts))).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of work.

    Attributes:
        key: its name, unique in the benchmark.
        run: does it; what it returns can be written as JSON. A RuntimeError says why it cannot be done here.
        build: of what does it, see `sources`; None: the benchmark's.
    """

    key: str
    run: Callable[[], dict[str, Any]]
    build: str | None = None


@dataclass(slots=True)
class Benchmark:
    """One benchmark's run.

    Attributes:
        budget_s: no piece is begun later than this.
        path: of the results file, JSON lines.
        only: the keys that are wanted match this pattern.
        build: lines of other builds are not used.
        recorded: nothing is measured, and lines of every build are used.
    """

    budget_s: float
    path: Path
    only: re.Pattern[str] = re.compile("")
    build: str = field(default_factory=build)
    recorded: bool = False
    _found: dict[tuple[str, str], dict[str, Any]] = field(
        default_factory=dict[tuple[str, str], "dict[str, Any]"]
    )
    _shown: Found = field(default_factory=dict[str, "dict[str, Any]"])

    @classmethod
    def from_arguments(cls, document: str, budget: str) -> Benchmark:
        """Read `--budget`, `--results`, `--only`, `--again` and `--recorded` from the command line."""
        return cls.of(cls.parser(document, budget).parse_args())

    @staticmethod
    def parser(document: str, budget: str) -> argparse.ArgumentParser:
        """For the command line of a benchmark that takes more than these options."""
        name = Path(sys.argv[0]).stem
        parser = argparse.ArgumentParser(
            description=document, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument(
            "--budget", type=seconds, default=seconds(budget), help=f"time to spend (default {budget})"
        )
        parser.add_argument("--results", type=Path, default=RESULTS / f"{name}.jsonl", help="results file")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--again", action="store_true", help="begin anew: forget earlier results")
        which.add_argument(
            "--recorded", action="store_true", help="measure nothing: show the newest results, of every build"
        )
        parser.add_argument("--only", type=re.compile, default="", help="pattern of the pieces to carry out")
        return parser

    @classmethod
    def of(cls, given: argparse.Namespace, of_what: str | None = None) -> Benchmark:
        """A benchmark as its command line wants it.

        Args:
            given: by the parser.
            of_what: is measured, see `build`; None: the compiled half.
        """
        for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell's `&` has made it deaf
            signal.signal(number, signal.default_int_handler)
        given.results.parent.mkdir(parents=True, exist_ok=True)
        if given.again:
            given.results.unlink(missing_ok=True)
        only, what = re.compile(given.only), of_what or build()
        benchmark = cls(given.budget, given.results, only, what, recorded=given.recorded)
        if given.recorded:
            atexit.register(benchmark.tell_days)
        return benchmark

    def run(self, pieces: Iterable[Piece]) -> Found:
        """Carry out what has no result yet, as far as the budget reaches; all results so far by key."""
        wanted = list(pieces)
        self._read()
        if self.recorded:
            newest = {key: found for (key, _), found in self._found.items()}
            shown = {one.key: newest[one.key] for one in wanted if one.key in newest}
            self._shown |= shown
            return shown
        waiting = [one for one in wanted if self._of(one) not in self._found and self.only.search(one.key)]
        start_s = time.monotonic()
        with self.path.open("a") as file:
            for done, piece in enumerate(waiting):
                spent_s = time.monotonic() - start_s
                if spent_s >= self.budget_s:
                    self._say(f"the budget is over: {len(waiting) - done} of {len(wanted)} pieces are left")
                    break
                left_s = spent_s / done * (len(waiting) - done) if done else math.nan
                self._say(f"{len(wanted) - len(waiting) + done}/{len(wanted)} {piece.key}{_left(left_s)}")
                try:
                    found = piece.run()
                except RuntimeError as error:
                    print(f"\n{piece.key} is left out: {error}", file=sys.stderr)
                    continue
                key, build = self._of(piece)
                today = datetime.now(UTC).date().isoformat()
                file.write(json.dumps({"key": key, "build": build, "day": today, **found}) + "\n")
                file.flush()
                self._found[key, build] = found
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        return {one.key: self._found[self._of(one)] for one in wanted if self._of(one) in self._found}

    def _of(self, piece: Piece) -> tuple[str, str]:
        return piece.key, self.build if piece.build is None else piece.build

    def _read(self) -> None:
        if not self.path.exists():
            return
        for line in self.path.read_text().splitlines():
            try:
                found = json.loads(line)
            except json.JSONDecodeError:
                continue  # the run that wrote it was cut off
            which = found["key"], found.get("build", "")
            self._found.pop(which, None)  # the newest line comes last
            self._found[which] = found

    def tell_days(self) -> None:
        """Print on which days, and by how many builds, was measured what is shown as recorded."""
        days = sorted({found.get("day", "a day that was not recorded") for found in self._shown.values()})
        builds = len({found.get("build", "") for found in self._shown.values()})
        when = f", on {', '.join(days)}, by builds: {builds}" if days else ""
        print(f"measured before: {len(self._shown)} pieces{when}")

    def _say(self, text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif "budget" in text:
            print(text, file=sys.stderr)


def _left(left_s: float) -> str:
    if not math.isfinite(left_s):
        return ""
    return f", about {left_s:.0f} s left" if left_s < 90 else f", about {left_s / 60:.0f} min left"


def called(*words: str | Path) -> str:
    """What a command printed that must succeed.

    Raises:
        RuntimeError: it failed; the message has its words and the end of what it said.
    """
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()[-300:]}")
    return done.stdout


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def present(found: Found, keys: Iterable[str]) -> list[dict[str, Any]]:
    """The results of the pieces that have one, in the order of their keys."""
    return [found[key] for key in keys if key in found]


def batches(found: Found, name: str) -> list[dict[str, Any]]:
    """The results of the pieces whose keys are the name and the number of a batch."""
    heads = {key: key.rpartition(" ") for key in found}
    return [found[key] for key, (head, _, at) in heads.items() if at.isdigit() and head.rstrip(",") == name]


def mean(values: Sequence[float]) -> Estimate:
    """A mean with its 95% t interval."""
    return t_interval(float(np.mean(values)), values)


def t_interval(center: float, values: Sequence[float]) -> Estimate:
    """An estimate with the 95% t interval of the mean of these values."""
    if len(values) < 2:
        return center, math.nan, math.nan
    half = float(stdtrit(len(values) - 1, 0.975)) * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return center, center - half, center + half


def gain(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Relative gain of the mean over that of others, run by run on the same seeds, with a 95% t interval."""
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    center, low, high = mean((a - b).tolist())
    whole = float(abs(b.mean()))
    return center / whole, low / whole, high / whole


def share_of(gained: Sequence[float], possible: Sequence[float]) -> Estimate:
    """Sum of what was gained over that of what was possible, paired; 95% interval by the delta method."""
    a, b = np.asarray(gained, float), np.asarray(possible, float)
    whole = float(b.mean())
    center = float(a.mean()) / whole
    return t_interval(center, ((a - center * b) / whole).tolist())


def ratio(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """The geometric mean of paired ratios with its 95% t interval."""
    logs = np.log(np.asarray(above, float)) - np.log(np.asarray(below, float))
    center, low, high = mean(logs.tolist())
    return math.exp(center), math.exp(low), math.exp(high)


def percent(estimate: Estimate, digits: int = 1, sign: str = "") -> str:
    """`95.1% (94.0 to 96.0)`; the interval is left out where there is none."""
    center, low, high = (f"{100 * value:{sign}.{digits}f}" for value in estimate)
    if math.isnan(estimate[0]):
        return "-"
    return f"{center}%" if math.isnan(estimate[1]) else f"{center}% ({low} to {high})"


def signed(estimate: Estimate, digits: int = 1) -> str:
    """`+5.1% (+4.0 to +6.2)`."""
    return percent(estimate, digits, "+")


def number(estimate: Estimate) -> str:
    """`12.3 (11.9 to 12.7)`, to three digits; the interval is left out where there is none."""
    center, low, high = (digits(value) for value in estimate)
    return center if math.isnan(estimate[1]) else f"{center} ({low} to {high})"


def digits(value: float) -> str:
    """A number to three digits, or whole where it has more."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)
