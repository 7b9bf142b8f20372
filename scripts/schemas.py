"""Writes docs/schemas: the JSON Schema of every document that a command prints with --json.

Each is derived from the struct of the command's result (`ascar.results`). In `ascard/` are those of what the
daemons print and send. `python scripts/schemas.py` writes the files, with --check it says whether they are
up to date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import ascard_schemas

from ascar.results.documents import DOCUMENTS, struct_of
from ascar.results.schema import DIALECT, schema_of

DIRECTORY = Path(__file__).resolve().parent.parent / "docs" / "schemas"
BY_HAND = {"ascard/load.json"}
WIDTH = 160


def schemas() -> dict[str, str]:
    """Every schema's text by file name."""
    texts = {f"{name}.json": _text(schema_of(struct_of(name))) for name in DOCUMENTS}
    for name, (description, schema) in ascard_schemas.DOCUMENTS.items():
        head = {"$schema": DIALECT, "title": f"ascard/{name}/1", "description": description}
        texts[f"ascard/{name}.json"] = _text(head | schema)
    return texts


def _text(schema: dict[str, Any]) -> str:
    return f"{_compact(schema, '')}\n"


def _compact(value: Any, indent: str, label: str = "") -> str:
    """JSON of which every part that fits stands on one line, and every list of names."""
    line = json.dumps(value, ensure_ascii=False)
    names = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if names or not isinstance(value, dict | list) or len(indent + label + line) <= WIDTH:
        return f"{label}{line}"
    inner = f"{indent}  "
    if isinstance(value, dict):
        parts = [_compact(item, inner, f"{json.dumps(key)}: ") for key, item in value.items()]
    else:
        parts = [_compact(item, inner) for item in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    body = f",\n{inner}".join(parts)
    return f"{label}{first}\n{inner}{body}\n{indent}{last}"


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
