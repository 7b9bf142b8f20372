"""`ascar workload`."""

from __future__ import annotations

from schema.words import COUNT, NUMBER, TEXT, Schema, about, items, maybe, record, table

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

DOCUMENTS: dict[str, tuple[str, dict[str, Schema]]] = {
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
                    "what --replay-in found",
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
}
