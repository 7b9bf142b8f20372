"""The nearest name, for messages about one that is unknown."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["hint", "listed"]


def hint(wrong: object, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` where a known name is near, else nothing."""
    near = get_close_matches(str(wrong)[:100], list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def listed(items: Iterable[object], most: int = 20) -> str:
    """Items for one line of text, the first `most` of them."""
    texts = [str(item) for item in items]
    return ", ".join(texts[:most]) + (f", ... ({len(texts)} in all)" if len(texts) > most else "")
