"""`ascar capes`."""

from __future__ import annotations

from ascar.capes.play.contest import ALGORITHMS
from ascar.capes.play.game import GAMES
from schema.words import COUNT, FLAG, NUMBER, TEXT, Schema, about, items, maybe, record

DOCUMENTS: dict[str, tuple[str, dict[str, Schema]]] = {
    "capes-game": (
        "How often and how soon a learner converges at StorageGameSim.",
        {
            "noise": about(NUMBER, "standard deviation of a measurement, a share of the throughput"),
            "delay": about(COUNT, "ticks after which a change of the window shows"),
            "algorithm": {"enum": list(ALGORITHMS)},
            "game": about({"enum": list(GAMES)}, "and the criterion by which it is won"),
            "runs": COUNT,
            "success_rate": about(NUMBER, "share of the runs that converged"),
            "ticks_median": about(maybe(NUMBER), "until convergence, of the runs that converged"),
            "ticks_max": maybe(COUNT),
            "ticks_limit": about(COUNT, "ticks of a run"),
            "played": items(
                record(
                    seed=COUNT,
                    ticks=about(maybe(COUNT), "until convergence; null where it did not converge"),
                    near_share=about(NUMBER, "of all ticks, those within 10% of the ideal, noise aside"),
                )
            ),
        },
    ),
    "capes-train": (
        "What a learner has done: until it was told to stop, or once through stored ticks.",
        {
            "session": TEXT,
            "algorithm": {"enum": ["modern", "classic"]},
            "objective": TEXT,
            "only_history": about(FLAG, "whether it only learnt from stored ticks"),
            "ticks": about(COUNT, "stored ones that it learnt from; 0 where it did not only do that"),
            "steps": about(COUNT, "of the classic learner's training on stored ticks"),
            "errors": about(
                items(
                    record(at=about(COUNT, "ticks, of the classic learner steps"), prediction_error=NUMBER)
                ),
                "on the way, where it only learnt from stored ticks",
            ),
            "report": about({"type": ["object", "null"]}, "its last one on P.learner; null: it never began"),
            "state": about(maybe(TEXT), "file with what it has learnt"),
        },
    ),
}
