"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def examples(*lines: str) -> str:
    """The end of a command's help: examples, each on a line of its own."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])  # "\b": lines stay as they are


def _runs(incomplete: str) -> list[str]:
    """Names and ids of the history's runs, for shell completion; silent where there is no history."""
    from ascar.errors import AscarError
    from ascar.history import History

    try:
        with History.existing() as history:
            known = {text for run in history.runs() for text in (run.name, str(run.id))}
    except AscarError:
        return []
    return sorted(text for text in known if text.startswith(incomplete))


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout; its schema is in docs/schemas.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
FormatDevice = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE", help="Confirm that this block device, which the study names, may be formatted."
    ),
]
StudyFile = Annotated[
    Path, typer.Argument(metavar="STUDY.toml", help="A study file; `ascar init` writes one.")
]
StudyOrRun = Annotated[
    str,
    typer.Argument(
        metavar="STUDY|RUN",
        help="A study's name or file (its latest run), or a run's number; `ascar history ls` lists them.",
        autocompletion=_runs,
    ),
]
