"""A server tuned by ascar, and by what its users would do instead, on the same server with the same time.

    python -m benchmarks.server_rivals --budget 3h        (root)
    python -m benchmarks.server_rivals --only 'postgresql/tpcb/search/optuna'

PostgreSQL and MariaDB in bounded memory, each with at least twice as much data, on a volume of limited speed,
under two loads each: short transactions and sorts, mixed transactions and writes. Optuna's TPE, SMAC3 and
MLOS have so many trials of so long a load, of which the default is the first; `ascar tune` has the time that
they took, its verification included. All have the same space, in which nothing weakens a guarantee, and start
each trial on a clone of the same files. The advice of pgtune, TuneD's profile and MySQLTuner takes no time.
Then everything that was recommended runs in turns with the default, until each interval is at most +-5% wide
or each had `--limit` of runs.

The table: throughput; the gain over the default; the gain that was reported before, over the true one; how
ascar stands to each (level: the interval of the ratio within +-5%). Intervals are always valid, 95% each.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ascar.errors import AscarError
from ascar.history import History
from ascar.pilot.turns import mean_at_any_time
from ascar.space import Guarantee
from ascar.toml import toml_text

from .harness import Benchmark, Piece, build, crate_sources, number, seconds, signed, table
from .server_rivals_mariadb import RivalMariaDB
from .server_rivals_peers import PEERS, searched
from .server_rivals_postgresql import RivalPostgreSQL
from .server_rivals_testbed import RivalServer, Scale, Testbed, bed_of
from .server_rivals_turns import (
    DEFAULT,
    OURS,
    Contender,
    block,
    distinct,
    gain,
    settled,
    standing,
)

if TYPE_CHECKING:
    from ascar.pilot.turns import Gain

    from .harness import Estimate, Found

HERE = Path(__file__).parent
ASCAR = HERE.parent / "python" / "ascar"
LOAD_MIN_S = 5.0
TRIAL_BESIDE_S = 6.0
BLOCKS_MAX = 200
SEED = 1
SERVERS: tuple[RivalServer, ...] = (RivalPostgreSQL(), RivalMariaDB())


@dataclass(slots=True)
class Rivalry:
    """The benchmark's run on one server.

    Attributes:
        server: the server.
        benchmark: keeps what was found.
        scale: how large everything is.
        limit_s: the runs of each contender take at most so long, all together.
        found: what the pieces found.
    """

    server: RivalServer
    benchmark: Benchmark
    scale: Scale
    limit_s: float
    found: Found = field(default_factory=dict[str, "dict[str, Any]"])
    _held: ExitStack = field(default_factory=ExitStack)
    _bed: Testbed | None = None
    _ends_s: float = 0.0

    def run(self) -> None:
        """Carry out what has no result yet, one load after the other, as far as the budget reaches."""
        self._ends_s = time.monotonic() + self.benchmark.budget_s
        with self._held:
            for load in self.server.loads:
                self._do([self._peer(load, name) for name in PEERS])
                self._do([self._ours(load), self._advice(load)])
                self._turns(load)

    def contenders(self, load: str) -> list[Contender]:
        """What is recommended for a load, as far as it is known; the default, and ours, come first."""
        space = self.server.space(self.scale)
        listed = [Contender(DEFAULT, space.default())]
        for name in (OURS, *PEERS):
            one = self._of(load, f"search/{name}")
            if one is None:
                continue
            # A value that the catalogue took for weaker only afterwards was found as others were.
            configuration = space.permit_weaker(tuple(Guarantee)).validate(one["recommended"])
            listed.append(
                Contender(name, configuration, one["reported"], one["seconds"], note=one.get("note", ""))
            )
        told = self._of(load, "advice")
        return [*listed, *self.server.advised(space, self.scale, load, told and told["told"])]

    def blocks(self, load: str) -> list[dict[str, Any]]:
        """The blocks of runs in turns that were made of what is recommended now."""
        found = (self._of(load, f"turns/{at}") for at in range(BLOCKS_MAX))
        return [one for one in found if one is not None]

    def _key(self, load: str, what: str) -> str:
        return f"{self.server.kind}/{load}/{what}"

    def _of(self, load: str, what: str) -> dict[str, Any] | None:
        """What a piece found."""
        return self.found.get(self._key(load, what))

    def _do(self, pieces: list[Piece]) -> None:
        """Carry out pieces, within what is left of the budget."""
        self.benchmark.budget_s = max(0.0, self._ends_s - time.monotonic())
        self.found |= self.benchmark.run(pieces)

    def _testbed(self) -> Testbed:
        if self._bed is None:
            self._bed = self._held.enter_context(bed_of(self.server, self.scale))
        return self._bed

    def _built(self, *files: Path) -> str:
        """Of what does a piece, and how large everything is."""
        module = sys.modules[type(self.server).__module__].__file__
        of = build(HERE / "server_rivals_testbed.py", Path(str(module)), *files)
        return f"{of} {_hash(str(self.scale))}"

    def _peer(self, load: str, name: str) -> Piece:
        names = ("asking.py", "config_space.py", PEERS[name].script)
        files = [
            HERE / "server_rivals_peers.py",
            HERE / "server_rivals_reach.py",
            *(HERE / "peers" / one for one in names),
        ]

        def run() -> dict[str, Any]:
            with self._testbed().bench(load) as bench:
                return searched(bench, name, self.scale.trials, SEED)

        return Piece(self._key(load, f"search/{name}"), run, self._built(*files))

    def _ours(self, load: str) -> Piece:
        """As long as the others took on the average."""
        taken = [one["seconds"] for name in PEERS if (one := self._of(load, f"search/{name}"))]
        budget_s = fmean(taken) if taken else self.scale.trials * (self.scale.load_s + TRIAL_BESIDE_S)
        searching = [*ASCAR.glob("*.py"), *(ASCAR / "optimizers").rglob("*.py"), *crate_sources("python")]
        return Piece(
            self._key(load, f"search/{OURS}"),
            lambda: by_ascar(self._testbed(), load, budget_s),
            self._built(*sorted(searching)),
        )

    def _advice(self, load: str) -> Piece:
        def run() -> dict[str, Any]:
            return {"told": self.server.ask(self._testbed(), load)}

        return Piece(self._key(load, "advice"), run, self._built())

    def _turns(self, load: str) -> None:
        """Blocks of runs, until everything is known well enough."""
        contenders = self.contenders(load)
        same = distinct(contenders)
        runs = [one for one in contenders if same[one.name] == one.name]
        what = self._built() + _hash(*(f"{one.name} {one.configuration.text}" for one in runs))
        for at in range(BLOCKS_MAX):
            known = self.blocks(load)[:at]
            waiting = {one.name for one in runs if not settled(known, one.name, self.limit_s)} - {DEFAULT}
            if len(known) < at or not waiting:
                break
            wanted = [one for one in runs if one.name in waiting | {DEFAULT, same.get(OURS, DEFAULT)}]

            def run(wanted: list[Contender] = wanted, at: int = at) -> dict[str, Any]:
                return block(self._testbed(), load, wanted, at)

            self._do([Piece(self._key(load, f"turns/{at}"), run, what)])


def by_ascar(bed: Testbed, load: str, budget_s: float) -> dict[str, Any]:
    """`ascar tune` on the testbed.

    Returns:
        What it recommends, the gain that it reports, and what became of the time.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryDirectory(prefix="ascar-rivals-") as folder:
        study, history = Path(folder, "study.toml"), Path(folder, "history.sqlite")
        study.write_text(toml_text(bed.tables(load, budget_s, min(LOAD_MIN_S, bed.scale.load_s))))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(bed.site), str(HERE.parent))),
            "ASCAR_HISTORY": str(history),
            "ASCAR_LIBRARY": str(Path(folder, "library")),
        }
        start_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "ascar", "tune", str(study), "--json", "--quiet"],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        spent_s = time.monotonic() - start_s
        if done.returncode not in (0, 3):
            raise RuntimeError(f"ascar tune: {done.stderr.strip()[-300:]}")
        outcome = json.loads(done.stdout)
        with History(history) as known:
            trials = known.run(outcome["run_id"]).trials(readings=False)
    verdict, parsimony = outcome["verdict"], outcome.get("parsimony")
    improved = verdict["kind"] == "improved"
    return {
        "recommended": outcome["recommended"],
        "reported": verdict["gain_relative"] if improved else 0.0,
        "seconds": spent_s,
        "budget_s": budget_s,
        "note": f"{verdict['kind']} after {verdict['runs_per_side']} pairs",
        "verdict": {key: verdict[key] for key in ("kind", "gain_relative", "gain_low", "gain_high", "note")},
        "best": outcome["best"] and outcome["best"]["configuration"],
        "kept": parsimony and parsimony["kept"],
        "left_out": parsimony and parsimony["left_out"],
        "stopped": outcome["stopped"],
        "stage_s": outcome["stage_s"],
        "trials": [
            {
                "purpose": one.purpose.value,
                "state": one.state.value,
                "score": one.score,
                "seconds": one.total_s,
                "load_s": one.stage_s.get("load"),
                "failure": one.failure and one.failure.message,
                "values": dict(one.configuration),
            }
            for one in trials
        ],
    }


def rows(contenders: list[Contender], blocks: list[dict[str, Any]]) -> list[list[str]]:
    """The lines of a load's table."""
    same, scores = distinct(contenders), [one["scores"] for one in blocks]
    default = next(one for one in contenders if one.name == DEFAULT).configuration
    lines: list[list[str]] = []
    for one in contenders:
        runner, ours = same[one.name], same.get(OURS)
        made = [block[runner] for block in scores if runner in block]
        own = [score for score in made if score is not None]
        over = gain(scores, DEFAULT, runner)
        changed = sum(default[name] != value for name, value in one.configuration.items())
        lines.append(
            [
                one.name,
                "TuneD" if one.is_tuned else str(changed),
                number(_mean(own)) if own else "-",
                "" if runner == DEFAULT and one.name == DEFAULT else _gain(over, runner == DEFAULT),
                _percent(one.reported),
                _reported(one.reported, over, runner == DEFAULT),
                "" if one.name == OURS or ours is None else _against(scores, runner, ours),
                f"{len(own)}" + (f" of {len(made)}" if len(own) < len(made) else ""),
                f"{one.seconds:.0f} s" if one.seconds else "-",
            ]
        )
    return lines


def _mean(scores: list[float]) -> Estimate:
    limits = mean_at_any_time(scores, 0.05)
    low, high = limits or (float("nan"), float("nan"))
    return fmean(scores), low, high


def _estimate(found: Gain | None) -> Estimate:
    if found is None or found.gain_relative is None or found.interval is None:
        return float("nan"), float("nan"), float("nan")
    return found.gain_relative, *found.interval


def _gain(found: Gain | None, is_default: bool) -> str:
    return "the default" if is_default else signed(_estimate(found))


def _percent(gained: float | None) -> str:
    return "-" if gained is None else f"{gained:+.1%}"


def _reported(reported: float | None, true: Gain | None, is_default: bool) -> str:
    """What was reported over what is true, as ratios to the default."""
    if reported is None:
        return "-"
    if is_default:
        return f"{1 + reported:.3f}"
    center, low, high = (1 + one for one in _estimate(true))
    return number(((1 + reported) / center, (1 + reported) / high, (1 + reported) / low))


def _against(scores: list[dict[str, float | None]], other: str, ours: str) -> str:
    if other == ours:
        return "the same"
    found = gain(scores, other, ours)
    return f"{signed(_estimate(found))}, {standing(found)}"


def _hash(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


HEADS = (
    *("who", "changes", "transactions/s", "gain over the default", "reported", "reported over true"),
    *("ascar over it", "runs", "time"),
)


def main() -> None:
    """Carry out what is missing, and print the tables."""
    parser = Benchmark.parser(__doc__ or "", "3h")
    scale = Scale()
    for name in ("memory_mib", "data_mib", "iops", "load_s", "trials"):
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=int,
            default=getattr(scale, name),
            help=f"default {getattr(scale, name)}",
        )
    parser.add_argument(
        "--limit", type=seconds, default=1200.0, help="runs in turns of each take at most so long"
    )
    given = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root: a volume, a control group, settings of the kernel")
    try:
        scale = Scale(given.memory_mib, given.data_mib, given.iops, given.load_s, given.trials)
    except ValueError as error:
        parser.error(str(error))
    benchmark = Benchmark.of(given)
    ends_s = time.monotonic() + given.budget
    for server in SERVERS:
        benchmark.budget_s = max(0.0, ends_s - time.monotonic())
        rivalry = Rivalry(server, benchmark, scale, given.limit)
        try:
            rivalry.run()
        except AscarError as error:
            print(f"{server.name} is left out: {error.message}", file=sys.stderr)
            continue
        for load in server.loads:
            show(rivalry, load)


def show(rivalry: Rivalry, load: str) -> None:
    """Print the table of a load, where there is one."""
    contenders, blocks = rivalry.contenders(load), rivalry.blocks(load)
    if not blocks:
        return
    print(f"\n{rivalry.server.name}, {load}: {len(blocks)} blocks of loads of {rivalry.scale.load_s} s\n")
    table(HEADS, rows(contenders, blocks))
    for one in contenders:
        if one.note:
            print(f"{one.name}: {one.note}")


if __name__ == "__main__":
    main()
