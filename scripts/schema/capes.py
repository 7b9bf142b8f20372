"""`ascar capes`."""

from __future__ import annotations

from ascar.capes.contest import ALGORITHMS
from ascar.capes.game import GAMES
from schema.words import COUNT, NUMBER, Schema, about, items, maybe, record

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
}
