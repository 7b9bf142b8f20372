"""Files that a command writes: never over another one unasked, and never half of one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ascar.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def check_new(path: Path, *, force: bool) -> None:
    """Refuse a file that could not be written, before work is done for it.

    Raises:
        InputError: it is there, or its directory is not.
    """
    if not force and path.exists():
        raise _there(path)
    if not path.parent.is_dir():
        raise InputError(f"file {str(path)!r}: the directory {str(path.parent)!r} does not exist")


def write_new(path: Path, text: str, *, force: bool) -> None:
    """Write a file that must not be there yet, or replace it as a whole.

    Raises:
        InputError: it is there, or cannot be written.
    """
    try:
        if not force:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            return
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        part.write_text(text, "utf-8")
        part.replace(path)
    except FileExistsError as error:
        raise _there(path) from error
    except OSError as error:
        raise InputError(f"file {str(path)!r}: {error.strerror}; name another --out") from error


def _there(path: Path) -> InputError:
    return InputError(f"file {str(path)!r}: already exists; use --force, or name another --out")
