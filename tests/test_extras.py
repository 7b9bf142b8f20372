"""What a plain `pip install ascar` can do, and what it says of the rest."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ascar.errors import EnvironmentLacks
from ascar.extras import EXTRAS, OF_PACKAGE, importing_extra, lacking
from ascar.history import BegunRun, History, RunKind
from ascar.space import Space

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
END = "\x1e"
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys(lacking))
from ascar.cli import main
for words in commands:
    status = main(words)
    print("", status, sep="\\n", end={END!r}, flush=True)
    print(end={END!r}, file=sys.stderr, flush=True)
"""


def distributions(requirements: list[str]) -> set[str]:
    """The names in a list of requirements."""
    return {re.split(r"[^A-Za-z0-9_.-]", one)[0].lower().replace("_", "-") for one in requirements}


class Done(NamedTuple):
    """What a command came to."""

    status: int
    out: str
    err: str


def without_extras(*commands: Sequence[str], cwd: Path) -> list[Done]:
    """Run commands where no extra is installed, nor what comes with one."""
    return without([*EXTRAS, "scipy"], *commands, cwd=cwd)


def without(lacking: Sequence[str], *commands: Sequence[str], cwd: Path) -> list[Done]:
    """Run commands one after the other in a process of their own, which cannot import some packages."""
    given = f"commands = {[list(one) for one in commands]!r}; lacking = {list(lacking)!r}"
    words = [sys.executable, "-c", f"{given}\n{WITHOUT}"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, timeout=300)
    assert ran.returncode == 0, ran.stderr
    done: list[Done] = []
    for said, err in zip(ran.stdout.split(END)[:-1], ran.stderr.split(END)[:-1], strict=True):
        out, _, status = said.rpartition("\n")
        done.append(Done(int(status), out, err))
    assert len(done) == len(commands), ran.stderr
    return done


def imported() -> set[str]:
    """The packages of others that the package imports."""
    found: set[str] = set()
    for file in (ROOT / "python").rglob("*.py"):
        text = file.read_text("utf-8")
        found.update(re.findall(r"^ *from (\w+)[\w.]* import ", text, re.MULTILINE))
        found.update(re.findall(r"^ *import (\w+)[\w.]*(?: as \w+)?(?:  #.*)?$", text, re.MULTILINE))
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
    # NumPy is 17 of them; ascar's own two wheels, with 9 or 10, come on top. At most 60 are wanted in all.
    assert 20 < sum(found.values()) < 26, found
    assert "scipy" not in found
    page = (ROOT / "docs/howto/install.md").read_text("utf-8")
    listed = re.findall(r"^\| \[?`([\w-]+)`.*\| ([\d.]+) \|$", page, re.MULTILINE)
    said = {name: float(mb) for name, mb in listed if name.lower() not in PROJECT["optional-dependencies"]}
    needed = distributions(PROJECT["dependencies"])
    assert {name.lower() for name in said} == needed
    for name in needed - {"ascard"}:
        assert said[name] == pytest.approx(found[name], abs=0.06), f"{name}: write {found[name]:.1f}"


def test_the_page_on_installs_has_every_extra_with_its_packages_and_weight() -> None:
    """The weight is what was measured of an install with it, less that of one without."""
    page = (ROOT / "docs/howto/install.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \|[^|]+\| ([^|]+) \| \+([\d.]+) \|$", page, re.MULTILINE)
    benchmarks = (ROOT / "docs/benchmarks.md").read_text("utf-8")
    installs = benchmarks.partition("\n## Installs\n")[2].partition("\n## ")[0]
    measured = dict(re.findall(r"^\| ascar(?:\[([\w-]+)\])? \| ([\d.]+) \|", installs, re.MULTILINE))
    extras = PROJECT["optional-dependencies"]
    assert [name for name, _, _ in rows] == list(extras)
    assert set(measured) == {"", *extras}
    for name, packages, mb in rows:
        assert all(package in packages.lower() for package in distributions(extras[name])), name
        added = float(measured[name]) - float(measured[""])
        assert float(mb) == pytest.approx(added, abs=0.5), f"{name}: write +{added:.1f}"


def test_no_page_and_no_message_names_an_extra_that_there_is_none_of() -> None:
    places = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
    for folder, kind in (("docs", "*.md"), ("python/ascar", "*.py"), ("examples", "*"), ("packaging", "*")):
        places += [file for file in (ROOT / folder).rglob(kind) if file.is_file()]
    named = {
        name
        for file in places
        for names in re.findall(
            r"(?:\bascar|\.whl\))\[([a-z0-9-]+(?:,[a-z0-9-]+)*)\]|\bextra `([\w-]+)`",
            file.read_text("utf-8", "replace"),
        )
        for name in "".join(names).split(",")
    }
    assert {"explore", "online", "drl"} <= named <= set(PROJECT["optional-dependencies"])


def test_ascar_needs_the_node_binary_of_its_own_version() -> None:
    binary = tomllib.loads((ROOT / "crates/ascard/pyproject.toml").read_text("utf-8"))["project"]
    crates = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]
    assert binary["version"] == PROJECT["version"] == crates["version"]
    assert f"ascard=={PROJECT['version']}" in PROJECT["dependencies"]
    assert binary["requires-python"] == PROJECT["requires-python"]


def test_a_study_is_tuned_without_any_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    _, made, tuned, *shown = without_extras(
        ("--help",),
        ("init", "sqlite", "--out", "study.toml"),
        ("tune", "study.toml", "--budget", "8 s", "--json"),
        ("history", "show", "sqlite"),
        ("apply", "sqlite", "--dry-run"),
        ("space", "study.toml"),
        cwd=tmp_path,
    )
    assert made.status == 0, made.err
    assert tuned.status in {0, 3}, tuned.err
    assert json.loads(tuned.out)["schema"] == "ascar/tune/1"
    assert [one.status for one in shown] == [0, 0, 0], shown
    lack_explore(
        ("report", "sqlite", "--out", "report"),
        ("explore", "sqlite", "--no-open"),
        ("history", "export", "sqlite", "--out", "runs.csv"),
        cwd=tmp_path,
    )


def lack_explore(*commands: Sequence[str], cwd: Path) -> None:
    for one in without_extras(*commands, cwd=cwd):
        assert one.status == 2, one.err
        assert len(one.err.strip().splitlines()) == 1
        assert "pip install 'ascar[explore]'" in one.err


def test_what_a_plain_install_can_do(tmp_path: Path) -> None:
    done = without_extras(
        ("doctor",),
        ("measure", "--rounds-max", "3", "--", "true"),
        ("compare", "--rounds-max", "3", "--", "true", "true"),
        ("sim", "run", "random-write", "--duration", "1 s"),
        ("sim", "sweep", "random-write", "--windows", "1,2", "--duration", "1 s"),
        ("sharp", "explain", "random-write"),
        ("lab", "--help"),
        ("capes", "up", "--help"),
        cwd=tmp_path,
    )
    assert [one for one in done if one.status not in {0, 3}] == []


def test_searches_and_analyses_need_no_scipy(tmp_path: Path) -> None:
    # JAX and scikit-learn bring it with them, so that it is often there; nothing of ascar's may rest on that.
    cells = itertools.product(range(5), range(4), range(3), range(3))
    rows = [
        f"{a},{b},{c},{(a - 2) ** 2 + b * c + (7 * a + 3 * b + run) % 5 / 9 + 1}" for a, b, c, run in cells
    ]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c,seconds", *rows]))
    table = ("--table", "table.csv", "--objective", "seconds")
    searches = ("--direction=min", "--runs=1", "--evaluations=12", "--optimizers=gp,auto")
    done = without(
        ["scipy"],
        ("lab", "optimizers", *table, *searches, "--workers", "1"),
        ("importance", *table, "--json"),
        ("variation", *table, "--json"),
        cwd=tmp_path,
    )
    assert [one.status for one in done] == [0, 0, 0], done


def test_designs_are_drawn_without_scipy() -> None:
    program = """
import sys
sys.modules["scipy"] = None
import numpy as np
from ascar import Space, integer
space = Space((integer("a", (1, 400), default=4), integer("b", (1, 9), default=4)))
for kind in ("sobol", "halton"):
    assert len(set(space.sequence(np.random.default_rng(1), 32, kind))) == 32
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_plot_that_nothing_can_draw_is_refused_before_the_work(tmp_path: Path) -> None:
    lack_explore(
        ("measure", "--plot", "x.png", "--", "sh", "-c", "echo ran >>trace"),
        ("compare", "--plot", "x.png", "--", "echo ran >>trace", "true"),
        ("sim", "run", "random-write", "--plots", "figures"),
        ("sim", "sweep", "random-write", "--plots", "figures"),
        cwd=tmp_path,
    )
    assert list(tmp_path.iterdir()) == []


def test_a_recorded_table_needs_an_extra_and_its_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,speed\n1,2\n2,3\n")
    (tmp_path / "study.toml").write_text(
        '[study]\nname = "t"\nobjective = "maximize speed"\nbudget = "5 s"\n'
        '[target]\nkind = "table"\npath = "table.csv"\n'
    )
    (lacks,) = without_extras(("tune", "study.toml"), cwd=tmp_path)
    assert lacks.status == 2
    assert "target.kind = 'table': polars cannot be imported" in lacks.err


def test_a_plain_install_exports_and_imports_runs_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = BegunRun(RunKind.SESSION, "mail", "d" * 64, "maximize speed", 7, "text", Space())
    with History(tmp_path / "here") as history, history.recording(begun, {}):
        pass
    monkeypatch.setenv("ASCAR_HISTORY", str(tmp_path / "here"))
    assert without_extras(("history", "export", "--all", "--out", "runs.json"), cwd=tmp_path)[0].status == 0
    lack_explore(("history", "export", "--all", "--out", "runs.csv"), cwd=tmp_path)
    monkeypatch.setenv("ASCAR_HISTORY", str(tmp_path / "there"))
    assert without_extras(("history", "import", "runs.json"), cwd=tmp_path)[0].status == 0
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


def test_who_has_the_package_of_a_distribution_is_not_sent_to_its_pip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That pip refuses, or installs for another Python."""
    jax = ModuleNotFoundError("No module named 'jax'", name="jax")
    monkeypatch.setattr(sys, "prefix", OF_PACKAGE)
    lacks = lacking(jax)
    assert lacks is not None
    assert "python3 -m venv DIRECTORY && DIRECTORY/bin/pip install 'ascar[drl]'" in lacks.message
    packaged = (ROOT / "packaging/ascar.yaml").read_text()
    assert f"dst: {OF_PACKAGE}, type: tree" in packaged
