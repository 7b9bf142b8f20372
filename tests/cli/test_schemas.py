from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema

from ascar.results.documents import DOCUMENTS

ROOT = Path(__file__).resolve().parents[2]


def test_schemas_are_up_to_date():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "schemas.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_document_has_a_valid_schema():
    directory = ROOT / "docs" / "schemas"
    assert {path.stem for path in directory.glob("*.json")} == set(DOCUMENTS)
    for path in directory.glob("*.json"):
        jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))
