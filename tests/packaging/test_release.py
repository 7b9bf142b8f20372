"""What a release checks before it builds anything, and its bill of materials."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ("scripts/release", "pyproject.toml", "crates/ascard/pyproject.toml", "Cargo.toml", "CHANGELOG.md")
AUTHOR = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
ENVIRONMENT = {**os.environ, **AUTHOR, "GIT_CONFIG_GLOBAL": "/dev/null"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, env=ENVIRONMENT, check=True)
    return tmp_path


def released(checkout: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts/release", *words],
        env={**ENVIRONMENT, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("words", [[], ["1.0"], ["1.0.0-rc1"], ["v1.0.0"], ["1.0.0;ls"], ["0.1.0", "--fast"]])
def test_wrong_words_are_refused(checkout: Path, words: list[str]) -> None:
    said = released(checkout, *words)
    assert said.returncode == 2
    assert "must be" in said.stderr
    assert not (checkout / "build").exists()


def test_everything_that_is_wrong_is_named_at_once(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 0.0.9\n\n- Old.\n")
    subprocess.run(["git", "tag", "v9.9.9"], cwd=checkout, env=ENVIRONMENT, check=True)
    said = released(checkout, "9.9.9", "--rehearse", SIGN="/no/such/key")
    assert said.returncode == 1
    for part in (
        "the checkout has changes",
        "pyproject.toml: version = 0.1.0: must be 9.9.9",
        "crates/ascard/pyproject.toml: version",
        "Cargo.toml: version",
        "must need ascard==9.9.9",
        "the tag v9.9.9 is there",
        "nothing stands under Unreleased",
        "SIGN = /no/such/key",
    ):
        assert part in said.stderr
    assert not (checkout / "build").exists()
    assert "9.9.9" not in (checkout / "CHANGELOG.md").read_text()


def test_nothing_is_dated_when_the_build_fails(checkout: Path) -> None:
    """There is no Makefile here."""
    said = released(checkout, "0.1.0", "--rehearse")
    assert said.returncode == 1
    assert "failed" in said.stderr
    assert not (checkout / "build").exists()
    assert (checkout / "CHANGELOG.md").read_text() == (ROOT / "CHANGELOG.md").read_text()


def test_the_bill_of_materials_has_what_is_shipped_and_nothing_else() -> None:
    script = ROOT / "scripts/bill_of_materials.py"
    said = [
        subprocess.run(
            [sys.executable, script], capture_output=True, text=True, check=True, timeout=120
        ).stdout
        for _ in range(2)
    ]
    assert said[0] == said[1]
    document = json.loads(said[0])
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    names = {one["name"] for one in document["components"]}
    assert {"numpy", "scipy", "msgspec", "rusqlite", "lexopt", "pyo3"} <= names
    assert not names & {"pytest", "ruff", "proptest", "hypothesis", "maturin"}
    assert all(one["version"] for one in document["components"])
    crates = [one for one in document["components"] if one.get("purl", "").startswith("pkg:cargo/")]
    assert len({one["purl"] for one in crates}) == len(crates)
    assert all(one["licenses"][0]["expression"] for one in crates)
