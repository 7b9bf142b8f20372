from __future__ import annotations

import math
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta

from ascar.results.documents import DOCUMENTS, struct_of
from ascar.results.encode import json_ready
from ascar.results.schema import schema_of


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part.

    Attributes:
        share: of the whole, which may take
            two lines to say.
    """

    share: float | None


class Whole(Part, frozen=True, kw_only=True, tag_field="schema", tag="ascar/whole/3"):
    """A whole.

    Attributes:
        parts: in their order.
    """

    parts: tuple[Part, ...] = ()
    count: Annotated[int, Meta(ge=0)] = 0


def test_keys_are_required_closed_and_described_by_docstrings_of_the_class_and_its_bases():
    schema = schema_of(Whole)
    assert (schema["title"], schema["description"]) == ("ascar/whole/3", "A whole.")
    assert set(schema["required"]) == {"schema", "share", "parts", "count"} == set(schema["properties"])
    assert schema["additionalProperties"] is False
    assert schema["properties"]["schema"] == {"const": "ascar/whole/3"}
    assert schema["properties"]["share"]["description"] == "of the whole, which may take two lines to say."
    assert schema["properties"]["parts"]["description"] == "in their order."
    part = schema["$defs"]["Part"]
    assert (part["description"], part["additionalProperties"]) == ("A part.", False)


def test_nan_and_infinities_are_null():
    told = json_ready(Whole(share=math.nan, parts=(Part(share=math.inf), Part(share=0.5))))
    assert told == {
        "schema": "ascar/whole/3",
        "share": None,
        "parts": [{"share": None}, {"share": 0.5}],
        "count": 0,
    }


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_struct_is_frozen_and_tagged_with_its_document(name: str):
    config = struct_of(name).__struct_config__
    assert config.frozen
    assert config.tag_field == "schema"
    assert config.tag.startswith(f"ascar/{name}/")
