"""Options of `ascar sharp search`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ScenarioName = Annotated[
    str | None,
    typer.Argument(
        metavar="[SCENARIO]",
        help="A scenario file (.toml), or the name of a preset; without one: controllers that are there.",
    ),
]
Settle = Annotated[
    str, typer.Option(metavar="DURATION", help="Of controllers' runs: left out after a change of rules.")
]
RunLength = Annotated[str, typer.Option("--run", metavar="DURATION", help="Of controllers' runs: how long.")]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Write the best rule set here.")]
ObjectiveText = Annotated[
    str,
    typer.Option(
        metavar="OBJECTIVE",
        help="'maximize FORMULA', 'minimize FORMULA', or a form of section 3.1.5, e.g. tp-stdev:1.",
    ),
]
Budget = Annotated[
    str | None, typer.Option(metavar="DURATION", help="For all of it, the last comparison included.")
]
Evaluations = Annotated[int | None, typer.Option(min=1, metavar="N", help="Runs of the search at most.")]
Faithful = Annotated[
    bool, typer.Option("--faithful", help="Algorithm 1 to the letter; the same as --schedule faithful.")
]
ScheduleName = Annotated[str, typer.Option(metavar="sharp|faithful|remy", help="How to search.")]
Start = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Begin with this rule set instead of one rule.")
]
Patience = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="End after so many epochs without gain; 0: never.")
]
Also = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE", help="Each run also with this change; metrics are means of all. Repeat."
    ),
]
FirstIn = Annotated[
    str | None,
    typer.Option(metavar="SCENARIO", help="Search here first, then with what was found."),
]
Pairs = Annotated[int, typer.Option(metavar="N", help="Pairs of the last comparison at most.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a search that was cut off.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there, the journal too.")]
