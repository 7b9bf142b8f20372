"""Settings in files of other programs: a key is set in place, and every other byte stays.

Text is held as Python decodes it with "surrogateescape", so that bytes which are not UTF-8 survive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ascar.systems.program.file_keys import json_keys, line_keys, toml_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.space import Value

__all__ = ["FORMATS", "format_of", "key_in", "with_key"]

_SETTERS: Final[dict[str, Callable[[str, str, Value], str]]] = {
    "json": json_keys.with_key,
    "toml": toml_keys.with_key,
    "ini": line_keys.with_ini_key,
    "conf": line_keys.with_conf_key,
    "env": line_keys.with_env_key,
}
_GETTERS: Final[dict[str, Callable[[str, str], str | None]]] = {
    "json": json_keys.key_in,
    "toml": toml_keys.key_in,
    "ini": line_keys.ini_key_in,
    "conf": line_keys.conf_key_in,
    "env": line_keys.env_key_in,
}
FORMATS: Final = tuple(_SETTERS)
_SUFFIXES: Final = {"cnf": "ini", "cfg": "ini", "service": "ini"}


def format_of(path: str) -> str | None:
    """The format that a file's name tells; None where it tells none."""
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower()
    return suffix if suffix in FORMATS else _SUFFIXES.get(suffix)


def with_key(form: str, text: str, key: str, value: Value) -> str:
    """The text of a file with a key set.

    Args:
        form: one of FORMATS.
        text: the text of the file.
        key: the key; below a section or a table, their names with dots: "section.key".
        value: the value; a format without types takes what `str` makes of it.

    Raises:
        ValueError: it cannot be set; the message says why.
    """
    return _SETTERS[form](text, key, value)


def key_in(form: str, text: str, key: str) -> str | None:
    """The value of a key, as text; None where the file does not set it.

    Raises:
        ValueError: the file is not of that format.
    """
    return _GETTERS[form](text, key)
