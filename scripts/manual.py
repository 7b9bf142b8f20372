"""Manual pages from the same text as `--help`: of `ascar` from its commands, of `ascard` from its help pages.

python scripts/manual.py DIRECTORY    writes NAME.1 for each
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import typer
from command_help import (
    described_by,
    examples_of,
    help_of_ascard,
    purpose_of,
    roles,
    rows_of,
    usage_of,
    write_files,
)

from ascar import __version__
from ascar.cli.app import app
from ascar.cli.front_page import COMMANDS, EXAMPLES, OPTIONS, PURPOSE

if TYPE_CHECKING:
    from collections.abc import Iterable

ENVIRONMENT = (
    ("ASCAR_HISTORY", "The history: a file, or the URL of a database, in place of the one under FILES."),
    ("ASCAR_LIBRARY", "The library: a file, in place of the one under FILES."),
    ("ASCAR_NATS_URL", "The address of the message server."),
    ("ASCAR_NATS_CREDENTIALS", "A connection file, or a .creds file, for the message server."),
    (
        "ASCAR_NATS_CA, ASCAR_NATS_CERTIFICATE, ASCAR_NATS_KEY",
        "Files of TLS, for the connection to the message server.",
    ),
    ("ASCAR_RUNTIME_DIR", "The directory for what lives as long as sessions and testbeds do."),
    ("NO_COLOR", "Print without colours."),
)
FILES = (
    ("~/.local/state/ascar/history.sqlite", "What was measured; XDG_STATE_HOME replaces ~/.local/state."),
    ("~/.local/state/ascar/library.jsonl", "What helped which workload."),
    ("~/.local/state/ascar/journal", "What is changed of the user's files, and how it was before."),
    ("/var/lib/ascar/journal", "What is changed on the machine, and how it was before."),
    ("/etc/ascar", "The files that the units of agent, interface, learner and message server read."),
)
_HEADING = re.compile(r"^(\w[\w ]*):(?: (.*))?$")


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    made = {"ascar.1": _front()}
    root: Any = typer.main.get_command(app)
    for name, summary in COMMANDS.items():
        made[f"ascar-{name}.1"] = _command(name, summary, root.commands[name])
    of_roles = [f"ascard-{role}" for role in roles()]
    made["ascard.1"] = _of_help("ascard", help_of_ascard(), of_roles)
    for page in of_roles:
        made[f"{page}.1"] = _of_help(page, help_of_ascard(page.removeprefix("ascard-")), ["ascard"])
    return made


# ascar


def _front() -> str:
    lines = [*begin("ascar", PURPOSE.partition("\n\n")[0]), ".SH SYNOPSIS", ".B ascar"]
    lines += [f"{_text('[OPTIONS] COMMAND [ARGS]...')}", ".SH DESCRIPTION", *_paragraphs(PURPOSE)]
    lines += [".SH OPTIONS", *_definitions(OPTIONS)]
    lines += [".SH COMMANDS", *_definitions((f"ascar-{name}(1)", said) for name, said in COMMANDS.items())]
    lines += [".SH ENVIRONMENT", *_definitions(ENVIRONMENT)]
    lines += [".SH FILES", *_definitions(FILES)]
    # Its first two lines are those of the help page: that lines stay, and the heading.
    lines += [".SH EXAMPLES", *literal(line.strip() for line in EXAMPLES.splitlines()[2:])]
    return "\n".join([*lines, *_see(("ascard",))])


def _command(name: str, summary: str, command: Any) -> str:
    lines = begin(f"ascar-{name}", summary)
    if hasattr(command, "commands"):
        lines += [".SH SYNOPSIS", f".B {_text(f'ascar {name}')}", _text("COMMAND [OPTIONS] [ARGS]...")]
        lines += [".SH DESCRIPTION", *_paragraphs(purpose_of(command))]
        for inner, one in command.commands.items():
            lines += [f".SH {_text(f'ascar {name} {inner}'.upper())}", *_body(f"ascar {name} {inner}", one)]
    else:
        lines += [".SH SYNOPSIS", *_usage(f"ascar {name}", command), ".SH DESCRIPTION"]
        lines += _paragraphs(purpose_of(command))
        lines += [".SH OPTIONS", *_options(command), ".SH EXAMPLES", *literal(examples_of(command))]
    return "\n".join([*lines, *_see(("ascar",))])


def _body(path: str, command: Any) -> list[str]:
    lines = [*_usage(path, command), ".PP", *_paragraphs(purpose_of(command))]
    return [*lines, *_options(command), *literal(examples_of(command))]


def _usage(path: str, command: Any) -> list[str]:
    words = " ".join(usage_of(command))
    return [f".B {_text(path)}", *([_text(words)] if words else [])]


def _options(command: Any) -> list[str]:
    return _definitions(
        (names, said if default is None else f"{said} [default: {_shown(default)}]".strip())
        for names, said, default in described_by(command)
    )


def _shown(default: Any) -> str:
    """A default as the help page has it."""
    return ", ".join(map(str, default)) if isinstance(default, (list, tuple)) else str(default)


# ascard


def _of_help(name: str, text: str, others_too: Iterable[str]) -> str:
    """A page from a help page: prose, and the sections Usage, Commands, Options and Examples."""
    summary, _, rest = text.strip().partition("\n\n")
    lines = begin(name, " ".join(summary.split()))
    for block in rest.split("\n\n"):
        first, *others = block.splitlines()
        heading = _HEADING.match(first)
        match heading and heading[1]:
            case "Usage" if heading:
                usage = [heading[2] or "", *(line.strip() for line in others)]
                lines += [".SH SYNOPSIS", *literal(usage), ".SH DESCRIPTION"]
            case "Options" | "Commands" as title:
                lines += [f".SH {title.upper()}", *_definitions(rows_of("\n".join(others)))]
            case "Examples":
                lines += [".SH EXAMPLES", *literal([line.strip() for line in others])]
            case _:
                lines += _paragraphs(block)
    return "\n".join([*lines, *_see(others_too)])


# roff (man(7))


def begin(name: str, summary: str) -> list[str]:
    """The title, and the name with its line for `whatis`."""
    title = f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "ascar {__version__}"'
    return [title, ".SH NAME", f"{_text(name)} \\- {_text(summary.rstrip('.'))}"]


def _see(names: Iterable[str]) -> list[str]:
    *others, last = (f".BR {_text(name)} (1)" for name in names)
    return [".SH SEE ALSO", *(f"{other}," for other in others), last, ""]


def _paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        indented = all(line.startswith("    ") for line in paragraph.splitlines() if line)
        lines += (
            literal(paragraph.splitlines())
            if indented
            else [".PP", *map(_text, paragraph.replace("\b", "").splitlines())]
        )
    return lines


def _definitions(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [line for name, said in rows for line in (".TP", f".B {_text(name)}", _text(said) or "\\&")]


def literal(lines: Iterable[str]) -> list[str]:
    """Lines that stay as they are."""
    return [".PP", ".RS 4", ".nf", *map(_text, lines), ".fi", ".RE"]


def _text(text: str) -> str:
    """A line as it stands: no sign of it is a request or an escape."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


if __name__ == "__main__":
    sys.exit(write_files(pages))
