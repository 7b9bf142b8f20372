"""Writes docs/schemas: the JSON Schema of every document that a command prints with --json.

In `ascard/` are those of what the daemons print and send. `python scripts/schemas.py` writes the files,
with --check it says whether they are up to date. Keys that a command's document may have are all required:
a reader never has to ask whether one is there. A change that a reader could notice raises the document's
version in `ascar.cli.output.SCHEMAS`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from schema import ascard, capes, history, lab, measuring, session, sharp, simulation, tuning, workload
from schema.words import Schema, record

from ascar.cli.output import SCHEMAS

DIRECTORY = Path(__file__).resolve().parent.parent / "docs" / "schemas"
COMMANDS = (tuning, measuring, history, lab, workload, sharp, simulation, capes, session)
BY_HAND = {"ascard/load.json"}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, str]:
    """Every schema's text by file name."""
    documents = {name: document for module in COMMANDS for name, document in module.DOCUMENTS.items()}
    texts: dict[str, str] = {}
    for name, (description, keys) in documents.items():
        title = f"ascar/{name}/{SCHEMAS[name]}"
        texts[f"{name}.json"] = _text(title, record(description, schema={"const": title}, **keys))
    for name, (description, schema) in ascard.DOCUMENTS.items():
        texts[f"ascard/{name}.json"] = _text(f"ascard/{name}/1", {"description": description, **schema})
    return texts


def _text(title: str, schema: Schema) -> str:
    return json.dumps({"$schema": DIALECT, "title": title, **schema}, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the files, or with --check compare them."""
    texts = schemas()
    files = {str(path.relative_to(DIRECTORY)): path for path in DIRECTORY.rglob("*.json")}
    there = {name: path.read_text("utf-8") for name, path in files.items() if name not in BY_HAND}
    if "--check" in sys.argv[1:]:
        stale = sorted(name for name in {*there, *texts} if there.get(name) != texts.get(name))
        sys.stdout.writelines(f"docs/schemas/{name} is out of date: run `make docs`\n" for name in stale)
        return 1 if stale else 0
    for name in there:
        if name not in texts:
            files[name].unlink()
    for name, text in texts.items():
        path = DIRECTORY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
