from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest

from ascar.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    if path.is_file()
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def anchors(page):
    """The names that a page's headings get."""
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(page.read_text("utf-8")))
    return {slug.strip().replace(" ", "-") for slug in slugs}


def prose(page):
    """A page without its indented and fenced examples and its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`", "", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / unquote(name)).resolve() if name else page
        assert target.exists(), f"{page.relative_to(ROOT)} links to {link}, which is not there"
        assert target.is_relative_to(ROOT), f"{page.relative_to(ROOT)} links to {link}, outside the project"
        if anchor:
            assert anchor in anchors(target), f"{page.relative_to(ROOT)} links to {link}: no such heading"


def test_every_page_is_in_the_contents():
    listed = {
        (ROOT / "docs" / link.partition("#")[0]).resolve()
        for link in LINK.findall(prose(ROOT / "docs/README.md"))
    }
    pages = {path for path in PAGES if ROOT / "docs" in path.parents} - {ROOT / "docs/README.md"}
    known = subprocess.run(
        ["git", "ls-files", "docs"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    # In a work tree a page that is still being written need not be listed.
    pages = {path for path in pages if not known or str(path.relative_to(ROOT)) in known}
    assert sorted(str(path.relative_to(ROOT)) for path in pages - listed) == []


def test_the_layers_of_the_architecture_are_those_that_are_enforced():
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    shown = re.search(r"^    cli\n(?:    .*\n)+", page, re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers" and "cli" in one["layers"])
    assert shown is not None
    assert shown[0].split("\n")[:-1] == [f"    {re.sub(r'[()]', '', one)}" for one in layers]


def blocks(text):
    """Indented blocks with the line of prose before each."""
    before, block = "", []
    for line in [*text.splitlines(), "."]:
        if line.startswith("    "):
            block.append(line[4:])
        elif line.strip():
            if block:
                yield before, block
            before, block = line, []
        elif block:
            yield before, block
            before, block = "", []


def test_the_examples_of_readings_are_read(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    ran, named = [], ""
    for paragraph in re.split(r"\n(?=\S)", (ROOT / "docs/howto/readings.md").read_text("utf-8")):
        found = re.findall(r"`([\w.]+\.(?:csv|jsonl?|log))`", paragraph)
        named = found[-1] if found else named
        for _, block in blocks(paragraph):
            if not block[0].startswith("ascar "):
                Path(named).write_text("\n".join(block) + "\n")
                continue
            for command in block:
                status = main(shlex.split(command)[1:])
                out, err = capfd.readouterr()
                assert status == 0, f"{command}: {err}"
                assert "verdict" in out
                ran.append(command)
    assert len(ran) == 9
    assert {path.name for path in tmp_path.iterdir()} >= {"run.csv", "run.jsonl", "numbers.json", "node2.csv"}
