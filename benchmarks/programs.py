"""Programs of others tuned by one study file: what a search wins back from settings that are known to be bad.

    python -m benchmarks.programs --budget 30min

Redis, nginx and Memcached of Debian, by examples/programs/*.toml: from the program's own defaults, and from a
setting known to be bad. The known effect is between the bad setting and the best one known. After each study
the start, the recommendation and the best known are measured in turns. Results are kept; the same command
goes on.
"""

from __future__ import annotations

import math
import random
import re
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from ascar.evaluation import Evaluator
from ascar.events import ignore
from ascar.history import History
from ascar.loops import offline
from ascar.prepared_study import PreparedStudy
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.study import Study
from ascar.systems.asking import entering

from .harness import Benchmark, Piece, build, present, signed, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ascar.space import Configuration, Value

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "programs"
TURNS: Final = 5
NEEDS: Final = {
    "redis": ("redis-server", "redis-benchmark"),
    "nginx": ("nginx", "wrk"),
    "memcached": ("memcached",),
}
BAD: Final[dict[str, dict[str, Value]]] = {
    "redis": {"hash_max_listpack_entries": 4096, "io_threads": 4},
    "nginx": {"gzip_comp_level": 9, "keepalive_requests": 1},
    "memcached": {"memory_mib": 16, "growth_factor": 4.0, "smallest_bytes": 384},
}
BEST: Final[dict[str, dict[str, Value]]] = {
    "redis": {"hash_max_listpack_entries": 128, "io_threads": 1},
    "nginx": {"gzip_comp_level": 1, "keepalive_requests": 1000, "worker_processes": 2},
    "memcached": {"memory_mib": 96, "growth_factor": 1.25, "smallest_bytes": 48},
}


def main() -> None:
    """Run what has no result yet, and print a table."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "30min")
    found = benchmark.run(list(_pieces()))
    rows: list[list[str]] = []
    for one in present(found, [piece.key for piece in _pieces()]):
        gain, low, high = (
            math.nan if one[name] is None else float(one[name]) for name in ("gain", "gain_low", "gain_high")
        )
        won = "-" if one["won_back"] is None else f"{100 * one['won_back']:.0f}%"
        scores = [f"{one[name]:.4g}" for name in ("start", "found", "best")]
        rows.append(
            [one["study"], one["verdict"], signed((gain, low, high)), *scores, won, str(one["trials"])]
        )
    table(["study", "verdict", "gain", "start", "found", "best known", "won back", "trials"], rows)


def _pieces() -> Iterator[Piece]:
    own = build(Path(__file__))
    for program in BAD:
        for start in ("bad", "default"):
            yield Piece(
                f"{program}/{start}", lambda program=program, start=start: _studied(program, start), own
            )


def study_in(folder: Path, program: str, defaults: Mapping[str, Value]) -> Path:
    """A copy of a program's study and of its load, with other defaults."""
    for path in EXAMPLES.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    path = folder / f"{program}.toml"
    text = path.read_text()
    for name, value in defaults.items():
        text, count = re.subn(
            rf"(\[space\.parameters\.{name}\].*?\ndefault = )[^\n]+",
            rf"\g<1>{value}",
            text,
            count=1,
            flags=re.DOTALL,
        )
        assert count == 1, f"{program}.toml has no parameter {name}"
    path.write_text(text)
    return path


def _studied(program: str, start: str) -> dict[str, Any]:
    for name in NEEDS[program]:
        if shutil.which(name, path="/usr/bin:/usr/sbin:/usr/local/bin") is None:
            raise RuntimeError(f"{name} is not installed")
    with tempfile.TemporaryDirectory(prefix="ascar-programs-") as place:
        path = study_in(Path(place), program, BAD[program] if start == "bad" else {})
        study = Study.read(path)
        with History(Path(place, "history.sqlite")) as history:
            outcome = offline.tune(study, history)
            run = history.run(outcome.run_id)
            trials = tuple(run.trials())
        scores = _in_turns(study, outcome.recommended, BEST[program])
    verdict = outcome.verdict
    known = scores["best"] - scores["start"]
    return {
        "study": f"{program}, {start} start",
        "verdict": verdict.kind,
        "gain": verdict.gain_relative,
        "gain_low": verdict.gain_low,
        "gain_high": verdict.gain_high,
        **scores,
        "won_back": (scores["found"] - scores["start"]) / known if start == "bad" else None,
        "recommended": dict(outcome.recommended),
        "trials": len(trials),
        "seconds": study.budget_s,
    }


def _in_turns(study: Study, found: Configuration, best: Mapping[str, Value]) -> dict[str, float]:
    """Medians of the start, of what was found and of the best that is known, five runs each, in turns."""
    prepared = PreparedStudy.open(study)
    with entering(prepared.target):
        prepared = prepared.entered()
        evaluator = Evaluator(study, prepared.target, prepared.workload, ignore, prepared.clock)
        default = prepared.space.default()
        wanted = {"start": default, "found": found, "best": prepared.space.validate({**default, **best})}
        scores: dict[str, list[float]] = {name: [] for name in wanted}
        for turn in range(TURNS):
            order = list(wanted)
            random.Random(turn).shuffle(order)
            for name in order:
                trial = evaluator.evaluate(Trial(1, wanted[name], Purpose.DEFAULT, TrialState.RUNNING))
                if trial.score is None:
                    raise RuntimeError(f"{name} fails: {trial.failure}")
                scores[name].append(trial.score)
    return {name: median(values) for name, values in scores.items()}


if __name__ == "__main__":
    main()
