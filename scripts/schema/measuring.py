"""What is said of means and of levels: `measure`, `analyze`, `compare`, `watch`."""

from __future__ import annotations

from schema.words import COUNT, FLAG, NUMBER, TEXT, Schema, about, items, maybe, record, table

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
    "watch-shift": (
        "A line of `ascar watch`: a shift of the mean, printed as soon as it is found.",
        {"name": about(TEXT, "of the column"), **SHIFT},
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
}
