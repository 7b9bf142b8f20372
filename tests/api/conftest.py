"""The command line, for errors that must be the same."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from ascar.cli import main

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"


@pytest.fixture(autouse=True)
def _own_history(tmp_path, monkeypatch):
    monkeypatch.setenv("ASCAR_HISTORY", str(tmp_path / "default.sqlite"))


@pytest.fixture
def ascar_command(capfd):
    def run(*words) -> str:
        main([str(word) for word in words])
        return capfd.readouterr().err

    return run


@pytest.fixture
def check_document():
    def check(name: str, document: object) -> None:
        jsonschema.validate(document, json.loads((SCHEMAS / f"{name}.json").read_text("utf-8")))

    return check
