"""Commands that know systems by their interface alone work for every kind there is."""

from __future__ import annotations

import ast
import os
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ascar as ascar_package
from ascar.extension import kinds
from ascar.rules import Action, RuleSet
from ascar.space.study_table import study_space
from ascar.study import Study
from ascar.systems import open_target
from lctl_stand_in import LustreStandIn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KINDS = kinds("ascar.systems")
PARAMETERS = """
[space.parameters.depth]
kind = "integer"
low = 1
high = 64
default = 8
cost = "dyn-app"
"""
ECHO = """
[workload]
kind = "command"
argv = ["echo", "ops_per_s 5"]
metrics = { ops_per_s = "regex:ops_per_s ([0-9]+)" }
"""
OPTIONS: Mapping[str, str] = {
    "localfs": 'file_systems = ["ext4"]',
    "sqlite": "",
    "linux": 'settings = ["vm.dirtytime_expire_seconds", "vm.laptop_mode"]',
    "lustre": 'file_system = "scratch"\npath = "/var/tmp"\nsettings = ["llite.statahead_max"]',
    "postgresql": 'directory = "/var/tmp"',
    "redis": 'directory = "/var/tmp"',
    "mariadb": 'directory = "/var/tmp"',
    "rocksdb": 'directory = "/var/tmp"',
    "ceph": 'directory = "/var/tmp"',
    "nfs": 'disk = "random-write"',
    "program": 'command = ["true"]\n' + PARAMETERS,
    "simulated": 'metrics = { ops_per_s = "depth" }\n' + PARAMETERS,
    "table": 'file = "TABLE"\nmetrics = ["ops_per_s"]',
    "rules": 'rules = "RULES"\nscenario = "random-write"',
}

# A program of the user that sets what it is told.
SETTINGS = """
import json, sys
values = dict(depth=8)
for line in sys.stdin:
    order = json.loads(line)
    values = dict(depth=8) if "restore" in order else values | order.get("set", {})
    print(json.dumps(dict(ok={}) if "sample" in order else dict(ok=values)), flush=True)
"""
# Kinds that change the machine itself.
OF_MACHINE = ("linux", "localfs")
# What the load of a kind reports, where it is not ops_per_s.
METRICS: Mapping[str, str] = {
    "localfs": "throughput_ops_per_s",
    "sqlite": "throughput_ops_per_s",
    "postgresql": "throughput_ops_per_s",
    "redis": "throughput_ops_per_s",
    "mariadb": "throughput_ops_per_s",
    "rocksdb": "throughput_ops_per_s",
    "ceph": "throughput_ops_per_s",
    "nfs": "throughput_ops_per_s",
    "rules": "throughput_mb_per_s",
}
# What `check` needs beside the above, where a load has to run or values cost much to try.
LOADS: Mapping[str, str] = {
    "localfs": 'size = "512 MiB"\n[workload]\nkind = "filebench"\npersonality = "mailserver"\nscale = 0.1\n'
    '[space]\nallow_cost = ["dyn-kernel"]',
    "linux": ECHO,
    "postgresql": '[workload]\nkind = "pgbench"\nscale = 1\n[space]\ntuned = ["jit"]\n',
    "redis": '[workload]\nkind = "redis-benchmark"\nkeys = 1000\n[space]\ntuned = ["hz"]\n',
    "mariadb": '[workload]\nkind = "sysbench"\ntables = 1\nrows = 1000\n'
    '[space]\ntuned = ["innodb_flush_neighbors"]\n',
    "rocksdb": '[workload]\nkind = "db_bench"\nkeys = 1000\n[space]\ntuned = ["max_background_jobs"]\n',
    "ceph": 'osds = 1\nreplicas = 1\n[workload]\nkind = "rados-bench"\nobjects = 1000\n'
    '[space]\ntuned = ["debug_osd"]\n',
    "nfs": '[workload]\nkind = "fio"\noptions = { rw = "read", bs = "64k", size = "8m" }\n'
    '[space]\ntuned = ["nconnect", "bdi_read_ahead_kb"]\n',
    "program": ECHO,
    "lustre": ECHO,
}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Study]:
    """A study of a kind, with everything that it names."""
    lctl = Path(LustreStandIn(tmp_path).options["lctl"])
    monkeypatch.setenv("PATH", f"{lctl.parent}:{os.environ['PATH']}")
    (tmp_path / "table.csv").write_text("depth,ops_per_s\n" + "".join(f"{n},{n * 10}\n" for n in range(1, 9)))
    (tmp_path / "rules.txt").write_text(RuleSet.uniform(Action(50, 150, 0)).text())

    def of(kind: str) -> Study:
        options = OPTIONS[kind].replace("TABLE", str(tmp_path / "table.csv"))
        options = options.replace("RULES", str(tmp_path / "rules.txt"))
        return Study.parse(
            f'[study]\nname = "{kind}"\nobjective = "maximize ops_per_s"\nbudget = "1 min"\n'
            f'[target]\nkind = "{kind}"\n{options}'
        )

    return of


@pytest.fixture
def finished(study: Callable[[str], Study], keep_run: Callable[..., int]) -> Callable[[str], int]:
    """A finished run of a kind that recommends something else than the default."""

    def run_of(kind: str) -> int:
        target = open_target(study(kind).target)
        space = study_space(study(kind), target.space)
        best = space.neighbours(space.default())[0]
        return keep_run(study(kind), space, best, {"target": kind})

    return run_of


def test_every_kind_is_tried() -> None:
    assert sorted(OPTIONS) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_apply_says_what_is_left_to_the_user(
    ascar: Callable[..., Any], finished: Callable[[str], int], kind: str
) -> None:
    done = ascar("apply", finished(kind), "--dry-run", "--json")
    assert done.status == 0, done.error
    document = done.document
    told = [*document["settings"], *document["left_to_you"]]
    assert told, "a configuration that is not the default takes something"


@pytest.mark.parametrize("kind", KINDS)
def test_export_has_lines_or_none(
    ascar: Callable[..., Any], finished: Callable[[str], int], kind: str
) -> None:
    document = ascar("export", finished(kind), "--json").document
    assert document["chosen"]
    assert document["lines"] or kind in ("simulated", "table", "rules", "program")


@pytest.mark.parametrize("kind", KINDS)
def test_init_writes_a_study_of_the_kind(ascar: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    assert ascar("init", kind, "--out", path).status == 0
    assert tomllib.loads(path.read_text())["target"]["kind"] == kind


def test_doctor_says_of_each_whether_it_can_be_tuned(ascar: Callable[..., Any]) -> None:
    found = {one["kind"]: one for one in ascar("doctor", "--json").document["targets"]}
    assert sorted(found) == KINDS
    assert all(found[kind]["ready"] for kind in KINDS if kind not in ("localfs", "lustre", "nfs"))


@pytest.mark.parametrize("kind", KINDS)
def test_space_shows_the_catalogue(
    ascar: Callable[..., Any], study: Callable[[str], Study], kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(study(kind).text)
    document = ascar("space", path, "--json").document
    assert document["parameters"]


def _marks_of(kind: str) -> list[pytest.MarkDecorator]:
    """Servers that start again for each parameter that needs it take seconds of processor time."""
    if kind == "ceph":
        return [pytest.mark.slow, pytest.mark.cluster]
    return [pytest.mark.slow] if kind in ("mariadb", "nfs", "postgresql", "rocksdb") else []


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=_marks_of(kind)) for kind in KINDS if kind not in OF_MACHINE]
)
def test_check_tries_every_parameter_and_puts_everything_back(
    ascar: Callable[..., Any], study: Callable[[str], Study], kind: str, tmp_path: Path
) -> None:
    everything_is_tried(ascar, study(kind), tmp_path)


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.parametrize("kind", OF_MACHINE)
def test_check_tries_every_setting_of_the_machine_and_puts_everything_back(
    ascar: Callable[..., Any], study: Callable[[str], Study], kind: str, tmp_path: Path
) -> None:
    everything_is_tried(ascar, study(kind), tmp_path)


def everything_is_tried(ascar: Callable[..., Any], study: Study, folder: Path) -> None:
    """Check a study of a kind, with a load."""
    (folder / "settings.py").write_text(SETTINGS)
    text = study.text.replace('["true"]', f'["{sys.executable}", "./settings.py"]')
    text += "\n" + LOADS.get(study.name, "")
    text = text.replace("maximize ops_per_s", f"maximize {METRICS.get(study.name, 'ops_per_s')}")
    path = folder / "study.toml"
    path.write_text(text)
    done = ascar("check", path, "--json")
    assert done.status == 0, done.err or done.document["problems"]
    tried = [one for one in done.document["parameters"] if one["tried"] is not None]
    assert tried
    assert all(one["problem"] is None for one in tried)
    assert done.document["load_metrics"]


def test_only_systems_name_a_kind_of_system() -> None:
    package = Path(ascar_package.__file__).parent
    # The other kinds are words of their own too: a database's dialect, a program, a table, rules.
    kinds_alone = {"localfs", "linux", "simulated"}
    named = [
        f"{path.relative_to(package)}:{node.lineno}: {node.value}"
        for path in sorted(package.rglob("*.py"))
        if path.parent.name not in ("systems", "catalogues")
        and any(kind in (text := path.read_text()) for kind in kinds_alone)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value in kinds_alone
    ]
    assert named == []
