"""Single keys of a scenario set from outside, as `control.window=16` or `servers.queue.slots=64`."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, cast

from ascar.errors import ScenarioError
from ascar.simulation.explanation import shown
from ascar.simulation.reading import complete, scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascar.simulation.scenario import Scenario

_PATH = re.compile(r"[a-z_0-9]+(\[\d{1,6}\])?(\.[a-z_0-9]+(\[\d{1,6}\])?)*")
_PART = re.compile(r"([a-z_0-9]+)(?:\[(\d+)\])?")


def with_settings(scenario: Scenario, settings: Iterable[str]) -> Scenario:
    """The scenario with keys changed.

    Args:
        scenario: the scenario to change.
        settings: each KEY=VALUE: a path such as `clients[0].count`, in which a list without a number means
            all its members, and a value as TOML has it; text needs no quotes.

    Raises:
        ScenarioError: no such key, or a value that is not allowed there.
    """
    given = tuple(settings)
    if not given:
        return scenario
    table = complete(scenario)
    for setting in given:
        key, equals, text = setting.partition("=")
        key = key.strip()
        if not equals or not _PATH.fullmatch(key):
            raise ScenarioError(f"{shown(setting)}: must be KEY=VALUE, e.g. control.window=16")
        _put(table, key, _value(text.strip()))
    return scenario_of(table)


def _value(text: str) -> Any:
    """As TOML reads it; text that is no TOML value is text."""
    try:
        table = tomllib.loads(f"value = {text}\n")
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return text
    return table["value"] if set(table) == {"value"} else text


def _put(table: dict[str, Any], key: str, value: Any) -> None:
    """Set the key in the table, in each member of the lists on its way that have no number."""
    places: list[dict[str, Any]] = [table]
    parts = _PART.findall(key)
    for depth, (name, index) in enumerate(parts):
        if depth == len(parts) - 1 and not index:
            for place in places:
                place[name] = value
            return
        places = [one for place in places for one in _below(place, name, index, key)]
    raise ScenarioError(f"{key} = {shown(value)}: names a whole table; name one of its keys")


def _below(place: dict[str, Any], name: str, index: str, key: str) -> list[dict[str, Any]]:
    """The tables at a name."""
    if name not in place:
        raise ScenarioError(f"{key}: there is no {name!r}; allowed there: {', '.join(place)}")
    found: Any = place[name]
    if isinstance(found, list):
        members = cast("list[dict[str, Any]]", found)
        if not index and members:
            return members
        if not members:
            raise ScenarioError(f"{key}: the scenario has no {name}; describe them in a file")
        if int(index) >= len(members):
            raise ScenarioError(f"{key}: {name} has {len(members)} members, counted from 0")
        return [members[int(index)]]
    if index:
        raise ScenarioError(f"{key}: {name} is not a list; leave out [{index}]")
    if found is None:  # an optional table that the scenario does not have
        place[name] = found = {}
    if not isinstance(found, dict):
        raise ScenarioError(f"{key}: {name} is not a table; it has no keys")
    return [cast("dict[str, Any]", found)]
