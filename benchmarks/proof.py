"""What takes hours: kills at a thousand random moments, power cuts, ten million inputs for every parser.

    make proof                 all of it, as far as the budget reaches; run again, it goes on
    make proof SHARE=0.01      a hundredth of it, always the same: CI runs a third of that of the parsers

A proof is a test of the suite, run again and again with other seeds of the moments at which it kills or of
faults, or a parser, fed with other inputs by a fuzzer (`benchmarks/feeding.py`). Tests that compare speeds of
the machine, which a busy one fails, and those that start a cluster again and again are a proof too. What has
passed is one line of the results file. What fails is shown with the command that repeats it, is not recorded,
and makes the exit status 1.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.feeding import FEEDS, Feed, fuzzer
from benchmarks.harness import Benchmark, Piece, build, crate_sources, table

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
CRATES = ROOT / "crates"
PATIENCE_S = 3600.0
MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Proof:
    """Tests that kill, to be passed with many seeds.

    Attributes:
        name: of the proof, and of its rows.
        seeds: so many.
        each: what one seed comes to.
        tests: of pytest, as it names them.
        unit: what `each` counts.
        options: more of pytest's.
        language: of what is tested, "Python" or "Rust".
    """

    name: str
    seeds: int
    each: int
    tests: tuple[str, ...]
    unit: str = "kills"
    options: tuple[str, ...] = ()
    language: str = "Python"

    def command(self, seed: int) -> tuple[list[str], dict[str, str]]:
        """What runs it with a seed, and what it wants in its environment."""
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", str(PATIENCE_S)]
        return [*words, f"--seed={seed}", *self.options, *self.tests], {}

    def passed(self, output: str) -> int:
        """How much passed, by what pytest prints."""
        return self.each if _count(output) and " failed" not in output else 0


class Schedules(Proof):
    """Schedules of faults of the kill switch, by a test of a crate; each seed is the next so many."""

    def command(self, seed: int) -> tuple[list[str], dict[str, str]]:
        words = ["cargo", "test", "--quiet", "--locked", "--package", "ascar-interface", "--test"]
        return [*words, "schedules"], {"FIRST_SEED": str(seed * self.each), "SCHEDULES": str(self.each)}

    def passed(self, output: str) -> int:
        return self.each if "test result: ok. 1 passed" in output else 0


POWER = "tests/power/test_power.py::"
KEEPER = "tests/keeper/test_keeper_crashes.py::"
KILLED = "test_interrupted_or_killed_at_any_moment_no_server_and_no_file_is_left"
PROOFS = (
    Proof("kill a client", 60, 24, (f"{KEEPER}test_a_client_killed_at_any_moment_leaves_nothing",)),
    Proof("kill the keeper", 100, 5, (f"{KEEPER}test_a_killed_keeper_is_cleaned_up_after_by_the_next",)),
    Proof("kill client and keeper", 100, 5, (f"{KEEPER}test_both_killed_at_once_are_cleaned_up_after",)),
    Proof(
        "kill a target",
        100,
        3,
        ("tests/systems/test_localfs.py::test_killed_at_any_moment_everything_is_put_back",),
    ),
    Proof(
        "kill a study",
        134,
        3,
        ("tests/cli/test_localfs.py::test_a_study_that_is_killed_leaves_nothing_and_loses_no_trial",),
    ),
    Proof(
        "kill who writes the history",
        200,
        5,
        ("tests/history/test_kill.py::test_kill_at_random_moments_loses_no_completed_trial",),
    ),
    Proof(
        "kill a load",
        50,
        40,
        ("tests/load/test_load_process.py::test_sigterm_at_any_moment_ends_a_load_and_leaves_nothing",),
    ),
    Proof(
        "kill a study of a program",
        25,
        6,
        ("tests/test_programs.py::test_killed_at_a_moment_everything_is_as_before",),
    ),
    Proof(
        "kill a study of PostgreSQL",
        34,
        3,
        (f"tests/cli/test_postgresql.py::TestPostgreSQLStudy::{KILLED}",),
    ),
    Proof(
        "kill a study of a disk's settings",
        34,
        3,
        ("tests/cli/test_linux.py::test_killed_at_any_moment_the_disk_is_as_before",),
    ),
    Proof(
        "kill a study of a server that people use",
        20,
        11,
        tuple(
            f"tests/systems/test_{kind}_existing.py::test_killed_while_it_changes_settings_everything_is_put_back"
            for kind in ("postgresql", "redis", "mariadb")
        ),
    ),
    Proof(
        "kill what puts a configuration in force on such a server",
        20,
        9,
        (
            "tests/cli/test_apply_server.py::"
            "test_killed_at_any_moment_it_is_in_force_as_a_whole_or_not_at_all",
        ),
    ),
    Proof(
        "kill a study of Redis",
        34,
        3,
        (f"tests/cli/test_redis.py::TestRedisStudy::{KILLED}",),
    ),
    Proof(
        "kill a study of MariaDB",
        34,
        3,
        (f"tests/cli/test_mariadb.py::TestMariaDBStudy::{KILLED}",),
    ),
    Proof(
        "kill a study of RocksDB",
        34,
        3,
        (f"tests/cli/test_rocksdb.py::TestRocksDBStudy::{KILLED}",),
    ),
    Proof(
        "kill a study of Lustre",
        100,
        10,
        ("tests/systems/test_lustre.py::test_random_sequences_that_are_killed_leave_nothing",),
    ),
    Proof(
        "make Cao's configurations on a device",
        10,
        20,  # 5 of each of the four spaces
        (
            "tests/systems/test_localfs_presets.py::"
            "test_configurations_drawn_at_random_are_made_mounted_and_loaded",
        ),
        "configurations",
    ),
    Proof(
        "make Cao's configurations in a node",
        10,
        20,
        (
            "tests/systems/test_localfs_node.py::"
            "test_configurations_drawn_at_random_are_made_mounted_and_loaded_in_a_node",
        ),
        "configurations",
    ),
    Proof(
        "kill a study in a node",
        20,
        2,
        ("tests/systems/test_localfs_node.py::test_a_study_that_is_killed_leaves_nothing",),
    ),
    Schedules("schedules of faults", 5, 20_000, (), "schedules", language="Rust"),
    Proof("compare speeds of the machine", 10, 1, (), "times", ("-m", "paced")),
    Proof("start Ceph clusters", 10, 1, (), "times", ("-m", "cluster")),
    *FEEDS,
    # Minutes each: last, so that a small budget comes to all others.
    Proof("kill a guest's processes", 125, 4, (f"{POWER}test_killed_at_any_moment_all_is_as_before",)),
    Proof(
        "cut the power",
        50,
        4,
        (f"{POWER}test_power_cuts_lose_no_completed_trial_and_leave_nothing",),
        "cuts",
    ),
    Proof(
        "cut it without fsync",
        25,
        8,
        (f"{POWER}test_without_fsync_the_same_cuts_lose_something",),
        "cuts",
        ("--cuts=2",),  # of each kind; a single one is of a program's study alone
    ),
)


class Runner:
    """Runs proofs, and remembers what failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def run(self, proof: Proof | Feed, seed: int) -> dict[str, Any]:
        """One seed of a proof.

        Raises:
            RuntimeError: it failed, or cannot be done here.
        """
        words, more = proof.command(seed)
        begun_s = time.monotonic()
        # What somebody wants of other runs of pytest would change what this one says.
        environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
            if isinstance(proof, Feed):  # a fuzzer ends without cleaning up
                more["TMPDIR"] = scratch
            done = subprocess.run(
                words,
                cwd=ROOT,
                env={**environment, **more},
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        elapsed_s = time.monotonic() - begun_s
        skipped = " skipped" in done.stdout and " passed" not in done.stdout
        passed = proof.passed(done.stdout + done.stderr)
        if done.returncode == 0 and not skipped and passed:
            return {
                "proof": proof.name,
                "seed": seed,
                "passed": passed,
                "elapsed_s": round(elapsed_s, 2),
                "figures": _figures(done.stdout),
            }
        said = f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
        if skipped:
            raise RuntimeError(f"skipped here: {said.strip().splitlines()[-1]}")
        settings = " ".join(f"{name}={value}" for name, value in more.items())
        self.failed.append(f"{proof.name}, seed {seed}: {settings} {shlex.join(words)}")
        raise RuntimeError(f"it failed\n{said}")


def _count(text: str) -> int:
    """How many tests passed, by what pytest or cargo prints."""
    words = text.replace(",", " ").replace(";", " ").split()
    return sum(int(number) for number, what in pairwise(words) if what == "passed" and number.isdigit())


def _figures(text: str) -> dict[str, int]:
    """What the tests have counted themselves."""
    told = re.search(r"^figures (\{.*\})$", text, re.MULTILINE)
    return json.loads(told[1]) if told else {}


def pieces(share: float, runner: Runner) -> Iterator[Piece]:
    """All of it in an order in which each proof comes to something soon, or a share of each, one at least."""
    of_rust = build(*sorted(CRATES.rglob("*.rs")))
    feeding = [*sorted((ROOT / "tests" / "fuzz").glob("*.py"))]
    of_python = build(*crate_sources("python", "ascard"), *feeding, *sorted((ROOT / "python").rglob("*.py")))
    for seed in range(max(proof.seeds for proof in PROOFS)):
        for proof in PROOFS:
            if seed < math.ceil(proof.seeds * share):
                of_what = of_rust if proof.language == "Rust" else of_python
                yield Piece(f"{proof.name} {seed}", partial(runner.run, proof, seed), of_what)


def show(found: dict[str, dict[str, Any]], share: float) -> None:
    """A row for each proof."""
    seeds, elapsed_s = defaultdict[str, int](int), defaultdict[str, float](float)
    passed, figures = defaultdict[str, int](int), defaultdict[str, Counter[str]](Counter)
    for one in found.values():
        seeds[one["proof"]] += 1
        elapsed_s[one["proof"]] += one["elapsed_s"]
        passed[one["proof"]] += one["passed"]
        figures[one["proof"]].update(one.get("figures", {}))
    rows: list[tuple[str, ...]] = []
    for proof in PROOFS:
        name, wanted = proof.name, math.ceil(proof.seeds * share)
        rows.append(
            (
                name,
                f"{seeds[name]} of {wanted}",
                ", ".join(
                    (f"{passed[name]} {proof.unit}", *(f"{n} {what}" for what, n in figures[name].items()))
                ),
                f"{elapsed_s[name]:.0f} s",
            )
        )
    table(("proof", "seeds passed", "that is", "took"), rows)


def main() -> int:
    """The exit status: 0 when nothing failed."""
    parser = Benchmark.parser(__doc__ or "", "24h")
    parser.add_argument("--share", type=float, default=1.0, help="of the seeds of each proof (default all)")
    given = parser.parse_args()
    if not 0 < given.share <= 1:
        parser.error(f"--share {given.share}: must be above 0 and at most 1")
    benchmark, runner = Benchmark.of(given), Runner()
    fuzzer()  # minutes the first time, which are no part of the budget
    found = benchmark.run(list(pieces(given.share, runner)))
    show(found, given.share)
    for failed in runner.failed:
        print(f"FAILED {failed}")
    print(json.dumps({"passed": len(found), "failed": len(runner.failed)}))
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
