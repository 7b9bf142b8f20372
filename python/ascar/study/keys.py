"""How a table of a study file becomes a value: every mistake is one line that names the key."""

from __future__ import annotations

import re
from datetime import date, time
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import msgspec

from ascar import typed
from ascar.errors import ExpressionError, InputError, StudyError
from ascar.expression import Expression, parse
from ascar.units import format_size, parse_duration, parse_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_T = TypeVar("_T")
_SHOWN_MAX = 120


def duration(key: str, text: str) -> float:
    """Seconds of the duration at `key`.

    Raises:
        StudyError: not a duration, or not above zero.
    """
    try:
        seconds = parse_duration(text)
    except InputError as error:
        raise StudyError(_wrong(key, text, error)) from error
    if not seconds > 0:
        raise StudyError(f"{key} = {text!r}: must be longer than zero, e.g. '10 min'")
    return seconds


def size(key: str, text: str, least: int = 0, most: int | None = None) -> int:
    """Bytes of the size at `key`.

    Args:
        key: the key.
        text: what it is set to.
        least: it is so many bytes at least.
        most: it is so many bytes at most; None: any number.

    Raises:
        StudyError: not a size, too small, or too large.
    """
    try:
        size_bytes = parse_size(text)
    except InputError as error:
        raise StudyError(_wrong(key, text, error)) from error
    if size_bytes < least or (most is not None and size_bytes > most):
        low = format_size(least)
        allowed = f"at least {low}" if most is None else f"from {low} to {format_size(most)}"
        raise StudyError(f"{key} = {text!r:.80}: must be {allowed}")
    return size_bytes


def _wrong(key: str, text: str, error: InputError) -> str:
    """The message of what cannot be read, with the value once."""
    return f"{key} = {text!r:.80}: {error.message.removeprefix(repr(text)).lstrip(': ')}"


def check_limits(table: str, options: object, limits: Mapping[str, tuple[int, int]]) -> None:
    """See that keys of a table are within their limits.

    Args:
        table: the table.
        options: its values, as attributes.
        limits: the least and the greatest value by key.

    Raises:
        StudyError: one is not.
    """
    for key, (least, most) in limits.items():
        value = getattr(options, key)
        if not least <= value <= most:
            raise StudyError(f"{table}.{key} = {value!r}: must be from {least} to {most}")


def absolute(key: str, text: str, *, is_there: bool = False) -> Path:
    """The directory at `key`, whose path has to be absolute.

    Args:
        key: the key.
        text: what it is set to.
        is_there: whether the directory has to be there.

    Raises:
        StudyError: it is none.
    """
    if "\0" in text or not Path(text).is_absolute() or (is_there and not Path(text).is_dir()):
        raise StudyError(f"{key} = {text!r:.80}: must be the absolute path of a directory")
    return Path(text)


def words_in(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A table whose commands start programs of a folder, and whose files are there.

    Words of a target's commands that begin with ./ are paths there; those of `argv` and `prepare` are if such
    a file is there, because a load may have made its own in the directory in which it runs.
    """
    placed = dict(table)
    for key in (*_COMMANDS, *_OF_LOADS):
        if isinstance(table.get(key), list | tuple):
            placed[key] = _words_placed(table[key], folder, surely=key in _COMMANDS)
    if isinstance(table.get("restart"), dict):
        restarts = cast("dict[str, Any]", table["restart"])
        placed["restart"] = {cost: _words_placed(words, folder) for cost, words in restarts.items()}
    if isinstance(table.get("file"), list):
        placed["file"] = [_file_placed(one, folder) for one in cast("list[Any]", table["file"])]
    return placed


_COMMANDS = ("command", "start", "apply", "check", "health", "reset", "restore", "restart_command")
_OF_LOADS = ("argv", "prepare")


def _words_placed(words: Any, folder: Path, *, surely: bool = True) -> Any:
    if not isinstance(words, list | tuple):
        return _placed(words, folder, surely=surely)
    return [_words_placed(one, folder, surely=surely) for one in cast("Sequence[Any]", words)]


def _file_placed(file: Any, folder: Path) -> Any:
    if not isinstance(file, dict):
        return file
    keys = cast("dict[str, Any]", file)
    places = {key: _placed(keys[key], folder, surely=True) for key in ("path", "template") if key in keys}
    return {**keys, **places}


def _placed(word: Any, folder: Path, *, surely: bool) -> Any:
    is_here = isinstance(word, str) and word.startswith("./") and "\0" not in word
    return str(folder / word) if is_here and (surely or (folder / word).exists()) else word


def check_value(key: str, value: object) -> None:
    """Refuse what the other files of a session cannot hold: TOML's dates and times.

    Raises:
        StudyError: there is one.
    """
    if isinstance(value, dict):
        for name, inner in cast("dict[str, object]", value).items():
            check_value(f"{key}.{name}", inner)
    elif isinstance(value, list | tuple):
        for at, inner in enumerate(cast("Sequence[object]", value)):
            check_value(f"{key}[{at}]", inner)
    elif not isinstance(value, str | int | float):
        raise StudyError(f"{key} = {value}: must be a text, a number, true or false; put a date in quotes")


def convert(table: Mapping[str, Any], kind: type[_T], section: str = "") -> _T:
    """A table of the file as a value of type `kind`.

    Args:
        table: the table that TOML gave.
        kind: a frozen msgspec Struct that forbids unknown fields.
        section: the table's own key, for messages; empty at the top.

    Raises:
        StudyError: one line naming the key, the value and what is allowed.
    """
    try:
        return typed.convert(dict(table), kind)
    except msgspec.ValidationError as error:
        raise StudyError(_explain(str(error), table, kind, section)) from error


def _explain(message: str, table: Mapping[str, Any], kind: type[Any], section: str) -> str:
    """Msgspec's message as one line that names the key, the value and what is allowed."""
    problem, _, where = message.partition(" - at `$")
    path = where.rstrip("`").strip(".") if where else ""
    unknown = re.search(r"unknown field `([^`]*)`", problem)
    missing = re.search(r"missing required field `([^`]*)`", problem)
    owner, value = _resolve(table, kind, path)
    allowed = list(getattr(owner, "__struct_fields__", ()))
    if unknown:
        key = _join(section, path, unknown[1])
        near = get_close_matches(unknown[1], allowed, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{key}: unknown key; allowed here: {', '.join(allowed)}{hint}"
    if missing:
        key = _join(section, path, missing[1])
        return f"{key}: missing; the table needs it (`ascar init` writes a complete study file)"
    return f"{_join(section, path)} = {_shown(value)}: must be {_allowed(problem, owner, path)}"


def _shown(value: object) -> str:
    """A value in a message: of one line, and of a length that can be read; dates as TOML has them."""
    if isinstance(value, date | time):
        return value.isoformat()
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


# What a key may look like, where its default does not show it.
_EXAMPLES = {
    "budget": "text such as '10 min'",
    "objective": "text such as 'maximize throughput_ops_per_s'",
    "file_systems": "a list such as ['ext4', 'xfs']",
}


def _allowed(problem: str, owner: Any, path: str) -> str:
    """What may stand at a key, in the words of a study file."""
    key = next((part for part in reversed(path.split(".")) if not part.startswith("[")), "")
    key = key.partition("[")[0]
    fields = {field.name: field for field in msgspec.structs.fields(owner)} if _is_struct(owner) else {}
    if key not in fields or not problem.startswith(("Expected", "Invalid enum value")):
        return problem.removeprefix("Expected ").replace("`", "")
    default = fields[key].default
    if key in _EXAMPLES and not isinstance(default, float):
        return _EXAMPLES[key]
    info = msgspec.inspect.type_info(fields[key].type)
    kinds = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    words = [_words(kind, default) for kind in kinds if not isinstance(kind, msgspec.inspect.NoneType)]
    return " or ".join(words)


_KINDS: dict[type[msgspec.inspect.Type], str] = {
    msgspec.inspect.BoolType: "true or false",
    msgspec.inspect.IntType: "a whole number, without quotes",
    msgspec.inspect.FloatType: "a number, without quotes",
    msgspec.inspect.DictType: "a table",
    msgspec.inspect.StructType: "a table",
}


def _words(kind: msgspec.inspect.Type, default: object) -> str:
    match kind:
        case msgspec.inspect.LiteralType(values):
            return f"one of {', '.join(repr(value) for value in values)}"
        case msgspec.inspect.StrType():
            return f"text such as {default!r}" if isinstance(default, str) else "text, in quotes"
        case (
            msgspec.inspect.VarTupleType(item_type=item)
            | msgspec.inspect.ListType(item_type=item)
            | msgspec.inspect.TupleType(item_types=(item, *_))
        ):
            return f"a list, each {_words(item, None)}"
        case _:
            return _KINDS.get(type(kind), "a value of another kind")


def _resolve(table: Any, kind: Any, path: str) -> tuple[Any, Any]:
    """The innermost struct type on a msgspec path, and the value found at its end."""
    owner: Any = kind
    holder: Any = kind
    value: Any = table
    for part in [part for part in re.split(r"\.|(?=\[)", path) if part]:
        if part.startswith("["):  # msgspec says "[...]", not which: the whole list is shown
            continue
        value = cast("dict[str, Any]", value).get(part) if isinstance(value, dict) else value
        fields = (
            {field.name: field.type for field in msgspec.structs.fields(owner)} if _is_struct(owner) else {}
        )
        owner = _struct_in(fields.get(part, owner))
        holder = owner if _is_struct(owner) else holder
    return holder, value


def _struct_in(kind: Any) -> Any:
    """The struct in a field that may be left out, or that is a list of them; else the type itself."""
    inner = (_struct_in(argument) for argument in get_args(kind))
    return next((found for found in inner if _is_struct(found)), kind)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _join(*parts: str) -> str:
    return ".".join(part for part in parts if part).replace(".[", "[") or "the file"


def formula(key: str, text: str) -> Expression:
    """The formula at `key`.

    Raises:
        StudyError: it cannot be read.
    """
    try:
        return parse(text)
    except ExpressionError as error:
        raise StudyError(f"{key} = {text!r}: {error.message}") from error


def within(key: str, value: float, low: float, high: float) -> None:
    """Check a number's range.

    Raises:
        StudyError: it is below `low`, above `high`, or not a number.
    """
    if not low <= value <= high:
        raise StudyError(f"{key} = {value!r}: must be from {low:g} to {high:g}")
