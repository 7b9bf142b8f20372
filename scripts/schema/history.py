"""`ascar history`."""

from __future__ import annotations

from schema.trial import FACTS, OUTCOME, PARETO_POINT, TRIAL
from schema.words import COUNT, NUMBER, TEXT, Schema, about, items, maybe, record, table

RUN = record(
    run_id=COUNT,
    study=TEXT,
    state={"enum": ["running", "complete", "interrupted"]},
    pid=about(maybe(COUNT), "the process that runs it now"),
    objective=TEXT,
    started_at=TEXT,
    finished_at=maybe(TEXT),
    counts=OUTCOME["counts"],
    best_score=about(maybe(NUMBER), "the best single trial's, verification left out"),
    verdict=about(
        maybe({"enum": ["improved", "default-is-fine", "not-verified"]}), "null while the run has not ended"
    ),
    gain_relative=about(
        maybe(NUMBER), "by the last comparison; null without one, and where scores are not all above zero"
    ),
    difference=about(maybe(NUMBER), "in the objective's unit, above zero is better"),
)

DOCUMENTS: dict[str, tuple[str, dict[str, Schema]]] = {
    "history-ls": ("Every run, the latest first.", {"runs": items(RUN)}),
    "history-show": (
        "A run, with its trials.",
        {
            "run_id": COUNT,
            "study": TEXT,
            "state": RUN["properties"]["state"],
            "objective": TEXT,
            "started_at": TEXT,
            "versions": table(TEXT),
            "machine": FACTS,
            "outcome": record(**OUTCOME),
            "trials": items(TRIAL),
        },
    ),
    "history-pareto": (
        "Configurations that no other beats in one objective without losing in another.",
        {
            "run_id": COUNT,
            "study": TEXT,
            "objectives": items(TEXT),
            "configurations": about(COUNT, "that were measured and met the constraints"),
            "points": about(items(PARETO_POINT), "the set, the best in the first objective first"),
            "default": maybe(PARETO_POINT),
        },
    ),
    "history-export": (
        "Which runs were written where.",
        {"runs": items(COUNT), "left_out": about(items(COUNT), "runs that cannot be read"), "file": TEXT},
    ),
    "history-import": ("The numbers that the added runs got.", {"runs": items(COUNT), "file": TEXT}),
    "history-purge": ("Which runs were removed.", {"runs": items(COUNT), "removed": COUNT}),
}
