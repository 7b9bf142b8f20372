"""From a scenario file, or plain tables, to a checked scenario."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ascar import _core, typed
from ascar.errors import ScenarioError
from ascar.simulation.explanation import explain, shown
from ascar.simulation.scenario import Scenario
from ascar.small_file import SmallFile, toml_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FILE_BYTES_MAX = 4_000_000
# What the simulator counts with; the seed alone may be larger.
_COUNT_MAX = 2**32 - 1
_SEED_MAX = 2**63 - 1
_LINE_MAX = 200


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ScenarioError: it cannot be read, or a key is wrong.
    """
    what = f"scenario {str(path)!r}"
    return scenario_of(_table(read_text(path, what), what))


def parse_scenario(text: str) -> Scenario:
    """A scenario from TOML text.

    Raises:
        ScenarioError: it is not TOML, or a key is wrong.
    """
    return scenario_of(_table(text, "scenario"))


def read_text(path: Path, what: str) -> str:
    """The text of a file.

    Args:
        path: the path of the file.
        what: the kind of file, for messages.

    Raises:
        ScenarioError: it cannot be read, is too large, or is not a text.
    """
    return SmallFile(path, what, FILE_BYTES_MAX, error=ScenarioError).text()


def scenario_of(table: Mapping[str, Any]) -> Scenario:
    """The scenario that plain tables describe.

    Args:
        table: the table as TOML gives it.

    Raises:
        ScenarioError: a key is unknown, missing, of the wrong type or out of range; one line names the key,
            the value and what is allowed.
    """
    try:
        scenario = typed.convert(dict(table), Scenario)
    except msgspec.ValidationError as error:
        raise ScenarioError(explain(str(error), table, Scenario)) from error
    check(scenario)
    return scenario


def check(scenario: Scenario) -> None:
    """Check ranges, and what names refer to.

    Raises:
        ScenarioError: the first key that is wrong.
    """
    for key, text in (("name", scenario.name), ("description", scenario.description)):
        if not text.isprintable() or len(text) > _LINE_MAX:
            raise ScenarioError(f"{key} = {shown(text)}: must be one line of at most {_LINE_MAX} characters")
    for key, value in _numbers(scenario, ""):
        if isinstance(value, float) and not math.isfinite(value):
            raise ScenarioError(f"{key} = {value!r}: must be a finite number")
        most = _SEED_MAX if key == "seed" else _COUNT_MAX
        if isinstance(value, int) and not 0 <= value <= most:
            raise ScenarioError(f"{key} = {shown(value)}: must be from 0 to {most}")
    complete(scenario)


def complete(scenario: Scenario) -> dict[str, Any]:
    """The scenario as plain tables, with every default in its place.

    Raises:
        ScenarioError: the first key that is out of range, or refers to what is not there.
    """
    try:
        return msgspec.json.decode(_core.check_scenario(scenario.to_json()))
    except ValueError as error:
        raise ScenarioError(str(error)) from error


def _table(text: str, what: str) -> dict[str, Any]:
    return toml_table(text, lambda reason: ScenarioError(f"{what}: {reason}"))


def _numbers(value: object, key: str) -> Iterator[tuple[str, int | float]]:
    """Every number below a struct, with its key."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield key, value
    elif isinstance(value, tuple):
        for index, item in enumerate(cast("tuple[object, ...]", value)):
            yield from _numbers(item, f"{key}[{index}]")
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _numbers(getattr(value, name), f"{key}.{name}" if key else name)
