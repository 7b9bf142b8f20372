"""Lists of names as people write them: "fs, size"."""

from __future__ import annotations

from ascar.errors import InputError


def names_of(option: str, text: str) -> tuple[str, ...]:
    """Names of a list with commas, each once.

    Args:
        option: the option that has the list, for messages.
        text: the list.

    Raises:
        InputError: there is none.
    """
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise InputError(f"{option} = {text!r}: must be names with commas between them")
    return names
