"""Scenarios that come with the program: the rows of Li's Table 3.4, and CAPES's set-up."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import ScenarioError
from ascar.simulation.explanation import shown
from ascar.simulation.reading import read_scenario

if TYPE_CHECKING:
    from ascar.simulation.scenario import Scenario

_DIRECTORY = Path(__file__).parent / "presets"

PRESETS: tuple[str, ...] = tuple(sorted(path.stem for path in _DIRECTORY.glob("*.toml")))
"""Their names."""


def preset(name: str) -> Scenario:
    """The scenario of a name.

    Raises:
        ScenarioError: there is none.
    """
    if name not in PRESETS:
        near = get_close_matches(name, PRESETS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ScenarioError(f"scenario {shown(name)}: must be a file or one of {', '.join(PRESETS)}{hint}")
    return read_scenario(_DIRECTORY / f"{name}.toml")


def open_scenario(named: str) -> Scenario:
    """What a user names: a file (ending in .toml, or with a slash in it), or a preset.

    Raises:
        ScenarioError: there is no such scenario, or a key of it is wrong.
    """
    return read_scenario(Path(named)) if named.endswith(".toml") or "/" in named else preset(named)
