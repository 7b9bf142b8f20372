"""The commands with which how-tos begin, one after the other, in a minute instead of ten."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

HOWTO = Path(__file__).parents[1] / "docs/howto"
SHORTER = {
    'budget = "10 min"': 'budget = "60 s"',
    '#load_min = "3 s"': 'load_min = "1 s"',
    '#load_max = "10 s"': 'load_max = "2 s"',
    "#trials = 100": "trials = 4",
    "#runs_min = 5": "runs_min = 2",
    "#runs_max = 1000": "runs_max = 2",
}


def commands_of(kind: str) -> list[list[str]]:
    """The commands of ascar in the block of the page that begins a study, without where their output goes."""
    blocks = re.findall(r"(?:^    .*\n)+", (HOWTO / f"{kind}.md").read_text("utf-8"), re.MULTILINE)
    block = next(one for one in blocks if f"ascar init {kind}" in one)
    lines = (shlex.split(line.partition(" > ")[0], comments=True) for line in block.splitlines())
    return [words[1:] for words in lines if words and words[0] == "ascar"]


def followed(ascar: Callable[..., Any], kind: str, changes: dict[str, str]) -> list[str]:
    """Run them here, with changes of the study that the first one writes; returns which ones they were."""
    begun: list[str] = []
    for words in commands_of(kind):
        done = ascar(*words)
        assert done.status in ({0, 3} if words[0] == "tune" else {0}), f"{words}: {done.out}{done.err}"
        begun.append(words[0])
        if words[0] == "init":
            file = Path(f"{kind}.toml")
            text = file.read_text()
            for before, after in {**SHORTER, **changes}.items():
                assert text.count(before) == 1, before
                text = text.replace(before, after)
            file.write_text(text)
    return begun
