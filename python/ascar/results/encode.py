"""Results as JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, TypeVar, cast

import msgspec

_S = TypeVar("_S", bound=msgspec.Struct)


def json_ready(value: Any) -> Any:  # noqa: PLR0911 - one return a kind of value
    """`value` as strict JSON: structs as objects, tuples as arrays, NaN and infinities as null.

    A struct leaves out the fields that its `not_in_document` names, and adds the properties that its
    `in_document_too` names.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value.value if isinstance(value, StrEnum) else value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, msgspec.Struct):
        return _object(value)
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (Sequence, Set)):
        return [json_ready(item) for item in cast("Sequence[Any]", value)]
    if is_dataclass(value):
        return {field.name: json_ready(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "item"):  # a NumPy scalar
        return json_ready(value.item())
    return str(value)


def _object(value: msgspec.Struct) -> dict[str, Any]:
    kind = type(value)
    hidden: tuple[str, ...] = getattr(kind, "not_in_document", ())
    names = [name for name in kind.__struct_fields__ if name not in hidden]
    whole = {
        name: json_ready(getattr(value, name)) for name in (*names, *getattr(kind, "in_document_too", ()))
    }
    tag = kind.__struct_config__
    return whole if tag.tag is None else {str(tag.tag_field): tag.tag, **whole}


def extended(kind: type[_S], base: msgspec.Struct, /, **more: Any) -> _S:
    """A struct with all fields of `base` and some more, for a document that has both on one level."""
    return kind(**{name: getattr(base, name) for name in base.__struct_fields__}, **more)
