"""JSON Schemas of results, derived from their structs.

A key's description is its entry under `Attributes:` in the docstring of its class.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, cast, get_type_hints

import msgspec

from ascar.space import Configuration

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_INFORMATION = (msgspec.inspect.Type, msgspec.inspect.Field)
_ENTRY = re.compile(r"    (?P<key>\w+): (?P<text>.*)")


def schema_of(result: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of one result; what it contains more than once stands under `$defs`.

    Every key is required: a reader never has to ask whether one is there.
    """
    [reference], parts = msgspec.json.schema_components(
        [result], schema_hook=_foreign, ref_template="#/$defs/{name}"
    )
    for kind in _kinds(result):
        if (part := parts.get(kind.__name__)) is not None:
            _describe(part, kind)
    whole = parts.pop(reference["$ref"].rpartition("/")[2])
    title = result.__struct_config__.tag
    document: dict[str, Any] = {"$schema": DIALECT, **whole, "title": title}
    document["properties"]["schema"] = {"const": title}
    _permit_null(document)
    _permit_null(parts)
    return {**document, "$defs": parts} if parts else document


def _permit_null(schema: Any) -> None:
    """Numbers that may be NaN may be null; msgspec cannot say so."""
    if isinstance(schema, list):
        for one in cast("list[Any]", schema):
            _permit_null(one)
    if isinstance(schema, dict):
        known = cast("dict[str, Any]", schema)
        if known.pop("may_be_nan", False):
            known["type"] = ["number", "null"]
        for one in known.values():
            _permit_null(one)


def _foreign(kind: type) -> dict[str, Any]:
    """The schema of a class that msgspec does not know."""
    if kind is Configuration:
        return {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    return {"not": {}}  # a field that no document shows


def _describe(part: dict[str, Any], kind: type) -> None:
    """Complete an object's schema: its description, its keys' descriptions, and no other keys."""
    part.pop("title", None)
    if part.get("type") != "object":
        return
    part["description"] = (inspect.getdoc(kind) or "").partition("\n")[0]
    known: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        known |= _attributes(base.__doc__ or "")
    properties = part["properties"]
    for key in getattr(kind, "not_in_document", ()):
        del properties[key]
    for key in getattr(kind, "in_document_too", ()):
        returned = get_type_hints(getattr(kind, key).fget, include_extras=True)["return"]
        properties[key] = msgspec.json.schema(returned)
    for key, schema in properties.items():
        if key in known:
            properties[key] = {**schema, "description": known[key]}
    part["required"] = list(properties)
    part["additionalProperties"] = False


def _attributes(docstring: str) -> dict[str, str]:
    """What a Google-style docstring says of each attribute, in one line."""
    _, _, section = inspect.cleandoc(docstring).partition("\nAttributes:\n")
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        if not line.startswith("    "):
            break
        entry = _ENTRY.fullmatch(line)
        if entry is not None:
            found[entry["key"]] = [entry["text"]]
        elif found:
            found[list(found)[-1]].append(line.strip())
    return {key: " ".join(lines) for key, lines in found.items()}


def _kinds(result: type[msgspec.Struct]) -> set[type]:
    """The class of a result, and every class below it that is an object in JSON."""
    found: set[type] = set()
    waiting: list[Any] = [msgspec.inspect.type_info(result)]
    seen: set[int] = set()
    while waiting:
        info = waiting.pop()
        if id(info) in seen:
            continue
        seen.add(id(info))
        if (kind := getattr(info, "cls", None)) is not None:
            found.add(kind)
        for name in getattr(info, "__struct_fields__", ()):
            value = getattr(info, name)
            values = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
            waiting += [
                one for one in values if isinstance(one, msgspec.inspect.Type | msgspec.inspect.Field)
            ]
    return found
