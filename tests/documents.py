"""Whether a JSON document is what its schema allows."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema

from ascar.results.documents import struct_of
from ascar.results.schema import schema_of


def check_document(document: Any) -> None:
    """Validate a command's document against the schema that it names."""
    _validator(document["schema"].split("/")[1]).validate(document)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = schema_of(struct_of(name))
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
