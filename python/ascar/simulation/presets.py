"""Scenarios that come with the program: rows of Li's Table 3.4, CAPES's set-up; and elevators of servers."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ascar.errors import ScenarioError
from ascar.simulation.explanation import shown
from ascar.simulation.overrides import with_settings
from ascar.simulation.reading import read_scenario

if TYPE_CHECKING:
    from ascar.simulation.scenario import Scenario

_DIRECTORY = Path(__file__).parent / "presets"

_STORAGE = Path(__file__).parent / "storage"

PRESETS: tuple[str, ...] = tuple(sorted(path.stem for path in _DIRECTORY.glob("*.toml")))
"""Their names."""
STORAGE: tuple[str, ...] = tuple(sorted(path.stem for path in _STORAGE.glob("*.toml")))
"""Names of the elevators that the servers of any scenario can have: `random-write@linux-6`."""


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
    """What a user names: a file (.toml, or with a slash in it), or a preset; then "@" and an elevator.

    Raises:
        ScenarioError: there is no such scenario or elevator, or a key of it is wrong.
    """
    name, at, storage = named.rpartition("@")
    if not at or "/" in storage or storage.endswith(".toml"):
        name, storage = named, ""
    scenario = read_scenario(Path(name)) if name.endswith(".toml") or "/" in name else preset(name)
    return with_storage(scenario, storage) if storage or named != name else scenario


def with_storage(scenario: Scenario, storage: str) -> Scenario:
    """The scenario whose servers all have one of the elevators that come with the program.

    Raises:
        ScenarioError: there is no such elevator.
    """
    if storage not in STORAGE:
        near = get_close_matches(storage, STORAGE, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ScenarioError(f"elevator {shown(storage)}: must be one of {', '.join(STORAGE)}{hint}")
    queue = tomllib.loads((_STORAGE / f"{storage}.toml").read_text("utf-8"))["queue"]
    changed = with_settings(scenario, [f"servers.queue.{key}={value}" for key, value in queue.items()])
    return msgspec.structs.replace(changed, name=f"{scenario.name}@{storage}")
