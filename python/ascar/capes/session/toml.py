"""TOML of a few tables, as configuration files of the session's processes have it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["toml_text"]


def toml_text(table: Mapping[str, Any]) -> str:
    """The text of a table: values first, then tables and lists of tables; keys whose value is None left out.

    Args:
        table: of numbers, texts, booleans, lists and tables.
    """
    given = {key: value for key, value in table.items() if value is not None}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in given.items() if not _tables(value)]
    for key, value in given.items():
        for one in _tables(value):
            lines += ["", f"[{_key(key)}]" if isinstance(value, dict) else f"[[{_key(key)}]]"]
            lines += [f"{_key(name)} = {_value(inner)}" for name, inner in one.items() if inner is not None]
    return "\n".join([*lines, ""])


def _tables(value: object) -> list[dict[str, Any]]:
    """The tables that stand under headers of their own."""
    if isinstance(value, dict):
        return [cast("dict[str, Any]", value)]
    if isinstance(value, list | tuple) and value and all(isinstance(one, dict) for one in cast("Any", value)):
        return list(cast("Any", value))
    return []


def _value(value: object) -> str:
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value).items()
        return "{" + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in inner if one is not None) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in cast("Any", value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    assert isinstance(value, str), f"TOML has no {type(value).__name__}"
    return _quoted(value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _quoted(key)


def _quoted(text: str) -> str:
    """JSON's strings are TOML's, too, but for the one sign that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
