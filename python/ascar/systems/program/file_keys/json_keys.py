"""Keys of JSON files; a path of keys and places in lists, joined by dots."""

from __future__ import annotations

import json
from json.decoder import JSONDecodeError, JSONDecoder
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ascar.space import Value

_DECODER = JSONDecoder()
_SPACE = " \t\r\n"


def with_key(text: str, key: str, value: Value) -> str:
    """The text with the value at a path replaced, or added to an object that is there.

    Raises:
        ValueError: the text is not JSON, or the path leads nowhere.
    """
    before = _parsed(text)
    written = json.dumps(value, ensure_ascii=False)
    start, end, missing = _span(text, _skipped(text, 0), key)
    if missing is None:
        changed = text[:start] + written + text[end:]
    else:
        changed = _added(text, (start, end), missing, written)
    if _parsed(changed) != _expected(before, key, value):
        raise ValueError(f"{key!r} cannot be set without changing something else")
    return changed


def key_in(text: str, key: str) -> str | None:
    """The value at a path: a text as it is, anything else as JSON.

    Raises:
        ValueError: the text is not JSON, or the path leads nowhere.
    """
    _parsed(text)
    start, end, missing = _span(text, _skipped(text, 0), key)
    if missing is not None:
        return None
    found = json.loads(text[start:end])
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {str(error)[:200]}") from None


def _span(text: str, at: int, path: str) -> tuple[int, int, str | None]:
    """Where the value at a path stands.

    Where only the last key is missing, the span is that of the object that lacks it, and the third value the
    missing key.
    """
    if text[at] == "{":
        found: tuple[int, str] | None = None
        members, end = _members(text, at)
        for name, start in members:
            if path == name or path.startswith(f"{name}."):
                if found is not None and found[1] == name:
                    raise ValueError(f"{name!r} stands twice in an object; leave one")
                if found is None or len(name) > len(found[1]):
                    found = start, name
        if found is None:
            if "." in path:
                raise ValueError(f"has no object {path.partition('.')[0]!r}, in which to set {path!r}")
            return at, end, path
        start, name = found
        rest = path[len(name) + 1 :]
        return _span(text, start, rest) if rest else (start, _end(text, start), None)
    if text[at] == "[":
        place, _, rest = path.partition(".")
        starts = _items(text, at)
        if not place.isdecimal() or int(place) >= len(starts):
            raise ValueError(f"{place!r} is no place in a list of {len(starts)}")
        start = starts[int(place)]
        return _span(text, start, rest) if rest else (start, _end(text, start), None)
    raise ValueError(f"{path!r} would be inside a value that is neither an object nor a list")


def _members(text: str, at: int) -> tuple[list[tuple[str, int]], int]:
    """The keys of the object at a place, with the places of their values; and where the object ends."""
    found: list[tuple[str, int]] = []
    at = _skipped(text, at + 1)
    while text[at] != "}":
        name, at = cast("tuple[str, int]", _DECODER.raw_decode(text, at))
        at = _skipped(text, _skipped(text, at) + 1)  # the colon
        found.append((name, at))
        at = _skipped(text, _end(text, at))
        if text[at] == ",":
            at = _skipped(text, at + 1)
    return found, at + 1


def _items(text: str, at: int) -> list[int]:
    found: list[int] = []
    at = _skipped(text, at + 1)
    while text[at] != "]":
        found.append(at)
        at = _skipped(text, _end(text, at))
        if text[at] == ",":
            at = _skipped(text, at + 1)
    return found


def _added(text: str, where: tuple[int, int], key: str, written: str) -> str:
    """A member more, laid out as the first one."""
    start, end = where
    members, _ = _members(text, start)
    name = json.dumps(key, ensure_ascii=False)
    if not members:
        return f"{text[: start + 1]}{name}: {written}{text[end - 1 :]}"
    indent = text[start + 1 : _skipped(text, start + 1)]
    after = _end(text, members[-1][1])
    return f"{text[:after]},{indent or ' '}{name}: {written}{text[after:]}"


def _end(text: str, at: int) -> int:
    try:
        return _DECODER.raw_decode(text, at)[1]
    except JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _expected(document: Any, path: str, value: Value) -> Any:
    """What the document has to be afterwards."""
    if isinstance(document, dict):
        table = cast("dict[str, Any]", document)
        fitting = [name for name in table if path == name or path.startswith(f"{name}.")]
        name = max(fitting, key=len, default=path)
        rest = path[len(name) + 1 :]
        return {**table, name: _expected(table[name], rest, value) if rest else value}
    items = list(cast("list[Any]", document))
    place, _, rest = path.partition(".")
    items[int(place)] = _expected(items[int(place)], rest, value) if rest else value
    return items
