"""`ascar workload`: what a workload does, and a short one that stands for it."""

import typer

from ascar.cli.workload import features, record

__all__ = ["app"]

app = typer.Typer(
    help="Record what a workload does, write a short one that stands for it, tell how alike two are.",
    rich_markup_mode=None,
)
app.command("record", epilog=record.EXAMPLES, short_help="Write a short workload that stands for another.")(
    record.record
)
app.command("features", epilog=features.EXAMPLES, short_help="Tell how workloads press on storage.")(
    features.features
)
