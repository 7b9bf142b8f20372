"""TOML that ascar writes itself: configuration and connection files of the processes that it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def toml_text(table: Mapping[str, Any]) -> str:
    """The text of a table; keys whose value is None are left out.

    Args:
        table: a table of numbers, texts, booleans, lists and tables.
    """
    import tomli_w

    return tomli_w.dumps(_given(table))


def _given(value: object) -> Any:
    """The value without keys whose value is None."""
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return {key: _given(one) for key, one in table.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_given(one) for one in cast("list[object]", value)]
    return value
