"""The help page of `ascar` itself, which is shown before the parser of command lines is imported."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

from ascar.cli.epilog import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# The widths within which a help page is set, as by the parser for those of the commands.
_COLUMNS_MIN, _COLUMNS_MAX, _MARGIN = 52, 80, 2
_GAP = 2

PURPOSE = """\
Find good settings for storage systems, and believe only numbers that can be defended.

Exit status: 0 done, 1 the work failed, 2 bad input (nothing was touched), 3 no decision or stopped early
(results are kept), 130 interrupted (everything was put back)."""

EXAMPLES = examples(
    "ascar doctor                       what this machine can tune",
    "ascar init localfs -o study.toml   a commented study file",
    "ascar tune study.toml              search, then verify against the default",
)

COMMANDS: Mapping[str, str] = {
    "init": "Write a commented study file to start from.",
    "doctor": "Say what this machine can tune, and what is missing.",
    "space": "Show parameters, change costs, valid configurations.",
    "check": "Try a study out: the load once, every parameter once.",
    "adapter": "Set a system's parameters for an agent, by lines of JSON.",
    "measure": "Run a command until its result can be trusted.",
    "analyze": "Recorded readings: a mean with an honest interval.",
    "compare": "Which command, or which recording, is better.",
    "watch": "Readings over days: has the mean shifted, and since when?",
    "tune": "Search for the best configuration, and verify it.",
    "verify": "Compare a configuration of a run with the default again.",
    "apply": "Put a configuration in force.",
    "confirm": "Keep in force what `apply --confirm` put in force.",
    "drift": "Is a configuration still in force, and still better?",
    "restore": "Put back what was there before.",
    "export": "Print a configuration for an administrator.",
    "sweep": "Measure every configuration: make a dataset.",
    "importance": "Which parameters matter, and how sure the order is.",
    "variation": "How much runs of one configuration differ, and why.",
    "explore": "Look at what was measured, in the browser.",
    "report": "Write one page with the numbers and the plots.",
    "capes": "Keep tuning a working system.",
    "history": "Look at, export, import and purge what was measured.",
    "library": "Keep what helped which workload, and find it again.",
    "lab": "Try optimizers out where the truth is known.",
    "sharp": "Make congestion rules, and put them in force.",
    "sim": "Simulate a storage cluster.",
    "testbed": "Start servers, disks and clients on this machine.",
    "schema": "Print the JSON Schema of what a command prints with --json.",
    "workload": "Record a workload, and write a short one that stands for it.",
}
"""All commands in the order of their use, each with its line on the page."""

OPTIONS: Sequence[tuple[str, str]] = (
    ("-V, --version", "Print the version, and what is installed."),
    ("--install-completion", "Install completion for the current shell."),
    (
        "--show-completion",
        "Show completion for the current shell, to copy it or customize the installation.",
    ),
    ("-h, --help", "Show this message and exit."),
)


def front_page(columns: int | None = None) -> str:
    """The page, without a line feed at its end.

    Args:
        columns: the width of the terminal; None asks for it.
    """
    shown = shutil.get_terminal_size().columns if columns is None else columns
    return "\n".join(_lines(max(_COLUMNS_MIN, min(_COLUMNS_MAX, shown)) - _MARGIN))


def _lines(width: int) -> Iterator[str]:
    yield "Usage: ascar [OPTIONS] COMMAND [ARGS]..."
    for paragraph in PURPOSE.split("\n\n"):
        yield ""
        yield from textwrap.wrap(paragraph, width, initial_indent="  ", subsequent_indent="  ")
    yield from _list("Options", OPTIONS, width)
    yield from _list("Commands", tuple(COMMANDS.items()), width)
    yield ""
    yield from (f"  {line}" for line in EXAMPLES.splitlines()[1:])  # the first one says that lines stay


def _list(title: str, rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """A heading, and what is defined below it, in two columns."""
    first = max(len(name) for name, _ in rows) + _GAP
    yield ""
    yield f"{title}:"
    for name, sentence in rows:
        head, *rest = textwrap.wrap(sentence, max(10, width - first - _MARGIN))
        yield f"  {name:{first}}{head}"
        yield from (f"  {'':{first}}{line}" for line in rest)
