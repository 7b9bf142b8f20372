"""The bill of materials of a release, CycloneDX 1.5: every crate, module and package in it.

    python scripts/bill_of_materials.py > ascar.cdx.json

Crates come from Cargo.lock, Python packages from uv.lock, and what the page of `ascar explore` is built from
from web/package-lock.json; those that only tests, builds and other systems than Linux need are left out. The
modules of Go are those of the `nats-server` in the packages. What a compiler links has no version here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ("ascard", "ascar-python", "ascar-ffi")
"""The crates that a release is built from; what they need, it has."""
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
"""What releases are built for; others' crates are in Cargo.lock as well."""
OF_COMPILERS = {"glibc": "LGPL-2.1-or-later", "rust-std": "(MIT OR Apache-2.0) AND MIT AND Unicode-3.0"}
"""What the compiler links with every program of ours, with its licence."""
MESSAGE_SERVER = ROOT / "packaging/licences/nats-server.txt"
"""Begins with what `nats-server` says it is built from; `scripts/third_party.py` writes it."""
OF_WINDOWS = "sys_platform == 'win32'"
"""What uv says of a Python package that other systems need."""


def bill() -> dict[str, Any]:
    """The document."""
    document = json.loads(
        said(
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
    elsewhere = {
        one["bom-ref"]
        for one in document["components"]
        if any(told["value"] == OF_WINDOWS for told in one.get("properties", ()))
    }
    document["components"] = sorted(
        [
            *(one for one in document["components"] if one["bom-ref"] not in elsewhere),
            *(_component("cargo", one["name"], one["version"], one["license"]) for one in crates(*SHIPPED)),
            *_packages_of_the_page(),
            *_modules_of_the_message_server(),
            *(_component("generic", name, licence=licence) for name, licence in OF_COMPILERS.items()),
        ],
        key=lambda one: (one["name"], one.get("version", ""), one.get("purl", "")),
    )
    document["dependencies"] = [
        {**one, "dependsOn": [name for name in one["dependsOn"] if name not in elsewhere]}
        if "dependsOn" in one
        else one
        for one in document["dependencies"]
        if one["ref"] not in elsewhere
    ]
    return document


def crates(*ours: str, through_macros: bool = True) -> list[dict[str, Any]]:
    """What crates of ours need to run, as `cargo metadata` describes it, by name and version.

    Args:
        ours: names of crates of this workspace.
        through_macros: also what procedural macros are built from, of which no program has anything.
    """
    metadata = _metadata()
    packages = {one["id"]: one for one in metadata["packages"]}
    needs = {
        node["id"]: [
            one["pkg"] for one in node["deps"] if any(kind["kind"] is None for kind in one["dep_kinds"])
        ]
        for node in metadata["resolve"]["nodes"]
    }
    found: set[str] = set()
    waiting = [key for key, one in packages.items() if one["name"] in ours]
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            if through_macros or not _is_macro(packages[key]):
                waiting += needs[key]
    others = (packages[key] for key in found if packages[key]["source"] is not None)
    return sorted(others, key=lambda one: (one["name"], one["version"]))


@cache
def _metadata() -> dict[str, Any]:
    words = ("cargo", "metadata", "--locked", "--format-version", "1", "--features", "ascard/online")
    return json.loads(said(*words, *(f"--filter-platform={target}" for target in TARGETS)))


def _is_macro(package: dict[str, Any]) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def _packages_of_the_page() -> list[dict[str, Any]]:
    """Those whose code is in the built page."""
    locked = json.loads((ROOT / "web/package-lock.json").read_text("utf-8"))["packages"]
    return [
        _component("npm", place.rpartition("node_modules/")[2], one["version"], one["license"])
        for place, one in locked.items()
        if place and not one.get("dev")
    ]


def _modules_of_the_message_server() -> list[dict[str, Any]]:
    told = MESSAGE_SERVER.read_text("utf-8")
    modules = re.findall(r"^(\S+) (v\d\S*): ", told, re.MULTILINE)
    modules += [("stdlib", of) for of in re.findall(r"^Go's standard library (\S+),", told, re.MULTILINE)]
    return [_component("golang", name, version) for name, version in modules]


def _component(registry: str, name: str, version: str = "", licence: str = "") -> dict[str, Any]:
    at = f"@{version}" if version else ""
    return {
        "type": "library",
        "bom-ref": f"{registry}:{name}{at}",
        "name": name,
        **({"version": version} if version else {}),
        "purl": f"pkg:{registry}/{quote(name, safe='/')}{quote(at, safe='@')}",
        **({"licenses": [{"expression": licence}]} if licence else {}),
    }


def said(*words: str) -> str:
    """What a program prints."""
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
