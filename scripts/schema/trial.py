"""Trials, verdicts and outcomes, as several documents have them."""

from __future__ import annotations

from ascar.outcome import Purpose, TrialState
from schema.words import COUNT, FLAG, NUMBER, TEXT, Schema, about, items, maybe, record, table

VALUE: Schema = {"type": ["string", "number", "boolean"]}

CONFIGURATION = about(
    table(VALUE), "a value for every parameter that is active; one that does not apply is absent"
)

STATES = [state.value for state in TrialState]

FACTS: Schema = {"type": "object"}

SCORE = about(maybe(NUMBER), "the objective's value; null unless complete or pruned")

MEASUREMENT = record(
    "a mean with what is known about it",
    mean=NUMBER,
    ci_low=about(maybe(NUMBER), "null where no honest interval exists"),
    ci_high=maybe(NUMBER),
    confidence=NUMBER,
    n=about(COUNT, "readings in the stable phase"),
    independent_samples=about(NUMBER, "how many independent samples the interval rests on"),
    autocorrelation=maybe(NUMBER),
    subsession_size=COUNT,
    stable_start=COUNT,
    stable_end=COUNT,
    change_points=items(COUNT),
    method=TEXT,
    reason=about(TEXT, "why there is no interval; empty where there is one"),
)

CHANGE = record(
    "what putting the configuration in force took",
    parameters=items(TEXT),
    category={
        "type": "integer",
        "minimum": -1,
        "maximum": 3,
        "description": "highest cost category touched; -1: none",
    },
    step_s=about(table(NUMBER), "seconds by step"),
    filled=FLAG,
)

TRIAL = record(
    "one evaluation of one configuration",
    number={"type": "integer", "minimum": 1},
    purpose={"enum": [purpose.value for purpose in Purpose]},
    state={"enum": STATES},
    configuration=CONFIGURATION,
    score=SCORE,
    measurement=maybe(MEASUREMENT),
    metrics=about(table(maybe(NUMBER)), "every metric of the run; the unit is in the name"),
    change=maybe(CHANGE),
    stage_s=about(table(NUMBER), "seconds by stage"),
    unmet=about(items(TEXT), "constraints on results that this trial breaks"),
    failure=maybe(record(stage=TEXT, message=TEXT, stderr=TEXT)),
    abandonment=maybe(
        record(
            "why the load of a pruned trial was ended early",
            rival=about({"type": "integer", "minimum": 1}, "the trial that it was worse than"),
            after_s=about(NUMBER, "age of the load"),
            worse_relative=about(NUMBER, "share of the rival's level by which its readings were worse"),
            worse_least=about(NUMBER, "the same at least, noise of readings and of runs taken into account"),
            saved_s=about(NUMBER, "against the usual load of a trial"),
        )
    ),
    started_at=about(TEXT, "ISO 8601, UTC"),
)

DIFFERENCE: dict[str, Schema] = {
    "difference": about(maybe(NUMBER), "in the objective's unit; above zero is better"),
    "difference_low": about(maybe(NUMBER), "of an interval that holds at all looks together"),
    "difference_high": maybe(NUMBER),
}

VERDICT = record(
    "what the last, interleaved comparison of the best configuration with the default says",
    kind={"enum": ["improved", "default-is-fine", "not-verified"]},
    gain_relative=about(
        maybe(NUMBER),
        "over the default's mean; above zero is better whichever way the objective points; null where scores "
        "are not all above zero",
    ),
    gain_low=about(maybe(NUMBER), "of an interval that holds at all looks together"),
    gain_high=maybe(NUMBER),
    p_value=about(maybe(NUMBER), "always-valid"),
    runs_per_side=about(COUNT, "pairs of runs that were made, failed ones included"),
    best_scores=about(items(NUMBER), "of the pairs that could be compared, in the order taken"),
    default_scores=items(NUMBER),
    p_value_limit=NUMBER,
    note=TEXT,
    reuse_bias=maybe(NUMBER),
    reuse_bias_low=maybe(NUMBER),
    reuse_bias_high=maybe(NUMBER),
    margin=about(NUMBER, "relative difference below which two count as equivalent; 0: never"),
    ended=about(
        maybe({"enum": ["separated", "equivalent", "runs-max", "time", "failures"]}),
        "why no more pairs were made; null without a comparison",
    ),
    objectives=about(
        items(
            record(
                objective=TEXT,
                best_mean=NUMBER,
                default_mean=NUMBER,
                gain_relative=about(
                    maybe(NUMBER), "above zero is better; null where scores are not all above zero"
                ),
                gain_low=about(maybe(NUMBER), "all objectives' intervals hold together"),
                gain_high=maybe(NUMBER),
                **DIFFERENCE,
            )
        ),
        "of a study with several, each one's gain; the rest of the verdict is of their compromise",
    ),
    **DIFFERENCE,
)

OUTCOME: dict[str, Schema] = {
    "run_id": about(COUNT, "in the history"),
    "study": TEXT,
    "best": maybe(TRIAL),
    "default": maybe(TRIAL),
    "recommended": CONFIGURATION,
    "verdict": VERDICT,
    "stage_s": about(table(NUMBER), "seconds by stage, over the whole run"),
    "counts": about(
        {"type": "object", "propertyNames": {"enum": STATES}, "additionalProperties": COUNT},
        "trials by how they ended",
    ),
    "stopped": about(TEXT, "why the search ended"),
    "machine": about(FACTS, "what the result is valid for"),
    "saved_s": about(NUMBER, "seconds of load that abandoning worse configurations saved"),
}

PARETO_POINT = record(
    configuration=CONFIGURATION,
    scores=about(items(NUMBER), "means over the trials, in the order of the objectives"),
    intervals=about(
        items(maybe(items(NUMBER))),
        "95%, low and high: between trials, or of the one trial's readings; null: not known",
    ),
    trials=items(COUNT),
    is_default=FLAG,
)
