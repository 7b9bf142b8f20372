"""What schemas are made of."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}

COUNT: Schema = {"type": "integer", "minimum": 0}

NUMBER: Schema = {"type": "number"}

INTEGER: Schema = {"type": "integer"}

FLAG: Schema = {"type": "boolean"}


def maybe(schema: Schema) -> Schema:
    """That, or null."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def items(schema: Schema) -> Schema:
    """A list of it."""
    return {"type": "array", "items": schema}


def table(schema: Schema) -> Schema:
    """An object with any keys, each value being that."""
    return {"type": "object", "additionalProperties": schema}


def record(description: str = "", /, **keys: Schema) -> Schema:
    """An object with exactly these keys."""
    schema: Schema = {
        "type": "object",
        "required": list(keys),
        "properties": keys,
        "additionalProperties": False,
    }
    return {"description": description, **schema} if description else schema


def about(schema: Schema, description: str) -> Schema:
    """The same, explained."""
    return {**schema, "description": description}
