"""The page of modules: each file of the code with its first sentence, by folder."""

from __future__ import annotations

import ast
import re
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SENTENCE = re.compile(r"(.+?[.?!])(?=\s+[A-Z\[`]|\s*$)", re.DOTALL)


def page(root: Path, table: Callable[..., str]) -> str:
    """The page, for the code below this folder; `table` makes a table of headings and rows."""
    folders: dict[Path, list[tuple[str, str]]] = {}
    for file in _files(root):
        text = file.read_text("utf-8")
        said = _of_python(text) if file.suffix == ".py" else _of_rust(text)
        folders.setdefault(file.parent, []).append((f"`{file.name}`", _first(said)))
    parts = [
        "# Modules\n",
        "Every module of ascar with its first sentence. "
        "[The architecture](../../ARCHITECTURE.md) says how they work together.\n",
    ]
    for folder in sorted(folders):
        parts += [f"## {folder.relative_to(root)}\n", table(("module", "what it is"), folders[folder])]
    return "\n".join(parts)


def _files(root: Path) -> Iterator[Path]:
    yield from sorted((root / "python/ascar").rglob("*.py"))
    for source in sorted((root / "crates").glob("*/src")):
        yield from (
            file for file in sorted(source.rglob("*.rs")) if "tests" not in {file.stem, file.parent.name}
        )


def _of_python(text: str) -> str:
    return ast.get_docstring(ast.parse(text)) or ""


def _of_rust(text: str) -> str:
    lines = takewhile(lambda line: line.startswith("//!"), text.splitlines())
    return "\n".join(line.removeprefix("//!").strip() for line in lines)


def _first(text: str) -> str:
    """The first sentence of the first paragraph."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    found = _SENTENCE.match(paragraph)
    return found[1] if found else paragraph
