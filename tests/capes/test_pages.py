"""What the pages show works: studies are read, files are taken, the code in the tutorial runs."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ascar.capes.process.learner_file import read_plan
from ascar.capes.session.study import OnlineStudy

DOCS = Path(__file__).resolve().parents[2] / "docs"


def shown(page, begin):
    """The indented example of a page that begins with a line."""
    text = (DOCS / page).read_text()
    start = text.index(f"\n    {begin}") + 1
    lines = text[start:].splitlines()
    end = next((at for at, line in enumerate(lines) if line and not line.startswith("    ")), len(lines))
    return textwrap.dedent("\n".join(lines[:end])).strip() + "\n"


def test_the_shortest_study_and_the_one_with_all_keys():
    short = OnlineStudy.parse(shown("tutorials/online.md", "[study]"))
    assert (short.session, short.online.mode) == ("files", "automatic")
    # The metrics of the rule and the target are named elsewhere on the page.
    whole = OnlineStudy.parse(shown("howto/capes.md", "[study]"))
    assert whole.target == {"kind": "localfs", "iops": 200}
    assert whole.online.agent == {"calendar": True} and whole.phase_s == 45


def test_the_learner_s_file(tmp_path):
    (tmp_path / "learner.toml").write_text(shown("howto/learner.md", 'session = "default"'))
    assert read_plan(tmp_path / "learner.toml").file.session == "default"


@pytest.mark.parametrize(
    ("part", "page", "begin"),
    [("agent", "howto/agent.md", 'node = "client1"'), ("interface", "howto/interface.md", "session = ")],
)
def test_the_daemons_files(part, page, begin, tmp_path):
    ascard = Path(sys.executable).parent / "ascard"
    if subprocess.run([ascard, part, "--help"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ascard was built without agent and interface: run `make online`")
    (tmp_path / "part.toml").write_text(shown(page, begin))
    (tmp_path / "connection.toml").touch(mode=0o600)
    (tmp_path / "connection.toml").write_text('url = "nats://127.0.0.1:4222"\n')
    done = subprocess.run(
        [ascard, part, "--config", tmp_path / "part.toml", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_code_of_the_tutorial(tmp_path):
    code = shown("tutorials/online.md", "import numpy as np")
    assert "range(1200)" in code
    done = subprocess.run(
        [sys.executable, "-P", "-c", code.replace("range(1200)", "range(60)")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\([\d., ]+\) [\d.]+\n", done.stdout), done.stdout
