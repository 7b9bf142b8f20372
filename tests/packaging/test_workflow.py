"""The workflow of the forge: it calls what anybody calls, and what it calls is there."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
JOBS = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
RUN = {
    f"{name}, step {at}": step["run"]
    for name, job in JOBS.items()
    for at, step in enumerate(job["steps"])
    if "run" in step
}
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_it_runs_all_that_a_release_runs() -> None:
    said = "\n".join(RUN.values())
    for command in (".ci/run", ".ci/release", "make wheels", "make check-wheels", "make release"):
        assert command in said, command


@pytest.mark.parametrize("step", RUN)
def test_what_it_calls_is_there(step: str) -> None:
    for target in re.findall(r"\bmake ([a-z-]+)", RUN[step]):
        assert target in TARGETS, target
    for script in re.findall(r"(?<!\S)(\.?[\w-]+/[\w/-]+)", re.sub(r'"[^"]*"', "", RUN[step])):
        assert os.access(ROOT / script, os.X_OK), script


@pytest.mark.parametrize(
    "step", [step for step, said in RUN.items() if re.search(r"sudo .*(make|\.ci/)", said)]
)
def test_root_finds_the_compiler_of_who_has_installed_it(step: str) -> None:
    """Through sudo the home is root's, where rustup has no toolchain: it ended before anything was built."""
    assert '"PATH=$PATH"' in RUN[step]
    assert '"CARGO_HOME=$HOME/.cargo" "RUSTUP_HOME=$HOME/.rustup"' in RUN[step]
