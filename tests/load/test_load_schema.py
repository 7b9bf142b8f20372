"""Every line that `ascard load` prints has the published form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "load.json"


def test_every_line_has_the_published_form(load: Callable[..., Any], memory: Path) -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    mail = ("--personality", "mailserver", "--scale", "0.1")
    database = ("--personality", "dbserver", "--scale", "0.01")
    runs = [
        load("--list"),
        load(*database, "--describe"),
        load(*mail, "--dir", memory, "--seconds", "1", "--reading-ms", "100", "--cdf"),
        load(*database, "--dir", memory, "--seconds", "0.2", "--reading-ms", "50", "--clean"),
    ]
    kinds = set()
    for done in runs:
        for line in done.lines:
            kinds.add(line["kind"])
            validator.validate(line)
    assert kinds == {"fill", "reading", "summary", "personality", "description"}
    summary = runs[2].lines[-1]
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**summary, "surprise": 1})
