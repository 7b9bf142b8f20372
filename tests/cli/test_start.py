"""What a command imports before it has something to say; how long that takes is `benchmarks.start_up`'s."""

import json
import subprocess
import sys

import pytest

HEAVY = {"matplotlib", "numpy", "polars", "pydantic", "rich", "scipy", "sqlalchemy"}
PROGRAM = """
import json, sys
from ascar.cli import main
status = main(json.loads(sys.argv[1]))
print(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)
"""


def started(*arguments):
    """The status of a command, and what it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([str(one) for one in arguments])],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    status, modules = json.loads(done.stderr.splitlines()[-1])
    return status, set(modules), done.stdout


def test_help_imports_no_command_and_nothing_heavy():
    status, modules, out = started("--help")
    assert status == 0
    assert "tune" in out
    assert not HEAVY & modules
    assert not {"typer", "ascar._core", "ascar.cli.app", "ascar.cli.tune"} & modules


@pytest.mark.parametrize("arguments", [["tune", "--help"], ["sharp", "--help"], ["capes", "up", "--help"]])
def test_help_of_a_command_imports_nothing_heavy(arguments):
    status, modules, out = started(*arguments)
    assert status == 0
    assert "Usage: ascar" in out
    assert not HEAVY & modules


@pytest.mark.parametrize(
    "text",
    ['[study]\nname = "x"\n', '[study]\nname = "x"\nobjektive = "a"\n', "[study", ""],
)
def test_a_mistake_in_a_study_file_is_told_before_anything_heavy_is_imported(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(text)
    status, modules, _ = started("tune", path)
    assert status == 2
    assert not HEAVY & modules


_STUDY = '[study]\nname = "x"\nobjective = "maximize a"\nbudget = "1 min"\n'


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ('[target]\nkind = "simulatd"\n', set()),
        ('[target]\nkind = "simulated"\n[workload]\nkind = "fi"\n', set()),
        ('[target]\nkind = "simulated"\n[optimizer]\nkind = "gpp"\n', set()),
        ('[target]\nkind = "simulated"\nmetrcs = 1\n', {"numpy"}),
        (
            '[target]\nkind = "simulated"\nmetrics = { a = "b" }\n[space.parameters.b]\nkind = "intger"\n',
            {"numpy"},
        ),
    ],
)
def test_a_mistake_in_a_table_is_told_before_more_is_imported_than_finds_it(tmp_path, text, needed):
    path = tmp_path / "study.toml"
    path.write_text(_STUDY + text)
    status, modules, _ = started("tune", path)
    assert status == 2
    assert HEAVY & modules == needed


def test_measuring_for_a_program_imports_nothing_heavy():
    status, modules, _ = started("measure", "--json", "--quiet", "--rounds-max", "4", "--", "true")
    assert status in (0, 3)
    assert not HEAVY & modules


def test_an_unknown_command_is_told_before_any_command_is_imported():
    status, modules, _ = started("tun")
    assert status == 2
    assert not HEAVY & modules
    assert "ascar.cli.tune" not in modules
