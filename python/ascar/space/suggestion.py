"""The nearest name, for messages about one that is unknown."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from ascar.space.renamed import RENAMED

if TYPE_CHECKING:
    from collections.abc import Iterable

_ITEMS_MAX: Final = 60
_LENGTH_COMPARED_MAX: Final = 100


def hint(wrong: object, known: Iterable[str]) -> str:
    """`; its name is 'x' now` or `; did you mean 'x'?` where a known name is near a text, else nothing."""
    if not isinstance(wrong, str):
        return ""
    names = [str(name) for name in known]
    if RENAMED.get(wrong) in names:
        return f"; its name is {RENAMED[wrong]!r} now"
    near = get_close_matches(wrong[:_LENGTH_COMPARED_MAX], names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def listed(items: Iterable[object], most: int = _ITEMS_MAX) -> str:
    """Items for one line of text, the first `most` of them; "nothing" where there are none."""
    texts = [str(item) for item in items]
    return (", ".join(texts[:most]) or "nothing") + (
        f", ... ({len(texts)} in all)" if len(texts) > most else ""
    )


def names_near(wrong: object, known: Iterable[str]) -> str:
    """The known names, few of them where one is near, and that one."""
    names = list(known)
    near = hint(wrong, names)
    return listed(names, 8 if near else _ITEMS_MAX) + near
