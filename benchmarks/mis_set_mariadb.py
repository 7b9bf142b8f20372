"""A MariaDB server whose buffer pool is too small: how much of what that costs a study wins back.

    python -m benchmarks.mis_set_mariadb --budget 10min

The server has a buffer pool of 16 MB and tables of 100 MB, under sysbench's `oltp_read_write` with 8 clients.
A study of five minutes searches the pool's size among other settings. Then the pool of 16 MB, one of 256 MB,
and what the study recommends run in turns, each for the length of a trial and charged for what it leaves
undone (`ascar.charging`). Won back is what the recommended configuration has over the start, of what 256 MB
have: from the means of all turns, with a 95% interval by the delta method. The goal is 90%.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import Benchmark, Piece, mean, number, percent, share_of, table

import ascar
from ascar.campaign import PreparedStudy, ignore, take_up
from ascar.history import History
from ascar.optimizers.proposals import Proposal
from ascar.results.trial import Origin, Purpose
from ascar.study import Study

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

TURNS: Final = 6
POOL: Final = "innodb_buffer_pool_size"
WRONG: Final = 16 << 20
RIGHT: Final = 256 << 20
TUNED: Final = (POOL, "innodb_io_capacity", "innodb_flush_neighbors", "table_open_cache", "sort_buffer_size")


def study(directory: str) -> Study:
    """The study, whose server lies below a directory."""
    return Study.of(
        {
            "study": {
                "name": "small-pool",
                "objective": "maximize throughput_ops_per_s",
                "budget": "300 s",
                "seed": 1,
            },
            "target": {
                "kind": "mariadb",
                "directory": directory,
                "memory": "1 GiB",
                "max_connections": 50,
                "settings": {POOL: WRONG},
            },
            "workload": {"kind": "sysbench", "tables": 4, "rows": 100_000, "clients": 8},
            "space": {"tuned": list(TUNED)},
            "measurement": {"load_min": "3 s", "load_max": "5 s"},
        }
    )


@contextmanager
def below() -> Generator[str]:
    """A directory that the server's account can reach, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="mis-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        Path(folder).chmod(0o1777)
        yield folder


def tuned() -> dict[str, Any]:
    """What the study comes to; what is not proven is not recommended, so that the start stays."""
    begun_s = time.monotonic()
    with below() as folder, History(Path(folder) / "history.sqlite") as history:
        outcome = ascar.tune(study(folder), history=history, progress=False)
    return {
        "recommended": dict(outcome.recommended),
        "verdict": outcome.verdict.kind,
        "gain": outcome.verdict.gain_relative,
        "trials": len(outcome.trials),
        "seconds": time.monotonic() - begun_s,
    }


def in_turns(recommended: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of the three configurations, turn by turn.

    Raises:
        RuntimeError: a run failed.
    """
    scores: dict[str, list[float]] = {}
    with below() as folder:
        prepared = PreparedStudy.open(study(folder))
        with (
            History(Path(folder) / "history.sqlite") as history,
            take_up(prepared, history, resume=False, listener=ignore) as campaign,
        ):
            space = campaign.prepared.space
            wrong = space.default()
            sides = {
                "wrong": wrong,
                "right": space.nearest({**wrong, POOL: RIGHT}),
                "recommended": space.nearest(recommended),
            }
            for turn in range(TURNS):
                for name in list(sides) if turn % 2 == 0 else list(reversed(sides)):
                    trial = campaign.attempt(Proposal(sides[name], Origin.VERIFICATION), Purpose.VERIFY)
                    if trial.score is None:
                        raise RuntimeError(trial.failure.message if trial.failure else trial.state.value)
                    scores.setdefault(name, []).append(trial.score)
    return {"scores": scores}


def main() -> None:
    """Carry out what is missing, and print the table."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "10min")
    end_s = time.monotonic() + benchmark.budget_s
    found = benchmark.run([Piece("study", tuned)]).get("study")
    if found is None:
        return
    benchmark.budget_s = end_s - time.monotonic()
    turns = benchmark.run([Piece("turns", partial(in_turns, found["recommended"]))]).get("turns")
    if turns is None:
        return
    wrong, right, recommended = (turns["scores"][side] for side in ("wrong", "right", "recommended"))
    won = [a - b for a, b in zip(recommended, wrong, strict=True)]
    lost = [a - b for a, b in zip(right, wrong, strict=True)]
    heads = ["pool of the recommended", "wrong, per s", "right", "recommended", "won back", "study"]
    row = [
        f"{found['recommended'][POOL] >> 20} MiB",
        *(number(mean(side)) for side in (wrong, right, recommended)),
        percent(share_of(won, lost), 0),
        f"{found['verdict']}, {found['seconds'] / 60:.1f} min, {found['trials']} trials",
    ]
    table(heads, [row])


if __name__ == "__main__":
    main()
