"""The examples of the page run, in a program and in a notebook; so does the README's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "howto" / "python.md"


def blocks(page: Path) -> list[str]:
    """The indented blocks of a page that are Python."""
    text = page.read_text("utf-8")
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    return [re.sub(r"^    ", "", one, flags=re.MULTILINE).strip() + "\n" for one in found]


def run(program: str, folder: Path) -> str:
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", program],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_the_examples_of_the_page_run_one_after_the_other(tmp_path):
    found = blocks(PAGE)
    assert len(found) >= 7
    # Beside other tests, a comparison wants all of its budget, and times vary too much for any interval.
    program = (
        "".join(found)
        .replace('"30 min"', '"150 s"')
        .replace('preset="quick")\n', 'preset="quick", budget="5 s")\n')
    )
    assert program.count('budget="5 s"') == 2
    said = run(program, tmp_path)
    assert said.startswith("improved 512 ")
    assert "cache improved" in said


def test_the_example_of_the_readme_runs(tmp_path):
    example = next(one for one in blocks(ROOT / "README.md") if one.startswith("import ascar"))
    assert len(example.splitlines()) <= 8
    # Ten seconds decide on a machine that does nothing else.
    assert "improved" in run(example.replace('"10 s"', '"60 s"'), tmp_path)


@pytest.mark.slow
def test_a_notebook_shows_progress_and_plots(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="needs the development dependency nbclient")
    nbclient = pytest.importorskip("nbclient", reason="needs the development dependency nbclient")
    pytest.importorskip("ipykernel", reason="needs the development dependency ipykernel")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    cells = [
        *blocks(PAGE)[:1],
        "outcome",
        "ascar.measure('true', preset='quick', rounds_max=20)",
        "ascar.compare({'a': lambda: 1.0, 'b': lambda: 2.0}, preset='quick')",
        "ascar.tune(read_speed)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(
        notebook, timeout=300, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    tuned, shown, measured, compared, failed = (cell["outputs"] for cell in notebook.cells)
    (progress,) = [one for one in tuned if one["output_type"] == "display_data"]
    last = progress["data"]["text/plain"]
    assert any(word in last for word in ("compared", "after", "reduced")), last
    for outputs in (shown, measured, compared):
        assert "<svg" in outputs[-1]["data"]["text/html"]
    assert "trials" in str(shown[-1]["data"]["text/plain"])
    assert failed[-1]["ename"] == "InputError"
    assert failed[-1]["evalue"].startswith("space: missing")
