"""`ascar capes up`, `status`, `control`, `prove`, `stop`."""

from __future__ import annotations

from schema.trial import DIFFERENCE, VALUE
from schema.words import COUNT, FLAG, INTEGER, NUMBER, TEXT, Schema, about, items, maybe, record, table

SETTING = about(table(VALUE), "by key of the setting, see capes-protocol")
FACTS: Schema = {"type": "object"}
PROOF: dict[str, Schema] = {
    "pairs": about(COUNT, "of phases with and without tuning; the independent samples of the interval"),
    "baseline_mean": about(maybe(NUMBER), "over the phases' means"),
    "tuned_mean": maybe(NUMBER),
    "baseline_ticks": about(COUNT, "that count"),
    "tuned_ticks": COUNT,
    "baseline_samples": about(COUNT, "independent samples that these ticks are worth"),
    "tuned_samples": COUNT,
    "gain": about(
        maybe(NUMBER),
        "relative, above zero is better; null with fewer than two pairs, and where not all means are above 0",
    ),
    "gain_low": about(maybe(NUMBER), "lower end of its interval"),
    "gain_high": maybe(NUMBER),
    **DIFFERENCE,
    "confidence": NUMBER,
    "p_value": about(maybe(NUMBER), "always-valid"),
    "claim": about({"enum": ["gain", "loss", "none"]}, "none: the interval holds zero"),
    "method": TEXT,
}
BAND = about(
    {"anyOf": [record(mean=NUMBER, low=maybe(NUMBER), high=maybe(NUMBER)), {"type": "null"}]},
    "with an interval of 95%",
)

DOCUMENTS: dict[str, tuple[str, dict[str, Schema]]] = {
    "capes-control": (
        "What was asked of a session, and its answer.",
        {
            "session": TEXT,
            "operation": TEXT,
            "asked": about(FACTS, "the request's keys, see capes-protocol"),
            "answer": about(FACTS, "the interface's, see capes-protocol"),
        },
    ),
    "capes-prove": ("What a session gains: tuned and untuned phases in turns.", PROOF),
    "capes-status": (
        "How a session stands; with --follow one on a line after each tick.",
        {
            "session": TEXT,
            "objective": maybe(TEXT),
            "lower_is_better": FLAG,
            "interval_s": NUMBER,
            "tick": about(maybe(INTEGER), "the last one"),
            "metrics": about(table(maybe(NUMBER)), "null: cannot be told"),
            "performance": about(
                items({"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}),
                "tick and objective, the last 600 that had one",
            ),
            "now": about(maybe(NUMBER), "the objective in the last tick"),
            "gain": about(maybe(NUMBER), "last minute over baseline, minus one; a look, and no proof"),
            "baseline": about(
                {"anyOf": [record(mean=NUMBER, low=NUMBER, high=NUMBER, ticks=COUNT), {"type": "null"}]},
                "while every knob stood where it was: mean, 10th and 90th percentile",
            ),
            "knobs": items(
                record(
                    key=TEXT,
                    value=about({"anyOf": [VALUE, {"type": "null"}]}, "in force"),
                    default=about({"anyOf": [VALUE, {"type": "null"}]}, "before the session"),
                    minimum=maybe(NUMBER),
                    maximum=maybe(NUMBER),
                    choices=items(TEXT),
                )
            ),
            "mode": maybe(TEXT),
            "holding": about(maybe(TEXT), "why every action is refused now"),
            "stored": about(FLAG, "whether the last tick is on disk"),
            "workload": maybe(TEXT),
            "nodes": items(record(name=TEXT, is_here=FLAG, indicators=COUNT, seen_tick=maybe(INTEGER))),
            "learner": {
                "anyOf": [
                    record(
                        tick=maybe(INTEGER),
                        algorithm=maybe(TEXT),
                        phase=maybe(TEXT),
                        epsilon=maybe(NUMBER),
                        prediction_error=maybe(NUMBER),
                        expected=BAND,
                        baseline=BAND,
                        wanted=SETTING,
                        changes=COUNT,
                        refused=COUNT,
                    ),
                    {"type": "null"},
                ]
            },
            "phase": about(maybe(TEXT), "of the session: learning, baseline, tuned, ending"),
            "until_s": about(maybe(NUMBER), "when it ends by itself, seconds since 1970"),
            "parts": items(record(name=TEXT, state=TEXT, pid=maybe(COUNT), restarts=COUNT)),
            "proof": about({"type": ["object", "null"]}, "as in capes-prove, so far"),
            "refused": about(
                items(record(tick=INTEGER, id=TEXT, wanted=SETTING, verdict=TEXT, reason=TEXT)),
                "the last 50, newest first",
            ),
            "refusals": about(table(COUNT), "by kind"),
            "verdicts": about(table(COUNT), "by verdict"),
            "happened": about(
                items(record(tick=maybe(INTEGER), event=TEXT, detail=FACTS)), "the last 50, newest first"
            ),
        },
    ),
    "capes-down": (
        "A session that was ended.",
        {"session": TEXT, "pid": COUNT, "keep": about(FLAG, "whether the learnt setting was to stay")},
    ),
    "capes-up": (
        "What came of a session.",
        {
            "session": TEXT,
            "study": TEXT,
            "seconds": about(NUMBER, "from the first tick on"),
            "stopped": {"enum": ["time", "asked", "problem"]},
            "setting": about(SETTING, "that did best"),
            "defaults": about(SETTING, "before the session"),
            "kept": about({"anyOf": [SETTING, {"type": "null"}]}, "knobs that stay set; null: none were to"),
            "left_changed": about(SETTING, "knobs that could not be put back; empty is good"),
            "proof": {"anyOf": [record(**PROOF), {"type": "null"}]},
            "broken_pairs": about(COUNT, "pairs of phases that did not count"),
            "restarts": about(table(COUNT), "of each process"),
            "verdicts": about(table(COUNT), "on actions"),
            "refusals": about(table(COUNT), "by kind"),
            "last_tick": maybe(INTEGER),
            "problem": about(maybe(TEXT), "why it ended early"),
        },
    ),
}
