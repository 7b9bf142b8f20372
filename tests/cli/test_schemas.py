"""`ascar schema`: the schemas of what commands print; tests validate what commands print against them."""

from __future__ import annotations

import json

import jsonschema
import pytest

from ascar.results.documents import DOCUMENTS


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_has_a_valid_schema(ascar, name):
    done = ascar("schema", name)
    assert done.status == 0
    schema = json.loads(done.out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema"] == {"const": schema["title"]}
    assert schema["title"].split("/")[1] == name


@pytest.mark.parametrize("name", ["", "tuna", "ascar/tune/1", "../tune"])
def test_another_name_is_refused_with_those_there_are(ascar, name):
    done = ascar("schema", name)
    assert done.status == 2
    refusal = f"DOCUMENT: {name!r} is not the name of a document; allowed: analyze, apply, "
    assert done.error.startswith(refusal)
