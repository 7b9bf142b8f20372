"""What a plain `pip install ascar` can do, and what it says of the rest."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks
from ascar.extras import EXTRAS, importing_extra, lacking
from ascar.history import BegunRun, History, RunKind
from ascar.space import Space

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({sorted(EXTRAS)!r}))\n"


def distributions(requirements: list[str]) -> set[str]:
    """The names in a list of requirements."""
    return {re.split(r"[^A-Za-z0-9_.-]", one)[0].lower().replace("_", "-") for one in requirements}


def without_extras(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command where no extra is installed."""
    words = ["ascar", *map(str, arguments)]
    code = f"{WITHOUT}sys.argv = {words!r}\nfrom ascar.cli import main\nsys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=cwd, timeout=300
    )


def imported() -> set[str]:
    """The packages of others that the package imports."""
    found: set[str] = set()
    for file in (ROOT / "python").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.append(node.module)
            found.update(name.partition(".")[0] for name in names)
    is_there_where_it_is_used = {"IPython"}
    return found - set(sys.stdlib_module_names) - {"ascar", "__future__"} - is_there_where_it_is_used


def test_every_package_that_is_imported_is_needed_by_ascar_or_comes_with_an_extra() -> None:
    known = importlib.metadata.packages_distributions()
    core = distributions(PROJECT["dependencies"])
    of_extras = {name: distributions(lines) for name, lines in PROJECT["optional-dependencies"].items()}
    for package in imported():
        names = distributions(known.get(package, [package]))
        if package in EXTRAS:
            wanted = {"sklearn": "scikit-learn"}.get(package, package)
            assert wanted in of_extras[EXTRAS[package]], package
            assert wanted not in core
        else:
            assert names & core, f"{package} is imported, and nothing that is installed with ascar has it"


def of_lock_file(name: str, lock: dict[str, list[dict[str, Any]]], found: dict[str, float]) -> None:
    """The MB of the wheels that a plain install downloads on Linux for Python 3.11, by package."""
    if name in found:
        return
    [package] = [
        one
        for one in lock[name]
        if len(lock[name]) == 1 or any("< '3.12'" in it for it in one["resolution-markers"])
    ]
    wheels = {one["url"]: one["size"] for one in package.get("wheels", ())}
    compiled = [
        size
        for url, size in wheels.items()
        if re.search(r"-cp311-cp311-manylinux.*x86_64|-abi3-manylinux.*x86_64", url)
    ]
    # What is compiled for it goes before what fits everywhere.
    found[name] = max(compiled or wheels.values(), default=0) / 1e6
    for needed in package.get("dependencies", ()):
        marker = needed.get("marker", "")
        if "== 'win32'" not in marker and ">= '3.12'" not in marker:
            of_lock_file(needed["name"], lock, found)


def test_what_a_plain_install_downloads_is_listed_and_grows_by_no_accident() -> None:
    lock: dict[str, list[dict[str, Any]]] = {}
    for one in tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))["package"]:
        lock.setdefault(one["name"], []).append(one)
    found: dict[str, float] = {}
    of_lock_file("ascar", lock, found)
    # SciPy and NumPy are 52 of them; ascar's own two wheels come on top.
    assert 50 < sum(found.values()) < 61, found
    page = (ROOT / "docs/howto/install.md").read_text("utf-8")
    listed = re.findall(r"^\| \[?`([\w-]+)`.*\| ([\d.]+) \|$", page, re.MULTILINE)
    said = {name: float(mb) for name, mb in listed if name.lower() not in PROJECT["optional-dependencies"]}
    needed = distributions(PROJECT["dependencies"])
    assert {name.lower() for name in said} == needed
    for name in needed - {"ascard"}:
        assert said[name] == pytest.approx(found[name], abs=0.06), f"{name}: write {found[name]:.1f}"


def test_ascar_needs_the_node_binary_of_its_own_version() -> None:
    binary = tomllib.loads((ROOT / "crates/ascard/pyproject.toml").read_text("utf-8"))["project"]
    crates = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]
    assert binary["version"] == PROJECT["version"] == crates["version"]
    assert f"ascard=={PROJECT['version']}" in PROJECT["dependencies"]
    assert binary["requires-python"] == PROJECT["requires-python"]


def test_a_study_is_tuned_without_any_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert without_extras("--help", cwd=tmp_path).returncode == 0
    assert without_extras("init", "sqlite", "--out", "study.toml", cwd=tmp_path).returncode == 0
    done = without_extras("tune", "study.toml", "--budget", "20 s", "--json", cwd=tmp_path)
    assert done.stdout, done.stderr
    assert json.loads(done.stdout)["schema"] == "ascar/tune/1"
    assert done.returncode in {0, 3}, done.stderr
    for words in (("history", "show", "sqlite"), ("apply", "sqlite", "--dry-run"), ("space", "study.toml")):
        shown = without_extras(*words, cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
    for words in (
        ("report", "sqlite", "--out", "report"),
        ("explore", "sqlite", "--no-open"),
        ("history", "export", "sqlite", "--out", "runs.csv"),
    ):
        lacks_explore(words, tmp_path)


def lacks_explore(words: Sequence[str], folder: Path) -> None:
    lacks = without_extras(*words, cwd=folder)
    assert lacks.returncode == 2, lacks.stderr
    assert len(lacks.stderr.strip().splitlines()) == 1
    assert "pip install 'ascar[explore]'" in lacks.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("doctor",),
        ("measure", "--rounds-max", "3", "--", "true"),
        ("compare", "--rounds-max", "3", "--", "true", "true"),
        ("sim", "run", "random-write", "--duration", "1 s"),
        ("sim", "sweep", "random-write", "--windows", "1,2", "--duration", "1 s"),
        ("sharp", "explain", "random-write"),
        ("lab", "--help"),
        ("capes", "up", "--help"),
    ],
    ids=" ".join,
)
def test_what_a_plain_install_can_do(words: tuple[str, ...], tmp_path: Path) -> None:
    done = without_extras(*words, cwd=tmp_path)
    assert done.returncode in {0, 3}, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("measure", "--plot", "x.png", "--", "sh", "-c", "echo ran >>trace"),
        ("compare", "--plot", "x.png", "--", "echo ran >>trace", "true"),
        ("sim", "run", "random-write", "--plots", "figures"),
        ("sim", "sweep", "random-write", "--plots", "figures"),
    ],
    ids=" ".join,
)
def test_a_plot_that_nothing_can_draw_is_refused_before_the_work(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    lacks_explore(words, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_recorded_table_needs_an_extra_and_its_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,speed\n1,2\n2,3\n")
    (tmp_path / "study.toml").write_text(
        '[study]\nname = "t"\nobjective = "maximize speed"\nbudget = "5 s"\n'
        '[target]\nkind = "table"\npath = "table.csv"\n'
    )
    lacks = without_extras("tune", "study.toml", cwd=tmp_path)
    assert lacks.returncode == 2
    assert "target.kind = 'table': polars cannot be imported" in lacks.stderr


def test_a_plain_install_exports_and_imports_runs_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = BegunRun(RunKind.SESSION, "mail", "d" * 64, "maximize speed", 7, "text", Space())
    with History(tmp_path / "here") as history, history.recording(begun, {}):
        pass
    monkeypatch.setenv("ASCAR_HISTORY", str(tmp_path / "here"))
    assert without_extras("history", "export", "--all", "--out", "runs.json", cwd=tmp_path).returncode == 0
    lacks_explore(("history", "export", "--all", "--out", "runs.csv"), tmp_path)
    monkeypatch.setenv("ASCAR_HISTORY", str(tmp_path / "there"))
    assert without_extras("history", "import", "runs.json", cwd=tmp_path).returncode == 0
    with History(tmp_path / "there") as history:
        assert [one.name for one in history.runs()] == ["mail"]


def test_whatever_fails_in_the_packages_of_an_extra_names_the_extra() -> None:
    for error in (
        ModuleNotFoundError("No module named 'jaxlib'", name="jaxlib"),
        ImportError("cannot import name 'x' from 'jax'", name="jax.numpy"),
        ImportError("libgomp.so.1: cannot open shared object file"),
    ):
        with pytest.raises(EnvironmentLacks, match=r"ascar\[drl\]"), importing_extra("drl"):
            raise error
    assert lacking(ModuleNotFoundError("No module named 'of_nobody'", name="of_nobody")) is None
    assert lacking(ImportError("cannot import name 'x' from 'polars'", name="polars")) is None
