"""What `import ascar` offers is there, stays what it is, is typed and documented, and is loaded late."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import typing
from pathlib import Path
from types import ModuleType

import pytest

import ascar

ROOT = Path(ascar.__file__).parent


def loaded(statement: str) -> set[str]:
    """The modules that a fresh interpreter has after a statement, and a bare one has not."""
    program = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_importing_ascar_loads_nothing_of_its_own_or_of_others():
    new = loaded("import ascar")
    assert {name for name in new if name.partition(".")[0] == "ascar"} == {"ascar"}
    assert {name.partition(".")[0] for name in new} - {"ascar"} <= sys.stdlib_module_names
    assert len(new) <= 40


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("Study", {"numpy", "scipy", "polars", "sqlalchemy", "matplotlib", "rich"}),
        ("tune", {"numpy", "scipy", "polars", "sqlalchemy", "matplotlib", "rich"}),
        ("History", {"scipy", "polars", "matplotlib", "rich"}),
        ("Space", {"scipy", "polars", "sqlalchemy", "matplotlib", "rich"}),
        ("measure", {"polars", "sqlalchemy", "matplotlib"}),
    ],
)
def test_a_name_loads_only_what_it_needs(name, without):
    assert not loaded(f"from ascar import {name}") & without


def test_all_names_are_there_and_listed():
    assert dir(ascar) == sorted(ascar.__all__)
    for name in ascar.__all__:
        assert getattr(ascar, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ascar.nothing  # noqa: B018
    assert not hasattr(ascar.optimizers, "nothing")
    assert set(ascar.optimizers.__all__) == set(dir(ascar.optimizers))


@pytest.mark.slow
def test_no_module_takes_the_place_of_a_public_name():
    program = """
import importlib, pkgutil, types, ascar
public = {name: getattr(ascar, name) for name in ascar.__all__}
for module in pkgutil.walk_packages(ascar.__path__, "ascar."):
    if module.name != "ascar.__main__":
        importlib.import_module(module.name)
for name, value in public.items():
    assert getattr(ascar, name) is value, name
    assert not isinstance(value, types.ModuleType) or name == "optimizers", name
for module in pkgutil.walk_packages(ascar.__path__, "ascar."):
    if module.ispkg:
        package = importlib.import_module(module.name)
        for name in getattr(package, "__all__", ()):
            assert not isinstance(getattr(package, name), types.ModuleType), (module.name, name)
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=300)


def test_no_submodule_has_the_name_of_a_public_function():
    modules = {module.name for module in pkgutil.iter_modules(ascar.__path__)}
    assert modules & set(ascar.__all__) == {"optimizers"}


def test_everything_public_is_documented_and_typed():
    assert (ROOT / "py.typed").exists()
    for name in ascar.__all__:
        value = getattr(ascar, name)
        if isinstance(value, (str, ModuleType)):
            continue
        assert inspect.getdoc(value), name
        if inspect.isfunction(value):
            signature = inspect.signature(value)
            assert signature.return_annotation is not inspect.Signature.empty, name
            for one in signature.parameters.values():
                assert one.annotation is not inspect.Parameter.empty, (name, one.name)
            documented = inspect.getdoc(value) or ""
            if "Args:" in documented:
                for one in signature.parameters:
                    assert f"\n    {one}: " in documented, (name, one)


def test_what_is_loaded_late_is_what_type_checkers_see():
    source = Path(ascar.__file__).read_text("utf-8")
    checked = set(re.findall(r"\b\w+\b", source.partition("if TYPE_CHECKING:")[2].partition("__all__")[0]))
    assert set(ascar.__all__) - {"__version__"} <= checked
    assert not typing.TYPE_CHECKING
    for name in ascar.__all__:
        home = getattr(getattr(ascar, name), "__module__", "ascar")
        importlib.import_module(home)
