"""The bill of materials of a release, CycloneDX 1.5: every crate and Python package that it has.

    python scripts/bill_of_materials.py > ascar.cdx.json

Crates come from Cargo.lock, Python packages from uv.lock; those that only tests and builds need are left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ("ascard", "ascar-python", "ascar-ffi")
"""The crates that a release is built from; what they need, it has."""


def bill() -> dict[str, Any]:
    """The document."""
    document = json.loads(
        _said(
            str(ROOT / "scripts/uv"),
            "export",
            "--quiet",
            "--frozen",
            "--no-dev",
            "--all-extras",
            "--format",
            "cyclonedx1.5",
        )
    )
    # What differs between two runs is no part of what was built.
    document.pop("serialNumber", None)
    document["metadata"].pop("timestamp", None)
    document["components"] = sorted(
        [*document.get("components", []), *_crates()], key=lambda one: (one["name"], one["version"])
    )
    return document


def _crates() -> list[dict[str, Any]]:
    metadata = json.loads(
        _said("cargo", "metadata", "--locked", "--format-version", "1", "--features", "ascard/online")
    )
    packages = {one["id"]: one for one in metadata["packages"]}
    needs = {
        node["id"]: [
            one["pkg"] for one in node["deps"] if any(kind["kind"] is None for kind in one["dep_kinds"])
        ]
        for node in metadata["resolve"]["nodes"]
    }
    found: set[str] = set()
    waiting = [key for key, one in packages.items() if one["name"] in SHIPPED]
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += needs[key]
    return [
        {
            "type": "library",
            "bom-ref": f"{one['name']}@{one['version']}",
            "name": one["name"],
            "version": one["version"],
            "purl": f"pkg:cargo/{one['name']}@{one['version']}",
            "licenses": [{"expression": one["license"]}],
        }
        for one in (packages[key] for key in found)
        if one["source"] is not None
    ]


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
