"""`ascar sharp`."""

from __future__ import annotations

from ascar.sharp.plan import SCHEDULES
from schema.trial import DIFFERENCE
from schema.words import COUNT, FLAG, INTEGER, NUMBER, TEXT, Schema, about, items, maybe, record, table

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
    "sharp-learn": (
        "What learning the numbers of rules while they run came to.",
        {
            "objective": TEXT,
            "ticks": about(COUNT, "that were read"),
            "settings": about(COUNT, "of the numbers that were visited"),
            "before": about(TEXT, "id of the rules kept at the beginning"),
            "rules": about(TEXT, "id of those kept at the end"),
            "rule_set": record(**RULE_SET),
            "improved": about(FLAG, "whether they are others, shown to be better"),
            "gain_relative": about(
                maybe(NUMBER),
                "of the comparison in turns; null: nothing to compare, or scores that are not all above zero",
            ),
            "gain_low": about(maybe(NUMBER), "99% interval, at all looks together"),
            "gain_high": maybe(NUMBER),
            **DIFFERENCE,
            "pairs": about(COUNT, "of intervals"),
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
    "sharp-down": (
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
                    gain=about(
                        maybe(NUMBER), "shown so far, relative; null where scores are not all above zero"
                    ),
                    gain_low=about(maybe(NUMBER), "of an interval that holds at all looks together"),
                    gain_high=maybe(NUMBER),
                    **DIFFERENCE,
                    pairs=about(maybe(COUNT), "of intervals with and without the rules"),
                    distance=about(maybe(NUMBER), "of the workload from what it was"),
                )
            ),
            "in_force": about(maybe(record(**RULE_SET)), "at the end"),
        },
    ),
}
