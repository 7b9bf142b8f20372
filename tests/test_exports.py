"""What packages export: each `__init__` lists all that it offers, in order; other modules list nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ascar

_ROOT = Path(ascar.__file__).parent
_MODULES = sorted(_ROOT.rglob("*.py"))
_PACKAGES = [path for path in _MODULES if path.name == "__init__.py"]


def _exported(tree: ast.Module) -> list[str]:
    """The names in `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def _names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """The public names that a package has, and those of them that it has only for others.

    The latter it defines, or takes from its own modules without use for them itself.
    """
    imported: set[str] = set()
    defined: set[str] = set()
    body = list(tree.body)
    if any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in body):
        body += [
            inner for node in body if isinstance(node, ast.If) for inner in node.body
        ]  # loaded when asked for
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            imported.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined.update(target.id for target in targets if isinstance(target, ast.Name))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    commands = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list}
    public = {name for name in imported | defined if name == "__version__" or not name.startswith("_")}
    return public, public - (used & imported) - commands


def _place(name: str) -> tuple[int, str]:
    """Constants first, then classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@pytest.mark.parametrize("path", _PACKAGES, ids=lambda path: str(path.relative_to(_ROOT.parent).parent))
def test_a_package_exports_all_that_it_offers_in_order(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    exported = _exported(tree)
    public, for_others = _names(tree)
    assert exported == sorted(exported, key=_place)
    assert for_others <= set(exported) <= public


def test_modules_export_nothing_by_a_list() -> None:
    listing = {path for path in _MODULES if "__all__" in path.read_text("utf-8")} - set(_PACKAGES)
    assert [path for path in listing if _exported(ast.parse(path.read_text("utf-8")))] == []
