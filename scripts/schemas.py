"""Writes docs/schemas: the JSON Schema of every document that a command prints with --json.

`python scripts/schemas.py` writes the files, with --check it says whether they are up to date. Keys that a
document may have are all required: a reader never has to ask whether one is there. A change that a reader
could notice raises the document's version in `ascar.cli.output.SCHEMAS`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ascar.capes.contest import ALGORITHMS
from ascar.capes.game import GAMES
from ascar.cli.output import SCHEMAS
from ascar.outcome import Purpose, TrialState
from ascar.sharp.search import SCHEDULES
from ascar.simulation import FIGURES, INDICATORS, Latency

Schema = dict[str, Any]

DIRECTORY = Path(__file__).resolve().parent.parent / "docs" / "schemas"

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}


def maybe(schema: Schema) -> Schema:
    """That, or null."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def items(schema: Schema) -> Schema:
    """A list of it."""
    return {"type": "array", "items": schema}


def table(schema: Schema) -> Schema:
    """An object with any keys, each value being that."""
    return {"type": "object", "additionalProperties": schema}


def record(description: str = "", **keys: Schema) -> Schema:
    """An object with exactly these keys."""
    schema: Schema = {
        "type": "object",
        "required": list(keys),
        "properties": keys,
        "additionalProperties": False,
    }
    return {"description": description, **schema} if description else schema


def about(schema: Schema, description: str) -> Schema:
    """The same, explained."""
    return {**schema, "description": description}


VALUE: Schema = {"type": ["string", "number", "boolean"]}
CONFIGURATION = about(
    table(VALUE), "a value for every parameter that is active; one that does not apply is absent"
)
STATES = [state.value for state in TrialState]
FACTS: Schema = {"type": "object"}
SCORE = about(maybe(NUMBER), "the objective's value; null unless complete or pruned")

QUANTILES = record(median=NUMBER, p90=NUMBER, max=NUMBER)

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
VERDICT = record(
    "what the last, interleaved comparison of the best configuration with the default says",
    kind={"enum": ["improved", "default-is-fine", "not-verified"]},
    gain_relative=about(
        maybe(NUMBER), "over the default's mean; above zero is better whichever way the objective points"
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
                    maybe(NUMBER), "above zero is better; null where the default's mean is 0"
                ),
                gain_low=about(maybe(NUMBER), "all objectives' intervals hold together"),
                gain_high=maybe(NUMBER),
            )
        ),
        "of a study with several, each one's gain; the rest of the verdict is of their compromise",
    ),
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
DOMAIN: Schema = {"type": "object"}
NEED = record(
    "something that tuning needs, and whether it is here",
    name=TEXT,
    purpose=TEXT,
    found=about(maybe(TEXT), "where it is; null: missing"),
    needed_by=items(TEXT),
    debian_package=maybe(TEXT),
    fedora_package=maybe(TEXT),
    remedy=maybe(TEXT),
)
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
    gain_relative=about(maybe(NUMBER), "by the last comparison; null without one"),
)

# What `analyze`, `measure` and `compare` say of a mean.
MEAN: dict[str, Schema] = {
    "n": about(COUNT, "readings in the stable phase"),
    "mean": NUMBER,
    "ci_low": about(maybe(NUMBER), "null where no honest interval exists"),
    "ci_high": maybe(NUMBER),
    "ci_width_relative": about(maybe(NUMBER), "width of the interval over the mean"),
    "confidence": NUMBER,
    "independent_samples": about(NUMBER, "how many independent samples the interval rests on"),
    "autocorrelation": about(NUMBER, "lag 1, of the stable phase"),
    "subsession_size": about(COUNT, "readings merged into one subsession"),
    "subsessions": COUNT,
    "stable_start": about(COUNT, "index of the first stable reading"),
    "stable_end": about(COUNT, "index past the last stable reading"),
    "change_points": about(items(COUNT), "indexes at which the level changes"),
    "method": TEXT,
    "reason": about(TEXT, "why there is no interval; empty where there is one"),
}
JUDGED: dict[str, Schema] = {
    "verdict": {"enum": ["reached", "too-wide", "too-few-readings", "no-interval"]},
    "verdict_line": TEXT,
    "goal": record(interval_width_relative=NUMBER, readings_min=COUNT, confidence=NUMBER),
}
PHASE = record(
    "a stretch of readings on one level",
    start=about(COUNT, "index of the first reading"),
    end=about(COUNT, "index past the last reading"),
    mean=NUMBER,
    kind={"enum": ["stable", "warm-up", "cool-down", "unstable"]},
    reason=about(TEXT, "why it was removed; empty for the stable phase"),
)

# What is told of a trace.
TRACE: dict[str, Schema] = {
    "operations": COUNT,
    "seconds": about(NUMBER, "from the first operation's begin to the last one's"),
    "threads": COUNT,
    "files": about(COUNT, "files, or devices of a block trace"),
    "features": about(
        table(maybe(NUMBER)), "null: has no meaning here, e.g. the size of reads where there are none"
    ),
}
DIFFERENCES = about(
    table(maybe(NUMBER)),
    "by feature, |other - original| / |original|, of shares |other - original|; null: only one has it",
)
SHIFT: dict[str, Schema] = {
    "found_s": about(NUMBER, "on the readings' own clock, as all times here"),
    "began_s": about(NUMBER, "most likely when it began"),
    "began_low_s": about(maybe(NUMBER), "earliest; null: it may have begun before what is remembered"),
    "began_high_s": about(NUMBER, "latest"),
    "form": about({"enum": ["step", "drift", "either"]}, "either: the readings fit both"),
    "direction": {"enum": ["up", "down"]},
    "before": about(NUMBER, "the level before"),
    "size": about(NUMBER, "how far the level had moved when the shift was found"),
    "size_low": NUMBER,
    "size_high": NUMBER,
    "relative": about(maybe(NUMBER), "the size over the level before; null where that is 0"),
}

SIM_FIGURES: dict[str, Schema] = {name: about(NUMBER, meaning) for name, meaning in FIGURES.items()}
SIM_LATENCY = record(
    requests=COUNT, **{name: NUMBER for name in Latency.__struct_fields__ if name.startswith("latency_ms_")}
)
SIM_POINT = record(
    window=about(NUMBER, "requests in flight of a stream"),
    tau_us=about(NUMBER, "least gap between its requests"),
    figures=record(
        **{name: record(mean=NUMBER, ci_low=maybe(NUMBER), ci_high=maybe(NUMBER)) for name in FIGURES}
    ),
)

INTEGER: Schema = {"type": "integer"}
ACTION = record(
    m_x100=about({"type": "integer"}, "what the window is multiplied by, times 100; below 0: not at all"),
    b_x100=about({"type": "integer"}, "requests added to the window, times 100"),
    tau_us=about(COUNT, "least gap between requests"),
)
REFINEMENT_STEP = record(
    kind={"enum": ["better", "worse", "no-difference", "loss", "verified", "put-back"]},
    restart=about(COUNT, "jumps before it"),
    old=ACTION,
    new=ACTION,
    gain_relative=about(maybe(NUMBER), "above 0 is better; null where the loss ended it at once"),
    gain_low=about(maybe(NUMBER), "lower end of its interval, at all looks together"),
    gain_high=maybe(NUMBER),
    pairs=about(COUNT, "of intervals"),
)
RULE: dict[str, Schema] = {
    "region": about(table(items(COUNT)), "by indicator: from, and less than; 2147483647: no bound"),
    "m_x100": about(INTEGER, "times the window; below zero: do not multiply"),
    "b_x100": about(INTEGER, "requests added to the window"),
    "tau_us": about(COUNT, "least gap between requests"),
    "used_times": maybe(COUNT),
    "means": about(maybe(table(COUNT)), "of each indicator when the rule was used"),
}
RULE_SET: dict[str, Schema] = {
    "updates_per_second": about(COUNT, "window changes at most"),
    "rules": items(record("of those that hold the first counts", **RULE)),
}
CHOICE: dict[str, Schema] = {
    "rules": about(TEXT, "their id"),
    "made_for": about(TEXT, "a workload of the library"),
    "gain": about(NUMBER, "that is expected, relative"),
    "gain_low": about(NUMBER, "its lower bound"),
    "nearest": about(TEXT, "the workload of the library that is most alike"),
    "distance": about(NUMBER, "to that one"),
}

DOCUMENTS: dict[str, tuple[str, dict[str, Schema]]] = {
    "measure": (
        "What a session of rounds of a command came to; the mean that decided first, then all of them.",
        {
            "command": items(TEXT),
            "name": about(TEXT, "of the mean at the top: a metric, duration_s, or work_per_s"),
            **MEAN,
            **JUDGED,
            "reached": about(FLAG, "every goal is reached; if not, this is a partial result"),
            "ended": about(TEXT, "why the session ended"),
            "seconds": NUMBER,
            "indicators": items(
                record(
                    name=TEXT,
                    kind={"enum": ["ordinary", "ratio", "binary"]},
                    decides=about(FLAG, "the session went on until this reached its goal"),
                    basis={"enum": ["unit readings", "rounds", "readings"]},
                    readings=COUNT,
                    removed=about(COUNT, "readings left out as warm-up and cool-down"),
                    rounds_unstable=about(COUNT, "rounds without a stable phase, left out"),
                    **MEAN,
                    verdict=JUDGED["verdict"],
                )
            ),
            "speed": maybe(
                record(
                    "work per second by regression over rounds of different work amounts",
                    work_per_s=NUMBER,
                    ci_low=maybe(NUMBER),
                    ci_high=maybe(NUMBER),
                    confidence=NUMBER,
                    alpha_s=about(NUMBER, "seconds of a round that are no work"),
                    rounds=COUNT,
                    reason=TEXT,
                )
            ),
            "rounds": items(
                record(
                    seconds=NUMBER,
                    work_amount=maybe(NUMBER),
                    used=about(FLAG, "false: set aside as too short"),
                    readings=table(NUMBER),
                    unit_readings=about(table(COUNT), "how many, by metric"),
                )
            ),
            "bottlenecks": items(record("a resource that was used up", resource=TEXT, used=NUMBER)),
            "resources": record(
                "shares of what there is, over the whole session",
                cpu=NUMBER,
                cpu_busiest=NUMBER,
                programs_cores=about(NUMBER, "cores' worth of time of the measured programs"),
                cores=COUNT,
                run_queue_mean=NUMBER,
                memory_available_min=NUMBER,
                disk=table(NUMBER),
                network=table(NUMBER),
                pressure=table(NUMBER),
            ),
            "overhead": record(
                "what the measuring itself cost",
                own_cores=about(NUMBER, "cores' worth of processor time"),
                between_rounds=about(NUMBER, "share of the session in which no round ran"),
                start_cost_s=about(maybe(NUMBER), "seconds that starting a program adds to a round"),
            ),
        },
    ),
    "analyze": (
        "What a recorded series of readings says.",
        {
            "files": items(TEXT),
            "name": about(TEXT, "of the column"),
            "readings": about(COUNT, "in the file"),
            **MEAN,
            "phases": items(PHASE),
            **JUDGED,
            "note": TEXT,
        },
    ),
    "compare": (
        "Which of several commands or recordings is better.",
        {
            "mode": {"enum": ["live", "recorded"]},
            "metric": about(TEXT, "what was compared"),
            "lower_is_better": FLAG,
            "p": about(NUMBER, "probability of any wrong verdict, over all pairs and looks"),
            "margin": about(NUMBER, "a relative difference that does not matter"),
            "verdict": about(
                {"enum": ["decided", "undecided"]}, "if commands are undecided, this is a partial result"
            ),
            "ended": about(TEXT, "why it ended; empty for recordings"),
            "seconds": maybe(NUMBER),
            "rounds": about(maybe(COUNT), "of each, that count; null for recordings"),
            "warm_up": about(maybe(COUNT), "rounds of each that were run before and not used"),
            "seed": about(maybe(COUNT), "of the order of the commands"),
            "ranking": about(
                items(
                    record(
                        rank=about(COUNT, "shared with the one before where the two are not separated"),
                        name=TEXT,
                        command=maybe(items(TEXT)),
                        file=maybe(TEXT),
                        readings=about(COUNT, "of all phases"),
                        **MEAN,
                        verdict=about(
                            {"enum": ["separated", "equivalent", "undecided", "no-interval", "last"]},
                            "against the next",
                        ),
                    )
                ),
                "the best first",
            ),
            "pairs": about(
                items(
                    record(
                        better=TEXT,
                        worse=TEXT,
                        ratio=about(maybe(NUMBER), "mean of the better over mean of the worse"),
                        ratio_low=maybe(NUMBER),
                        ratio_high=maybe(NUMBER),
                        p_value=maybe(NUMBER),
                        samples=about(
                            COUNT, "pairs of rounds, or independent samples of the side with fewer"
                        ),
                        verdict={"enum": ["separated", "equivalent", "undecided", "no-interval"]},
                        verdict_line=TEXT,
                        method=TEXT,
                        more=about(maybe(COUNT), "about how many more rounds or readings would decide"),
                    )
                ),
                "neighbours in the ranking",
            ),
            "bottlenecks": items(record("a resource that was used up", resource=TEXT, used=NUMBER)),
        },
    ),
    "tune": (
        "What a study came to.",
        {
            **OUTCOME,
            "pareto": about(
                items(PARETO_POINT), "of a study with several objectives, its Pareto set; else empty"
            ),
        },
    ),
    "watch-shift": (
        "A line of `ascar watch`: a shift of the mean, printed as soon as it is found.",
        {"name": about(TEXT, "of the column"), **SHIFT},
    ),
    "variation": (
        "How much runs of one configuration differ, over what times, and what may be the cause.",
        {
            "source": about(TEXT, "the runs or the tables' files"),
            "objective": about(TEXT, "the column that was measured"),
            "configurations": about(COUNT, "with at least two runs"),
            "runs": COUNT,
            "left_out": record(
                measured_once=about(COUNT, "configurations"),
                runs_failed=about(COUNT, "without a finite objective"),
                mean_zero=about(COUNT, "configurations; nothing is relative to a mean of 0"),
            ),
            "by": about(maybe(TEXT), "the parameter whose values are the groups; null: one group"),
            "groups": items(
                record(
                    name=TEXT,
                    configurations=COUNT,
                    runs_min=COUNT,
                    runs_max=COUNT,
                    mean_min=NUMBER,
                    mean_max=NUMBER,
                    rsd=about(QUANTILES, "relative standard deviations (eq. 6.2)"),
                    range=about(QUANTILES, "relative ranges (eq. 6.3)"),
                    large_share=about(NUMBER, "of configurations with an RSD above 5% and a range above 9%"),
                    range_coverage=about(
                        NUMBER, "share of all runs that the range of runs_min runs covers at least, 95% sure"
                    ),
                )
            ),
            "goes_with": about(
                items(
                    record(
                        parameter=TEXT,
                        h=about(NUMBER, "Kruskal and Wallis, of relative standard deviations by value"),
                        groups=COUNT,
                        p_value=NUMBER,
                        p_adjusted=about(NUMBER, "over all parameters"),
                    )
                ),
                "the surest first",
            ),
            "most_varying": about(
                items(
                    record(
                        configuration=CONFIGURATION,
                        group=TEXT,
                        runs=COUNT,
                        mean=NUMBER,
                        low=about(NUMBER, "the least"),
                        high=about(NUMBER, "the greatest"),
                        rsd=NUMBER,
                        rsd_ci_low=about(maybe(NUMBER), "95%, exact for normal runs; null: there is none"),
                        rsd_ci_high=maybe(NUMBER),
                        range=NUMBER,
                    )
                ),
                "by relative range, the first 1000",
            ),
            "tolerance": about(NUMBER, "share of its end in which a run counts as settled"),
            "settling": items(
                record(
                    group=TEXT,
                    runs=COUNT,
                    run_s=about(NUMBER, "median length"),
                    median_s=about(NUMBER, "until the cumulative throughput stays within the tolerance"),
                    p90_s=NUMBER,
                    late_share=about(NUMBER, "of runs that settle in their second half only"),
                )
            ),
            "windows": items(
                record(
                    group=TEXT,
                    window_s=NUMBER,
                    configurations=COUNT,
                    windows=COUNT,
                    idle_windows=about(COUNT, "left out: nothing was done in any run"),
                    range=about(QUANTILES, "relative ranges over the runs"),
                )
            ),
            "correlations": about(
                items(
                    record(
                        group=TEXT,
                        operation=TEXT,
                        configurations=COUNT,
                        correlation=NUMBER,
                        ci_low=maybe(NUMBER),
                        ci_high=maybe(NUMBER),
                    )
                ),
                "of an operation's latency range with the throughput's range, over configurations",
            ),
            "level": about(NUMBER, "probability of any check that holds where there is nothing"),
            "checks": about(
                items(
                    record(
                        cause=TEXT,
                        statistic=NUMBER,
                        statistic_name=TEXT,
                        sample=TEXT,
                        p_value=NUMBER,
                        p_adjusted=about(NUMBER, "over all checks"),
                        effect=about(NUMBER, "a share of the mean, a correlation, or a share of variance"),
                        held=FLAG,
                    )
                ),
                "causes that were looked for",
            ),
            "advice": items(record(cause=TEXT, title=TEXT, evidence=TEXT, action=TEXT)),
            "figures": about(
                items(
                    record(name=TEXT, path=maybe(TEXT), left_out=about(maybe(TEXT), "why it is not drawn"))
                ),
                "empty without --plots",
            ),
            "note": TEXT,
        },
    ),
    "watch": (
        "The last line of `ascar watch`: what was seen altogether.",
        {
            "files": items(TEXT),
            "name": about(TEXT, "of the column"),
            "readings": COUNT,
            "nodes": COUNT,
            "start_s": NUMBER,
            "end_s": NUMBER,
            "period_s": about(maybe(NUMBER), "null: no pattern"),
            "batch_s": NUMBER,
            "batches": COUNT,
            "batches_left_out": about(COUNT, "in which some node was not heard"),
            "false_alarm_s": about(NUMBER, "mean time to an alarm while nothing shifts, at least"),
            "false_alarm_probability_max": about(NUMBER, "of an alarm by now if nothing had shifted"),
            "verdict": {"enum": ["shifted", "steady", "too-short"]},
            "verdict_line": TEXT,
            "shifts": items(record(**SHIFT)),
            "levels": items(
                record("between shifts", start_s=NUMBER, end_s=NUMBER, batches=COUNT, mean=NUMBER)
            ),
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
    "importance": (
        "Which parameters matter for an objective, by the variance that each explains.",
        {
            "source": about(TEXT, "the table's file, or the run"),
            "objective": about(TEXT, "the column that was measured"),
            "rows": about(COUNT, "that were used"),
            "rows_failed": about(COUNT, "without a finite objective, left out"),
            "mean": NUMBER,
            "variance": about(NUMBER, "of the rows, in the objective's unit squared"),
            "rsd": about(maybe(NUMBER), "relative standard deviation of the rows; null: their mean is 0"),
            "rsd_left": about(
                maybe(NUMBER), "the greatest of rows in which the selected parameters are equal"
            ),
            "ranking": about(
                items(
                    record(
                        parameter=TEXT,
                        importance=about(NUMBER, "reduction in variance, in the objective's unit squared"),
                        ci_low=about(maybe(NUMBER), "95%; allows for the bias of few rows"),
                        ci_high=maybe(NUMBER),
                        conditional_on=about(items(TEXT), "the parameters that were selected before"),
                        importance_alone=about(NUMBER, "given none"),
                        first_share=about(
                            maybe(NUMBER), "share of the resamples in which it is first of those left"
                        ),
                        selected=FLAG,
                        same_as=about(items(TEXT), "parameters that cannot be told from it"),
                    )
                ),
                "the most important first",
            ),
            "stop_reason": {"enum": ["rsd", "no-evidence", "exhausted", "count", "too-fine"]},
            "rank_stability": about(
                maybe(NUMBER), "share of the resamples in which the selected are selected in this order"
            ),
            "r_squared": about(table(NUMBER), "of each parameter alone, by least squares on its values"),
            "best_values": about(
                table(TEXT), "of the selected parameters together; empty where the direction is not known"
            ),
            "plots": items(TEXT),
        },
    ),
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
    "sweep": (
        "What a sweep saw.",
        {**OUTCOME, "complete": about(FLAG, "every configuration measured"), "file": maybe(TEXT)},
    ),
    "init": (
        "The study file that was written.",
        {"target": TEXT, "file": about(maybe(TEXT), "null: only printed"), "text": TEXT},
    ),
    "doctor": (
        "What this machine can tune.",
        {
            "machine": record(
                system=TEXT,
                kernel=TEXT,
                architecture=TEXT,
                python=TEXT,
                cpus=COUNT,
                memory_bytes=COUNT,
                free_disk_bytes=COUNT,
            ),
            "targets": items(record(kind=TEXT, ready=FLAG, missing=items(TEXT), problem=maybe(TEXT))),
            "needs": items(NEED),
            "missing_debian_packages": items(TEXT),
            "missing_fedora_packages": items(TEXT),
        },
    ),
    "apply": (
        "What was put in force, or with --dry-run would be.",
        {
            "run_id": COUNT,
            "dry_run": FLAG,
            "configuration": CONFIGURATION,
            "settings": items(
                record(
                    parameter=TEXT,
                    knob=TEXT,
                    path=TEXT,
                    before=about(TEXT, "what was in force"),
                    after=TEXT,
                    command=about(TEXT, "what an administrator would type"),
                )
            ),
            "left_to_you": about(
                items(record(parameters=items(TEXT), why=TEXT, commands=items(TEXT))),
                "what ascar does not do",
            ),
            "warnings": items(TEXT),
        },
    ),
    "restore": (
        "What was put back.",
        {
            "restored": items(TEXT),
            "left_alone": about(
                items(record(target=TEXT, expected=TEXT, found=TEXT)), "changed by someone else meanwhile"
            ),
            "failed": items(TEXT),
        },
    ),
    "explore": (
        "Where the page is served, and what it shows; printed before the first request is answered.",
        {
            "url": TEXT,
            "name": maybe(TEXT),
            "rows": COUNT,
            "configurations": about(COUNT, "different ones among the rows"),
            "dimensions": about(items(TEXT), "what was set or given and takes two values at least"),
            "metrics": items(TEXT),
            "objective": about(maybe(TEXT), "null while nothing was measured yet"),
            "direction": {"enum": ["min", "max", None]},
        },
    ),
    "export": (
        "A configuration in a form that an administrator can use.",
        {
            "run_id": COUNT,
            "form": {"enum": ["shell", "sysctl", "udev", "fstab", "tuned"]},
            "configuration": CONFIGURATION,
            "chosen": about(
                items(TEXT),
                "what differs from the defaults that the study found: lines speak of no more",
            ),
            "lines": about(items(TEXT), "empty where this form can say nothing of it"),
        },
    ),
    "space": (
        "What can be tuned: a space document, and what a reader would otherwise have to work out.",
        {
            "format": {"const": "ascar-space"},
            "version": {"const": 1},
            "name": TEXT,
            "parameters": items({"type": "object", "required": ["name", "kind", "default", "cost"]}),
            "constraints": items(TEXT),
            "pinned": table(VALUE),
            "allow_weaker": about(
                maybe(items(TEXT)), "values and guarantees that may be weaker than the default; null: all"
            ),
            "default_configuration": CONFIGURATION,
            "valid_configurations": about(maybe(COUNT), "null where they cannot be counted"),
            "valid_configurations_without_weaker": about(
                maybe(COUNT), "those that promise as much as the default does"
            ),
        },
    ),
    "report": ("Where the report is.", {"run_id": COUNT, "page": about(TEXT, "the HTML file")}),
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
    "history-export": (
        "Which runs were written where.",
        {"runs": items(COUNT), "left_out": about(items(COUNT), "runs that cannot be read"), "file": TEXT},
    ),
    "history-import": ("The numbers that the added runs got.", {"runs": items(COUNT), "file": TEXT}),
    "history-purge": ("Which runs were removed.", {"runs": items(COUNT), "removed": COUNT}),
    "workload-record": (
        "A workload, and the short one that stands for it.",
        {
            "source": record(
                kind={"enum": ["process", "command", "trace"]},
                pid=maybe(COUNT),
                command=items(TEXT),
                trace=about(maybe(TEXT), "its file"),
                form=about(TEXT, "of the trace or record: strace, blkparse, ..."),
                slowdown=about(
                    maybe(NUMBER),
                    "how much slower a process went while it was recorded; gaps in time are without that. "
                    "null: not known",
                ),
            ),
            **TRACE,
            "file": about(maybe(TEXT), "where the workload was written; null: only told here"),
            "wml": about(TEXT, "the workload, in Filebench's language"),
            "replay": maybe(
                record(
                    "what --check found",
                    directory=TEXT,
                    differences=DIFFERENCES,
                    far=about(
                        items(TEXT),
                        "features off by more than 0.1; never the deviations of temporal gaps, which a "
                        "signature does not reproduce",
                    ),
                    distance=NUMBER,
                )
            ),
        },
    ),
    "workload-features": (
        "The features of workloads, and how alike they are.",
        {
            "workloads": items(
                record(
                    file=TEXT,
                    form=TEXT,
                    **TRACE,
                    cao_features=about(table(maybe(NUMBER)), "the eighteen of Cao, section 9.3"),
                )
            ),
            "distances": about(
                items(items(NUMBER)),
                "between all pairs, in the order of the workloads: 0 alike, 1 nothing in common",
            ),
            "differences": about(
                maybe(DIFFERENCES), "of exactly two workloads, the first being the original"
            ),
        },
    ),
    "sharp-candidates": (
        "The actions that a round of the search tries in the hottest rule of a rule set.",
        {
            "base": record(**RULE_SET),
            "hottest_rule": about(COUNT, "its number, from 1"),
            "candidates": items(record(number=COUNT, m_x100=INTEGER, b_x100=INTEGER, tau_us=COUNT)),
        },
    ),
    "sharp-deploy": (
        "Rules that are in force.",
        {
            "rules": about(TEXT, "id: the same rules have the same everywhere"),
            "workload": TEXT,
            "controllers": about(items(TEXT), "that keep them"),
        },
    ),
    "sharp-explain": (
        "A rule set in words.",
        {
            "id": about(TEXT, "the same rules have the same everywhere"),
            "updates_per_second": COUNT,
            "scenario": about(maybe(TEXT), "in which their use was counted; null: as the file has it"),
            "rules": items(
                record(
                    **RULE,
                    when=about(TEXT, "the congestion state in which it holds"),
                    what=about(TEXT, "what it does to how many requests go and how fast"),
                    window_settles_at=about(
                        maybe(NUMBER), "where its repeated use leads the window; null: it stays"
                    ),
                    used_share=about(maybe(NUMBER), "of all uses of rules; null where nothing was counted"),
                )
            ),
            "plots": about(items(TEXT), "files"),
        },
    ),
    "sharp-library-add": (
        "A workload added to a rule library, with the rules made for it.",
        {
            "workload": about(TEXT, "its name in the library"),
            "source": about(TEXT, "what its features were taken from"),
            "rules": about(maybe(TEXT), "their id; null where none were given"),
            "objective": TEXT,
            "gain": about(maybe(NUMBER), "of these rules on this workload, relative; null where unknown"),
            "gain_low": about(maybe(NUMBER), "95% interval"),
            "gain_high": maybe(NUMBER),
        },
    ),
    "sharp-library-bootstrap": (
        "What a rule library holds after a bootstrap.",
        {
            "library": about(TEXT, "its file"),
            "complete": about(FLAG, "false: the budget was spent, and the same command goes on"),
            "workloads": COUNT,
            "rules": about(COUNT, "different rule sets"),
            "gains": about(COUNT, "of rule sets on workloads"),
        },
    ),
    "sharp-library-find": (
        "The rules of which the most gain is to be expected on a workload.",
        {
            "workload": TEXT,
            "objective": TEXT,
            "choice": about(maybe(record(**CHOICE)), "null where no gain is to be expected"),
            "nearest": about(
                items(record(workload=TEXT, distance=about(NUMBER, "0 alike, 1 nothing in common"))),
                "workloads of the library that are most alike",
            ),
            "out": about(maybe(TEXT), "the file that the rules were written to"),
        },
    ),
    "sharp-library-ls": (
        "What a rule library holds.",
        {
            "workloads": items(record(name=TEXT, source=TEXT)),
            "rules": items(
                record(
                    id=TEXT,
                    workload=about(TEXT, "that they were made for"),
                    objective=TEXT,
                    gain=about(maybe(NUMBER), "on that workload"),
                    tried_on=about(COUNT, "workloads"),
                )
            ),
            "gains": COUNT,
        },
    ),
    "sharp-library-predict": (
        "What the rule sets of a library are expected to gain on a workload, the most first.",
        {
            "workload": TEXT,
            "objective": TEXT,
            "learned_from": about(COUNT, "gains"),
            "predicted": items(
                record(
                    rules=TEXT,
                    made_for=TEXT,
                    gain=about(NUMBER, "relative, above zero is better"),
                    sd=about(NUMBER, "standard deviation of what may come"),
                )
            ),
        },
    ),
    "sharp-library-show": (
        "A workload or rule set of a library, or what it has learned; the other two are null.",
        {
            "objective": TEXT,
            "workload": maybe(
                record(
                    name=TEXT,
                    source=TEXT,
                    at=about(TEXT, "when it was added"),
                    features=table(maybe(NUMBER)),
                    gains=items(
                        record(
                            rules=TEXT,
                            gain=NUMBER,
                            gain_low=maybe(NUMBER),
                            gain_high=maybe(NUMBER),
                            pairs=about(COUNT, "of runs; 0 where the gain was given"),
                        )
                    ),
                )
            ),
            "rules": maybe(record(id=TEXT, text=TEXT, workload=TEXT, objective=TEXT, how=TEXT, at=TEXT)),
            "learned": maybe(
                record(
                    pairs=about(COUNT, "of workloads, that information gains come from"),
                    gains=about(COUNT, "that the tree comes from"),
                    features=items(
                        record(
                            feature=TEXT,
                            bits=about(NUMBER, "that a change of it tells about what becomes of a gain"),
                            share=about(NUMBER, "of all there is to be told"),
                        )
                    ),
                    tree=about(items(TEXT), "a regression tree of gains, indented lines"),
                )
            ),
        },
    ),
    "sharp-refine": (
        "What refining a rule while it runs came to.",
        {
            "rule": about(COUNT, "number of the rule, from 1"),
            "before": about(TEXT, "id of the rules in force at the beginning"),
            "rules": about(TEXT, "id of those at the end"),
            "rule_set": record(**RULE_SET),
            "stopped": {"enum": ["summits", "steps", "time"]},
            "intervals": about(COUNT, "measured"),
            "verification": about(
                maybe(REFINEMENT_STEP), "the end against the beginning; null where nothing was changed"
            ),
            "steps": items(REFINEMENT_STEP),
        },
    ),
    "sharp-search": (
        "A search for rules: the best set, how it was found, and what it is worth on fresh seeds.",
        {
            "scenario": about(TEXT, "its name"),
            "also": about(COUNT, "further scenarios that each run was made in"),
            "first_in": about(maybe(TEXT), "name of the scenario that the search began in"),
            "first_evaluations": about(COUNT, "runs there"),
            "objective": TEXT,
            "schedule": {"enum": list(SCHEDULES)},
            "stopped": {"enum": ["evaluations", "time", "no-gain", "rules"]},
            "evaluations": about(COUNT, "runs of the search"),
            "epochs": COUNT,
            "rounds": COUNT,
            "elapsed_s": about(NUMBER, "parts before an interruption included"),
            "best": maybe(
                record(
                    **RULE_SET,
                    score=about(maybe(NUMBER), "mean over its runs of the search"),
                    score_low=about(maybe(NUMBER), "95% interval; null with one run"),
                    score_high=maybe(NUMBER),
                    runs=COUNT,
                )
            ),
            "course": about(
                items(record(evaluations=COUNT, score=NUMBER)), "after how many runs the best changed"
            ),
            "verification": record(
                "the best rules against the system as it is, in turns, on fresh seeds",
                kind={"enum": ["improved", "default-is-fine", "not-verified"]},
                best_mean=about(maybe(NUMBER), "score"),
                default_mean=maybe(NUMBER),
                difference=about(maybe(NUMBER), "above zero is better, as in all that follows"),
                difference_low=about(maybe(NUMBER), "of a 99% interval that holds at all looks together"),
                difference_high=maybe(NUMBER),
                gain_relative=about(maybe(NUMBER), "null where scores are not all above zero"),
                gain_low=maybe(NUMBER),
                gain_high=maybe(NUMBER),
                p_value=about(maybe(NUMBER), "always-valid"),
                pairs=COUNT,
                note=TEXT,
            ),
            "out": about(TEXT, "the file with the best rule set"),
        },
    ),
    "sharp-show": (
        "Which rules are in force where, and how they are used.",
        {
            "workloads": items(
                record(
                    workload=TEXT,
                    controllers=items(
                        record(
                            controller=TEXT,
                            rules=about(maybe(TEXT), "id; null without rules"),
                            on_trial=about(FLAG, "whether they go unless they are kept"),
                        )
                    ),
                    rule_set=about(
                        maybe(record(**RULE_SET)),
                        "with the use of all controllers together; null unless all follow the same",
                    ),
                )
            ),
            "problems": about(
                items(record(controller=TEXT, reason=TEXT)), "who is missing or does not answer"
            ),
        },
    ),
    "sharp-split": (
        "A rule set, one rule of which was split.",
        {"split_rule": about(COUNT, "the number that it had, from 1"), **RULE_SET},
    ),
    "sharp-stop": (
        "Controllers that follow no rules any more.",
        {"workload": TEXT, "controllers": items(TEXT)},
    ),
    "sharp-watch": (
        "Rules found, verified and taken back while a load ran.",
        {
            "objective": TEXT,
            "virtual_seconds": NUMBER,
            "events": items(
                record(
                    kind={
                        "enum": [
                            "observed",
                            "same",
                            "changed",
                            "none",
                            "deployed",
                            "compared",
                            "verified",
                            "rolled-back",
                        ]
                    },
                    at_s=NUMBER,
                    choice=maybe(record(**CHOICE)),
                    gain=about(maybe(NUMBER), "shown so far"),
                    gain_low=about(maybe(NUMBER), "of an interval that holds at all looks together"),
                    gain_high=maybe(NUMBER),
                    pairs=about(maybe(COUNT), "of intervals with and without the rules"),
                    distance=about(maybe(NUMBER), "of the workload from what it was"),
                )
            ),
            "in_force": about(maybe(record(**RULE_SET)), "at the end"),
        },
    ),
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
    "sim-run": (
        "What one or more runs of a simulated cluster brought; figures are means over the runs.",
        {
            "name": about(TEXT, "of the scenario"),
            "clients": COUNT,
            "servers_count": COUNT,
            "controller": TEXT,
            "window": about(NUMBER, "requests in flight of a stream, at first"),
            "tau_us": about(NUMBER, "least gap between a stream's requests, at first"),
            "warmup_s": about(NUMBER, "virtual seconds before anything is counted"),
            "seeds": about(items(COUNT), "one a run"),
            **SIM_FIGURES,
            "virtual_seconds": about(NUMBER, "counted in each run"),
            "wall_seconds": about(NUMBER, "of all runs together"),
            "events": about(COUNT, "of all runs together, warm-up included"),
            "intervals": about(
                record(**{name: maybe(items(NUMBER)) for name in SIM_FIGURES}),
                "95% intervals of the means, low and high; null with one run",
            ),
            "read_latency": about(SIM_LATENCY, "of the first run, as all that follows but runs"),
            "write_latency": SIM_LATENCY,
            "tick_s": NUMBER,
            "total_mb_per_s": about(items(NUMBER), "by tick"),
            "clients_mb_per_s": about(items(items(NUMBER)), "by client and tick"),
            "servers": items(
                record(
                    read_mb_per_s=about(NUMBER, "from its device"),
                    write_mb_per_s=about(NUMBER, "to its device"),
                    device_busy_percent=NUMBER,
                    device_positioning_percent=about(NUMBER, "share of the time spent on seeks and rotation"),
                    device_sequential_percent=about(NUMBER, "pieces that followed the one before"),
                    link_in_busy_percent=NUMBER,
                    link_out_busy_percent=NUMBER,
                    requests_mean=about(NUMBER, "at the server, over time"),
                )
            ),
            "streams": about(
                maybe(
                    items(
                        record(
                            "a client and a server, each indicator by tick",
                            client=COUNT,
                            server=COUNT,
                            **{name: items(NUMBER) for name in INDICATORS},
                        )
                    )
                ),
                "null without --streams",
            ),
            "runs": items(record(seed=COUNT, events=COUNT, **SIM_FIGURES)),
            "plots": items(TEXT),
        },
    ),
    "sim-serve": (
        "A simulated cluster that runs; printed as soon as its controllers answer.",
        {
            "scenario": TEXT,
            "url": about(TEXT, "of the message server"),
            "connection_file": about(
                maybe(TEXT), "for those who ask the controllers; null where the server runs elsewhere"
            ),
            "controllers": items(record(controller=TEXT, workload=TEXT)),
        },
    ),
    "sim-sweep": (
        "A simulated cluster under static windows and gaps.",
        {
            "seeds": about(COUNT, "runs of each point"),
            "figure": about({"enum": list(FIGURES)}, "by which points are compared, larger is better"),
            "scenarios": items(
                record(
                    name=TEXT,
                    baseline=about(SIM_POINT, "the scenario as it is"),
                    points=items(SIM_POINT),
                    best=record(
                        "the point with the largest mean; its gain is that of other seeds",
                        window=NUMBER,
                        tau_us=NUMBER,
                        gain_relative=NUMBER,
                        gain_low=about(maybe(NUMBER), "Welch's interval; null where there is none"),
                        gain_high=maybe(NUMBER),
                        runs_per_side=COUNT,
                    ),
                    events=COUNT,
                )
            ),
            "events": COUNT,
            "wall_seconds": NUMBER,
            "plots": items(TEXT),
        },
    ),
    "error": (
        "What any command prints instead of its own document when it fails; also on stderr, as one line.",
        {
            "error": record(
                kind=about(TEXT, "the error's class"),
                message=about(TEXT, "one line: the offending key or name, its value, what is allowed"),
                exit_status={"enum": [0, 1, 2, 130]},
            )
        },
    ),
}


def schemas() -> dict[str, str]:
    """Every schema's text by file name."""
    texts: dict[str, str] = {}
    for name, (description, keys) in DOCUMENTS.items():
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"ascar/{name}/{SCHEMAS[name]}",
            **record(description, schema={"const": f"ascar/{name}/{SCHEMAS[name]}"}, **keys),
        }
        texts[f"{name}.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return texts


def main() -> int:
    """Write the files, or with --check compare them."""
    texts = schemas()
    if "--check" in sys.argv[1:]:
        there = {path.name: path.read_text("utf-8") for path in DIRECTORY.glob("*.json")}
        stale = sorted(name for name in {*there, *texts} if there.get(name) != texts.get(name))
        sys.stdout.writelines(f"docs/schemas/{name} is out of date: run `make docs`\n" for name in stale)
        return 1 if stale else 0
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for path in DIRECTORY.glob("*.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (DIRECTORY / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
