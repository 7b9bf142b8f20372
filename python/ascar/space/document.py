"""A space as a JSON document, versioned; the form in which it is kept, shown and read by other programs."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from ascar.errors import SpaceError
from ascar.space.fields import Fields
from ascar.space.formulas import constraint_of
from ascar.space.guarantee import Guarantee
from ascar.space.relation import Relation
from ascar.space.space import Space
from ascar.space.tables import parameter_from_table, parameter_to_table

if TYPE_CHECKING:
    from ascar.space.parameter import Parameter
    from ascar.space.relation import Constraint

VERSION: Final = 3
_WITHOUT_RELATIONS: Final = (
    2  # the version of a space that has none: older programs read it, and digests stay
)
_FORMAT: Final = "ascar-space"
_BYTES_MAX: Final = 4_000_000
_KEYS: Final = ("format", "version", "name", "parameters", "constraints", "pinned", "allow_weaker")


def space_to_document(space: Space) -> dict[str, Any]:
    """The document as plain values.

    {"format": "ascar-space", "version": 2, "name": text, "parameters": [{"name": text, and the keys of
    `ascar.space.tables`}], "constraints": [formula], "pinned": {name: value}, "allow_weaker": [text]}

    In version 3, a constraint may be a relation: {"together": [name], "rows": [[value]]}. In version 1,
    `"allow_weaker": null` permitted every value; such a document is still read so.
    """
    return {
        "format": _FORMAT,
        "version": VERSION if _related(space) else _WITHOUT_RELATIONS,
        "name": space.name,
        "parameters": [
            {"name": parameter.name} | parameter_to_table(parameter) for parameter in space.parameters
        ],
        "constraints": [_constraint_to_document(constraint) for constraint in space.constraints],
        "pinned": dict(space.pinned),
        "allow_weaker": list(space.allow_weaker),
    }


def space_to_json(space: Space) -> str:
    """The document as text, the same for the same space."""
    return json.dumps(space_to_document(space), indent=1, ensure_ascii=True, allow_nan=False)


def space_key(space: Space) -> str:
    """A digest of everything that decides which configurations are valid: 16 hexadecimal digits.

    Names, units and descriptions for people do not count.
    """
    document = space_to_document(space)
    document["name"] = ""
    for table in document["parameters"]:
        for key in ("unit", "description", "special", "native"):
            table.pop(key, None)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def space_from_json(text: str | bytes) -> Space:
    """The space of a document.

    Raises:
        SpaceError: no JSON, too large, of a newer version, or a key is wrong.
    """
    if len(text) > _BYTES_MAX:
        raise SpaceError(f"space document: {len(text)} bytes; at most {_BYTES_MAX}")
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SpaceError(f"space document: not JSON: {error}") from None
    return space_from_document(document)


def space_from_document(document: object) -> Space:
    """The space of a document's plain values.

    Raises:
        SpaceError: it is of a newer version, or a key is wrong.
    """
    version = cast("dict[Any, Any]", document).get("version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise SpaceError(
            f"space.version = {version}: is newer than {VERSION}, the newest this program reads; update ascar"
        )
    fields = Fields.of(document, "space", _KEYS)
    if fields.need("format", f'"{_FORMAT}"') != _FORMAT:
        raise fields.error("format", f"must be {_FORMAT!r}")
    if type(found := fields.need("version", str(VERSION))) is not int or found < 1:
        raise fields.error("version", f"must be from 1 to {VERSION}")
    parameters = [
        _parameter(table, f"space.parameters[{index}]")
        for index, table in enumerate(fields.items("parameters", (dict,), "tables"))
    ]
    migrated = found == 1 and "allow_weaker" in fields and fields.table["allow_weaker"] is None
    permitted = tuple(Guarantee) if migrated else tuple(fields.items("allow_weaker"))
    space = Space(
        tuple(parameters),
        tuple(_constraint(one, index) for index, one in enumerate(_constraints(fields))),
        fields.mapping("pinned"),
        permitted,
        fields.text("name"),
    )
    return space.check()


def _related(space: Space) -> bool:
    return any(isinstance(constraint, Relation) for constraint in space.constraints)


def _constraint_to_document(constraint: Constraint) -> str | dict[str, Any]:
    if isinstance(constraint, Relation):
        return {"together": list(constraint.names), "rows": [list(row) for row in constraint.rows]}
    return str(constraint)


def _constraints(fields: Fields) -> list[str | dict[str, Any]]:
    return fields.items("constraints", (str, dict), "formulas or tables")


def _constraint(found: str | dict[str, Any], index: int) -> Constraint:
    if isinstance(found, str):
        return constraint_of(found)
    path = f"space.constraints[{index}]"
    table = Fields.of(found, path, ("together", "rows"))
    table.need("together", '["a", "b"]')
    rows = table.items("rows", (list,), "lists of values")
    try:
        return Relation(tuple(table.items("together")), tuple(tuple(row) for row in rows))
    except SpaceError as error:
        raise SpaceError(f"{path}: {error.message}") from None


def _parameter(table: dict[str, Any], path: str) -> Parameter:
    name = table.get("name")
    if not isinstance(name, str):
        raise SpaceError(f"{path}.name: missing; every parameter needs a name")
    return parameter_from_table(name, {key: value for key, value in table.items() if key != "name"}, path)
