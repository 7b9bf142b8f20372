"""Manual pages from the same text as `--help`: of `ascar` from its commands, of `ascard` from its help pages.

python scripts/manual.py DIRECTORY    writes NAME.1 for each
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ascar import __version__
from ascar.cli.app import app
from ascar.cli.front_page import COMMANDS, EXAMPLES, OPTIONS, PURPOSE
from ascar.program.node_binary import find_ascard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROLES = ("agent", "interface", "keeper", "load")
_HEADING = re.compile(r"^(\w[\w ]*):(?: (.*))?$")
_DESCRIBED = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    made = {"ascar.1": _front()}
    root: Any = typer.main.get_command(app)
    for name, summary in COMMANDS.items():
        made[f"ascar-{name}.1"] = _command(name, summary, root.commands[name])
    made["ascard.1"] = _of_help("ascard", _help_of())
    for role in ROLES:
        made[f"ascard-{role}.1"] = _of_help(f"ascard-{role}", _help_of(role))
    return made


# ascar


def _front() -> str:
    lines = [*begin("ascar", PURPOSE.partition("\n\n")[0]), ".SH SYNOPSIS", ".B ascar"]
    lines += [f"{_text('[OPTIONS] COMMAND [ARGS]...')}", ".SH DESCRIPTION", *_paragraphs(PURPOSE)]
    lines += [".SH OPTIONS", *_definitions(OPTIONS)]
    lines += [".SH COMMANDS", *_definitions((f"ascar-{name}(1)", said) for name, said in COMMANDS.items())]
    lines += [".SH EXAMPLES", *literal(EXAMPLES.splitlines()[1:])]
    return "\n".join([*lines, *_see(("ascard",))])


def _command(name: str, summary: str, command: Any) -> str:
    lines = begin(f"ascar-{name}", summary)
    if hasattr(command, "commands"):
        lines += [".SH DESCRIPTION", *_paragraphs(inspect.cleandoc(command.help or ""))]
        for inner, one in command.commands.items():
            lines += [f".SH {_text(f'ascar {name} {inner}'.upper())}", *_body(f"ascar {name} {inner}", one)]
    else:
        lines += [".SH SYNOPSIS", *_usage(f"ascar {name}", command), ".SH DESCRIPTION"]
        lines += _paragraphs(inspect.cleandoc(command.help or ""))
        lines += [".SH OPTIONS", *_definitions(_described(command)), ".SH EXAMPLES", *_examples(command)]
    return "\n".join([*lines, *_see(("ascar",))])


def _body(path: str, command: Any) -> list[str]:
    lines = [*_usage(path, command), ".PP", *_paragraphs(inspect.cleandoc(command.help or ""))]
    return [*lines, *_definitions(_described(command)), *_examples(command)]


def _usage(path: str, command: Any) -> list[str]:
    words = ["[OPTIONS]"] if any(one.param_type_name == "option" for one in command.params) else []
    words += [one.metavar or one.name.upper() for one in command.params if one.param_type_name == "argument"]
    return [f".B {_text(path)}", *([_text(" ".join(words))] if words else [])]


def _described(command: Any) -> Iterator[tuple[str, str]]:
    for one in command.params:
        if one.param_type_name == "argument":
            yield one.metavar or one.name.upper(), one.help or ""
        else:
            names = ", ".join([*one.opts, *one.secondary_opts])
            yield f"{names} {one.metavar or ''}".rstrip(), one.help or ""


def _examples(command: Any) -> list[str]:
    return literal([line.strip() for line in (command.epilog or "").splitlines()[2:]])


# ascard


def _help_of(*words: str) -> str:
    done = subprocess.run(
        [find_ascard(), *words, "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def _of_help(name: str, text: str) -> str:
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
                lines += [f".SH {title.upper()}", *_definitions(_rows(others))]
            case "Examples":
                lines += [".SH EXAMPLES", *literal([line.strip() for line in others])]
            case _:
                lines += _paragraphs(block)
    others_too = [f"ascard-{role}" for role in ROLES] if name == "ascard" else ["ascard"]
    return "\n".join([*lines, *_see(others_too)])


def _rows(lines: Iterable[str]) -> list[tuple[str, str]]:
    """What is described in two columns; a line that is set in further goes on with the one before."""
    rows: list[tuple[str, str]] = []
    for line in lines:
        found = _DESCRIBED.match(line)
        if found:
            rows.append((found[1], found[2] or ""))
        elif rows:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}".strip())
    return rows


# roff (man(7))


def begin(name: str, summary: str) -> list[str]:
    """The title, and the name with its line for `whatis`."""
    title = f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "ascar {__version__}"'
    return [title, ".SH NAME", f"{_text(name)} \\- {_text(summary.rstrip('.'))}"]


def _see(names: Iterable[str]) -> list[str]:
    return [".SH SEE ALSO", ", ".join(f".BR {_text(name)} (1)"[4:] for name in names), ""]


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


def main() -> int:
    """Write the pages."""
    if len(sys.argv) != 2:
        sys.stderr.write("manual: one argument, the directory to write into\n")
        return 2
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (directory / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
