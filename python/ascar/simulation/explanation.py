"""What is wrong with a table, in the words of a scenario file."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN_MAX = 80
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_KINDS: dict[type[msgspec.inspect.Type], str] = {
    msgspec.inspect.BoolType: "true or false",
    msgspec.inspect.IntType: "a whole number, without quotes",
    msgspec.inspect.FloatType: "a number, without quotes",
    msgspec.inspect.StructType: "a table",
    msgspec.inspect.StrType: "text, in quotes",
    msgspec.inspect.VarTupleType: "a list of tables",
}


def shown(value: object) -> str:
    """A value on one line, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."


def explain(message: str, table: Mapping[str, Any], kind: type[msgspec.Struct]) -> str:
    """Msgspec's message as one line that names the key, the value and what is allowed.

    Args:
        message: the message of a ValidationError.
        table: the table to convert.
        kind: the type to convert it to.
    """
    problem, _, where = message.partition(" - at `$")
    path = where.rstrip("`")
    found, value = _resolve(path, table, msgspec.inspect.type_info(kind))
    key = path.removeprefix(".")
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL)
    missing = re.fullmatch(r"Object missing required field `(.*)`", problem, re.DOTALL)
    if unknown:
        allowed = [field.encode_name for field in _fields(found, value)]
        near = get_close_matches(unknown[1], allowed, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        name = unknown[1] if unknown[1].isprintable() else repr(unknown[1])
        return f"{_join(key, name[:_SHOWN_MAX])}: unknown key; allowed here: {', '.join(allowed)}{hint}"
    if missing:
        name = missing[1]
        return f"{_join(key, name)}: missing; it must be {_of_field(found, value, name)}"
    return f"{key or 'the scenario'} = {shown(value)}: must be {_words(found, problem)}"


def _resolve(path: str, value: Any, kind: msgspec.inspect.Type) -> tuple[msgspec.inspect.Type, Any]:
    """The type that belongs at a path, and the value that is there."""
    for name, index in _STEP.findall(path):
        if index:
            members = cast("list[Any]", value) if isinstance(value, (list, tuple)) else []
            value = members[int(index)] if int(index) < len(members) else None
            kind = kind.item_type if isinstance(kind, msgspec.inspect.VarTupleType) else kind
            continue
        tags = _tags(kind)
        if tags and name in tags[1]:
            kind = msgspec.inspect.LiteralType(tuple(tags[0]))
        else:
            kind = next((one.type for one in _fields(kind, value) if one.encode_name == name), kind)
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        if isinstance(kind, msgspec.inspect.UnionType):
            wanted = tuple(one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType))
            kind = wanted[0] if len(wanted) == 1 else kind
    return kind, value


def _structs(kind: msgspec.inspect.Type) -> list[msgspec.inspect.StructType]:
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    return [one for one in kinds if isinstance(one, msgspec.inspect.StructType)]


def _tags(kind: msgspec.inspect.Type) -> tuple[list[str], list[str]] | None:
    """The names of a choice among tables, and the keys that tell which one it is."""
    structs = [one for one in _structs(kind) if one.tag_field is not None]
    if not structs:
        return None
    return [str(one.tag) for one in structs], [str(one.tag_field) for one in structs]


def _fields(kind: msgspec.inspect.Type, value: Any) -> tuple[msgspec.inspect.Field, ...]:
    """The keys of the table that is meant."""
    structs = _structs(kind)
    table = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    for one in structs:
        if one.tag_field is None or table.get(one.tag_field) == one.tag:
            return one.fields
    return ()


def _of_field(kind: msgspec.inspect.Type, value: Any, name: str) -> str:
    tags = _tags(kind)
    if tags and name in tags[1]:
        return _words(msgspec.inspect.LiteralType(tuple(tags[0])), "")
    found = next((one.type for one in _fields(kind, value) if one.encode_name == name), None)
    return "there" if found is None else _words(found, "")


def _words(kind: msgspec.inspect.Type, problem: str) -> str:
    """What may stand where a value of a type is expected."""
    if isinstance(kind, msgspec.inspect.LiteralType):
        return f"one of {', '.join(repr(value) for value in kind.values)}"
    if isinstance(kind, msgspec.inspect.UnionType):
        wanted = [one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType)]
        return "a table" if _structs(kind) else " or ".join(_words(one, problem) for one in wanted)
    return _KINDS.get(type(kind)) or problem.removeprefix("Expected ").replace("`", "")


def _join(*parts: str) -> str:
    return ".".join(part for part in parts if part)
