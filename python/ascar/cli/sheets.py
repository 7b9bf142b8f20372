"""Results as a table in a file: CSV or Markdown."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

ENDINGS = (".csv", ".md")


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table.

    Attributes:
        headings: the headings of the columns; units are in the names.
        rows: numbers, text, or None for what does not exist.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[float | int | str | None]]


def check_ending(option: str, path: Path | None, allowed: Sequence[str] = ENDINGS) -> None:
    """Refuse a file of a kind that cannot be written, before any work is done.

    Raises:
        InputError: the name ends in none of `allowed`, or its directory does not exist.
    """
    if path is None:
        return
    if path.suffix.lower() not in allowed:
        raise InputError(f"{option} = {str(path)!r}: must end in {' or '.join(allowed)}")
    if not path.parent.is_dir():
        raise InputError(f"{option} = {str(path)!r}: the directory {str(path.parent)!r} does not exist")


def write_sheet(path: Path, sheet: TextTable) -> None:
    """Write a table; its form follows from the name's ending."""
    text = _markdown(sheet) if path.suffix.lower() == ".md" else _csv(sheet)
    path.write_text(text, "utf-8")


def _csv(sheet: TextTable) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(sheet.headings)
    writer.writerows(["" if cell is None else cell for cell in row] for row in sheet.rows)
    return target.getvalue()


def _markdown(sheet: TextTable) -> str:
    from ascar.render import number

    def cell(value: float | int | str | None) -> str:
        if isinstance(value, float):
            return number(value)
        return "-" if value is None else str(value).replace("|", "\\|").replace("\n", " ")

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    numeric = [
        all(isinstance(row[column], int | float | None) for row in sheet.rows)
        for column in range(len(sheet.headings))
    ]
    rule = line(["---:" if right else "---" for right in numeric])
    body = [line([cell(value) for value in row]) for row in sheet.rows]
    return "\n".join([line(list(sheet.headings)), rule, *body]) + "\n"
