"""Parsers fed with inputs that coverage guides: a proof of `make proof` for each of them.

`crates/fuzz` feeds those of Rust by libFuzzer, `tests/fuzz` those of Python by Atheris. A parser fails when
it panics, raises what it should not, takes longer than 20 seconds, or more than 256 MiB. What reached new
code is kept in `build/fuzz`, where the next seed goes on from; the input of a failure is written there too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
GROWN = ROOT / "build" / "fuzz"
CORPORA = {"Rust": ROOT / "crates" / "fuzz" / "corpus", "Python": ROOT / "tests" / "fuzz" / "corpus"}
TIMEOUT_S = 20
MEMORY_MIB = 256
_COVERAGE = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
)
_EXECUTED = re.compile(r"stat::number_of_executed_units: +([0-9]+)")


@dataclass(frozen=True, slots=True)
class Feed:
    """A parser, fed with many seeds.

    Attributes:
        name: the proof's name.
        language: "Rust" or "Python".
        parser: the parser's name, which is that of its corpus.
        seeds: how many.
        each: inputs of one seed.
    """

    name: str
    language: str
    parser: str
    seeds: int
    each: int
    unit: str = "inputs"

    def command(self, seed: int) -> tuple[list[str], dict[str, str]]:
        """What runs it with a seed, and what it wants in its environment."""
        grown = GROWN / self.language.lower() / self.parser
        grown.mkdir(parents=True, exist_ok=True)
        options = [
            f"-runs={self.each}",
            f"-seed={seed + 1}",  # libFuzzer draws one itself where it is 0
            f"-timeout={TIMEOUT_S}",
            "-print_final_stats=1",
            f"-artifact_prefix={GROWN}/failure-{self.parser}-",
            str(grown),
            str(CORPORA[self.language] / self.parser),
        ]
        if self.language == "Rust":
            return [str(fuzzer()), f"-rss_limit_mb={MEMORY_MIB}", *options], {"PARSER": self.parser}
        return [sys.executable, str(ROOT / "tests" / "fuzz" / "feed.py"), self.parser, *options], {}

    def passed(self, output: str) -> int:
        """How many inputs passed, by what the fuzzer prints."""
        found = _EXECUTED.search(output)
        return int(found[1]) if found else 0


@cache
def fuzzer() -> Path:
    """The program that feeds the parsers of Rust, built if need be.

    Raises:
        subprocess.CalledProcessError: it cannot be built.
    """
    told = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = told.partition("host: ")[2].split()[0]
    folder = ROOT / "target" / "fuzz"
    command = ["cargo", "build", "--quiet", "--locked", "--profile", "fuzz", "--package", "ascar-fuzz"]
    environment: Mapping[str, str] = {**os.environ, "RUSTFLAGS": " ".join(_COVERAGE)}
    # With a target named, what runs while it is built (macros, build scripts) is not instrumented.
    command += ["--features", "libfuzzer", "--target", host, "--target-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder / host / "fuzz" / "ascar-fuzz"


def _feeds(language: str, seeds: int, each: int) -> tuple[Feed, ...]:
    parsers = sorted(path.name for path in CORPORA[language].iterdir())
    return tuple(Feed(f"feed {language} {one}", language, one, seeds, each) for one in parsers)


FEEDS = (*_feeds("Rust", 1000, 10_000), *_feeds("Python", 100, 1000))
