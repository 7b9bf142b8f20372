"""Keys of TOML files; a path of tables and a key, joined by dots."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.space import Value

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_PATH = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_HEADER = re.compile(rf"[ \t]*\[[ \t]*({_PATH})[ \t]*\][^\n]*\n?")
_ITEM = re.compile(rf"[ \t]*\[\[[ \t]*({_PATH})[ \t]*\]\][^\n]*\n?")
_SETTING = re.compile(rf"[ \t]*({_PATH})[ \t]*=[ \t]*")


@dataclass(frozen=True, slots=True)
class _Setting:
    """Where a key's value stands, and the table under whose header the key is."""

    path: str
    start: int
    end: int


def with_key(text: str, key: str, value: Value) -> str:
    """The text with a key's value replaced, or the key added to its table.

    Raises:
        ValueError: the text is not TOML, or the key cannot be set without changing something else.
    """
    before = _parsed(text)
    written = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else _number(value)
    found = next((one for one in _settings(text) if one.path == key), None)
    changed = (
        _added(text, key, written) if found is None else text[: found.start] + written + text[found.end :]
    )
    try:
        after = _parsed(changed)
    except ValueError:
        after = None
    if after != _expected(before, key, value):
        raise ValueError(f"{key!r} cannot be set without changing something else")
    return changed


def key_in(text: str, key: str) -> str | None:
    """The value of a key: a text as it is, anything else as JSON.

    Raises:
        ValueError: the text is not TOML.
    """
    found: Any = _parsed(text)
    rest = key
    while rest:
        if not isinstance(found, dict):
            return None
        table = cast("dict[str, Any]", found)
        name = max((one for one in table if rest == one or rest.startswith(f"{one}.")), key=len, default=None)
        if name is None:
            return None
        found, rest = table[name], rest[len(name) + 1 :]
    return found if isinstance(found, str) else json.dumps(found, default=str)


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not TOML: {str(error)[:200]}") from None


def _settings(text: str) -> Iterator[_Setting]:
    """Every key with a value of its own, in order; those in lists of tables are left out."""
    table: str | None = ""
    at = 0
    while at < len(text):
        if item := _ITEM.match(text, at):
            table, at = None, item.end()
        elif header := _HEADER.match(text, at):
            table, at = _joined(header[1]), header.end()
        elif setting := _SETTING.match(text, at):
            end = _value_end(text, setting.end())
            if table is not None:
                path = _joined(setting[1])
                yield _Setting(f"{table}.{path}" if table else path, setting.end(), end)
            at = _next_line(text, end)
        else:
            at = _next_line(text, at)


def _value_end(text: str, at: int) -> int:
    """Where the value that begins at a place ends; the text is known to be TOML."""
    depth = 0
    end = at
    while at < len(text):
        sign = text[at]
        if sign in "\"'":
            at = end = _string_end(text, at)
            continue
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif sign == "#" or (sign in "\r\n" and depth == 0):
            if depth == 0:
                break
            at = _next_line(text, at)
            continue
        at += 1
        if sign not in " \t":
            end = at
    return end


def _string_end(text: str, at: int) -> int:
    quote = text[at] * 3 if text.startswith(text[at] * 3, at) else text[at]
    at += len(quote)
    while not text.startswith(quote, at):
        at += 2 if text[at] == "\\" and quote[0] == '"' else 1
    at += len(quote)
    while len(quote) == 3 and text.startswith(quote[0], at):  # quotes may stand before the closing ones
        at += 1
    return at


def _next_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _joined(path: str) -> str:
    """The keys of a dotted path without their quotes."""
    parts = re.findall(_KEY, path)
    return ".".join(
        json.loads(part) if part[0] == '"' else part[1:-1] if part[0] == "'" else part for part in parts
    )


def _number(value: Value) -> str:
    return ("false", "true")[value] if isinstance(value, bool) else repr(value)


def _added(text: str, key: str, written: str) -> str:
    """A line more at the end of the key's table, or the table with that line at the end of the file."""
    newline = "\r\n" if "\r\n" in text else "\n"
    table, _, name = key.rpartition(".")
    line = f"{_key_text(name)} = {written}{newline}"
    ends = _ends(text)
    if table in ends:
        at = ends[table]
        between = newline if at and text[at - 1] != "\n" else ""
        return f"{text[:at]}{between}{line}{text[at:]}"
    between = "" if not text or text.endswith("\n") else newline
    header = ".".join(_key_text(part) for part in table.split("."))
    return f"{text}{between}[{header}]{newline}{line}"


def _ends(text: str) -> dict[str, int]:
    """Where the last line of each table ends, by its path."""
    ends: dict[str, int] = {"": 0}
    table: str | None = ""
    at = 0
    while at < len(text):
        if item := _ITEM.match(text, at):
            table, at = None, item.end()
            continue
        if header := _HEADER.match(text, at):
            table, at = _joined(header[1]), header.end()
        elif setting := _SETTING.match(text, at):
            at = _next_line(text, _value_end(text, setting.end()))
        else:
            at = _next_line(text, at)
            continue
        if table is not None:
            ends[table] = at
    return ends


def _key_text(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _expected(table: dict[str, Any], path: str, value: Value) -> dict[str, Any]:
    """What the tables have to be afterwards."""
    fitting = [name for name in table if path == name or path.startswith(f"{name}.")]
    name = max(fitting, key=len, default=path.partition(".")[0])
    rest = path[len(name) + 1 :]
    inner = table.get(name, {})
    if rest and not isinstance(inner, dict):
        raise ValueError(f"{name!r} is no table, in which to set {path!r}")
    return {**table, name: _expected(cast("dict[str, Any]", inner), rest, value) if rest else value}
