"""The laboratory of optimizers."""

from __future__ import annotations

from schema.words import COUNT, NUMBER, TEXT, Schema, about, items, maybe, record

LAB_FIGURES: dict[str, Schema] = {
    "evaluations": about(COUNT, "after which the recommendation is judged"),
    "regret_mean": about(NUMBER, "of the recommended: 0 the best, 1 the table's median"),
    "regret_ci": about(items(maybe(NUMBER)), "95% interval over runs; null with one run"),
    "near_optimal_share": about(NUMBER, "share of runs whose recommendation is within 1% of the best"),
    "recommended_true_over_best": maybe(NUMBER),
    "reported_over_true": about(maybe(NUMBER), "of the recommended; 1: what is reported is what one gets"),
    "ask_tell_ms": about(NUMBER, "median over runs of the mean time of one ask and its tell"),
    "seconds_per_run": about(NUMBER, "inside the optimizer"),
}

LAB_OPTIMIZERS = items(
    record(
        "an optimizer after the last evaluation",
        name=TEXT,
        runs=COUNT,
        **LAB_FIGURES,
        checkpoints=about(items(record(**LAB_FIGURES)), "after fewer evaluations, the last one included"),
    )
)

DOCUMENTS: dict[str, tuple[str, dict[str, Schema]]] = {
    "lab-optimizers": (
        "How optimizers compare, by simulated searches whose truth is known.",
        {
            "optimizers": about(LAB_OPTIMIZERS, "means over the problems, each with the same weight"),
            "problems": items(
                record(
                    name=TEXT,
                    best=about(NUMBER, "the best true value"),
                    median=about(NUMBER, "the true value of the middling configuration"),
                    optimizers=LAB_OPTIMIZERS,
                )
            ),
            "comparisons": about(
                items(
                    record(
                        problem=TEXT,
                        one=TEXT,
                        other=TEXT,
                        runs=about(COUNT, "seeds that both have"),
                        regret_difference=about(NUMBER, "below zero: the one is better"),
                        p_value=about(NUMBER, "Wilcoxon's signed-rank test"),
                        p_value_holm=about(NUMBER, "corrected for all comparisons"),
                    )
                ),
                "pairs of optimizers after the last evaluation",
            ),
            "ranks": about(
                items(
                    record(
                        name=TEXT,
                        rank_mean=about(NUMBER, "over problems, by mean regret; 1 is the best"),
                        problems=COUNT,
                        first=about(COUNT, "problems on which no other is better"),
                    )
                ),
                "the best first",
            ),
            "sweeps": items(record(name=about(TEXT, "KIND.OPTION"), optimizers=LAB_OPTIMIZERS)),
            "runs_missing": about(COUNT, "the budget was over before them"),
            "plots": items(TEXT),
        },
    ),
}
