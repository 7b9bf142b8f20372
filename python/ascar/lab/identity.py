"""What a simulated search's result depends on, as a short key: the same key, the same result."""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.extension import entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.lab.problem import Specification
    from ascar.lab.simulation import Budget, Contender

_VERSION = 1  # raised when a search is fed, judged or recorded otherwise
# Packages that decide what is proposed; what else they import (errors, units) does not.
_DOOR = "ascar.optimizers.grouped"  # through which every optimizer is opened
_DECIDING = ("ascar.optimizers", "ascar.learning", "ascar.space", "ascar._core")


def key_of(specification: Specification, contender: Contender, budget: Budget) -> str:
    """16 hexadecimal digits of what every run of this contender on this problem depends on, but for its seed.

    The table counts by its content, the optimizer by its options and its code. Of our own optimizers that is
    every module that they import; of others the version of their distribution and their module.
    """
    content = {
        "version": _VERSION,
        "problem": specification.identity(),
        "contender": {"kind": contender.kind, "options": dict(contender.options)},
        "code": _code(contender.kind),
        "evaluations": budget.evaluations,
        "judged": budget.judged,
    }
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _code(kind: str) -> str:
    """A digest of an optimizer's code; empty where there is no such optimizer."""
    digest = hashlib.sha256()
    for entry in entries("ascar.optimizers").select(name=kind):
        if entry.dist is not None and not entry.module.startswith("ascar."):
            digest.update(f"{entry.dist.name} {entry.dist.version}".encode())
            digest.update(str(_requirements(entry.dist)).encode())
        for path in sources_of(entry.module) + sources_of(_DOOR):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _requirements(distribution: Any) -> list[str]:
    """Installed versions of what a distribution requires: of a peer's adapter, the peer itself."""
    from importlib.metadata import PackageNotFoundError, version

    found: list[str] = []
    for text in distribution.requires or ():
        name = text.split(";")[0].strip().split("[")[0].split("=")[0].split(">")[0].split("<")[0].strip()
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found


def sources_of(module: str) -> list[Path]:
    """The files of a module and of the deciding modules that it imports, sorted."""
    known: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        try:
            spec = find_spec(name)
        except ModuleNotFoundError:  # a function's name, not a module's
            continue
        if spec is None or spec.origin is None or not Path(spec.origin).is_file():
            continue
        known[name] = Path(spec.origin)
        if known[name].suffix == ".py":
            waiting += [one for one in _imports(known[name]) if one.startswith(_DECIDING)]
    return sorted(set(known.values()))


def _imports(path: Path) -> Iterator[str]:
    """Modules imported at run time; a name imported from a package may itself be a module."""
    tree = ast.parse(path.read_bytes())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.module
            yield from (
                f"{node.module}.{name.name}"
                for name in node.names
                if node.module.startswith(_DECIDING) and name.name.islower()
            )
