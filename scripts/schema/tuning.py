"""Studies: `tune` and what is before and after it."""

from __future__ import annotations

from schema.trial import CONFIGURATION, OUTCOME, PARETO_POINT, VALUE
from schema.words import COUNT, FLAG, NUMBER, TEXT, Schema, about, items, maybe, record, table

QUANTILES = record(median=NUMBER, p90=NUMBER, max=NUMBER)

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

DOCUMENTS: dict[str, tuple[str, dict[str, Schema]]] = {
    "tune": (
        "What a study came to.",
        {
            **OUTCOME,
            "pareto": about(
                items(PARETO_POINT), "of a study with several objectives, its Pareto set; else empty"
            ),
        },
    ),
    "sweep": (
        "What a sweep saw.",
        {**OUTCOME, "complete": about(FLAG, "every configuration measured"), "file": maybe(TEXT)},
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
    "space": (
        "What can be tuned: a space document, and what a reader would otherwise have to work out.",
        {
            "format": {"const": "ascar-space"},
            "version": {"const": 2},
            "name": TEXT,
            "parameters": items({"type": "object", "required": ["name", "kind", "default", "cost"]}),
            "constraints": items(TEXT),
            "pinned": table(VALUE),
            "allow_weaker": about(items(TEXT), "values and guarantees that may be weaker than the default"),
            "default_configuration": CONFIGURATION,
            "valid_configurations": about(maybe(COUNT), "null where they cannot be counted"),
            "valid_configurations_without_weaker": about(
                maybe(COUNT), "those that promise as much as the default does"
            ),
        },
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
    "report": ("Where the report is.", {"run_id": COUNT, "page": about(TEXT, "the HTML file")}),
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
