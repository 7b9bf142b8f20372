"""`ascar sim`."""

from __future__ import annotations

from ascar.simulation import FIGURES, INDICATORS, Latency
from schema.words import COUNT, NUMBER, TEXT, Schema, about, items, maybe, record

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

DOCUMENTS: dict[str, tuple[str, dict[str, Schema]]] = {
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
}
