"""Where the result of a session goes, and the options that say so; what `measure` and `compare` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import msgspec


class _Result(Protocol):
    def write(self, export: Path | None, plot: Path | None, readings: Path | None) -> None: ...
    def document(self) -> msgspec.Struct: ...
    def emit(self) -> None: ...
    def show(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where a result goes.

    Attributes:
        export: table, .csv or .md.
        plot: figure, .svg or .png.
        readings: every reading, .jsonl.
        quiet: no progress.
        json: print one JSON document instead of text for people.
        out: the JSON document, in a file.
        force: replace that file.

    Raises:
        InputError: a file is of a kind that cannot be written, its directory does not exist, or nothing is
            installed that draws.
    """

    export: Path | None
    plot: Path | None
    readings: Path | None
    quiet: bool
    json: bool
    out: Path | None = None
    force: bool = False

    def __post_init__(self) -> None:
        """Check the files before any work is done."""
        from ascar.cli.sheets import check_ending
        from ascar.extras import require

        check_ending("--export", self.export)
        check_ending("--plot", self.plot, (".svg", ".png"))
        check_ending("--readings", self.readings, (".jsonl",))
        if self.plot is not None:
            require("matplotlib")
        if self.out is not None:
            from ascar.cli.file_output import check_new

            check_ending("--out", self.out, (".json",))
            check_new(self.out, force=self.force)

    def deliver(self, result: _Result) -> None:
        """Write the files that were asked for, and print the result."""
        result.write(self.export, self.plot, self.readings)
        if self.out is not None:
            from ascar.cli.file_output import write_new
            from ascar.cli.output import document_text

            write_new(self.out, document_text(result.document()), force=self.force)
        if self.json:
            result.emit()
        else:
            result.show()


def named(option: str, text: str) -> tuple[str, str]:
    """The two sides of NAME=....

    Raises:
        InputError: one of them is missing.
    """
    from ascar.errors import InputError

    name, equals, rest = text.partition("=")
    if not equals or not name or not rest:
        raise InputError(f"{option} = {text!r}: must be NAME=..., e.g. throughput_mb_per_s=...")
    return name, rest


def round_limit_s(text: str | None) -> float | None:
    """Seconds of --round-limit; None where it was not given.

    Raises:
        InputError: it is not a duration.
    """
    from ascar.study import duration

    return None if text is None else duration("--round-limit", text)
