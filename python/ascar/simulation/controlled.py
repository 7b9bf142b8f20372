"""Scenarios under another control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ascar.simulation.reading import check, read_text
from ascar.simulation.scenario import RivalControl

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ascar.simulation.scenario import Scenario


def with_control(scenario: Scenario, *, window: float | None = None, tau_us: float | None = None) -> Scenario:
    """The scenario with another window and gap in all its controls; None leaves them as they are.

    Raises:
        ScenarioError: out of the bounds of a control.
    """
    given = {"window": window, "tau_us": tau_us}
    changes = {name: value for name, value in given.items() if value is not None}
    return _changed(scenario, changes) if changes else scenario


def with_controller(
    scenario: Scenario, controller: str, settings: Mapping[str, float] | None = None
) -> Scenario:
    """The scenario with one controller for all clients.

    Args:
        scenario: the scenario.
        controller: as scenarios name it; not "rules".
        settings: settings of it, keys of `control.rivals`; None: as the scenario has them.

    Raises:
        ScenarioError: a setting is out of range.
    """
    rivals = {} if settings is None else {"rivals": RivalControl(**settings)}
    return _changed(scenario, {"controller": controller, "rules": None, **rivals})


def with_rules(scenario: Scenario, path: Path) -> Scenario:
    """The scenario with all its controls following the rule set of a file.

    Raises:
        ScenarioError: the file cannot be read, or is not a rule set.
    """
    return with_rule_text(scenario, read_text(path, f"rules {str(path)!r}"))


def with_rule_text(scenario: Scenario, text: str) -> Scenario:
    """The scenario with all its controls following a rule set, given as the text of its file.

    Raises:
        ScenarioError: it is not a rule set.
    """
    return _changed(scenario, {"controller": "rules", "rules": text})


def _changed(scenario: Scenario, changes: dict[str, Any]) -> Scenario:
    clients = tuple(
        group
        if group.control is None
        else msgspec.structs.replace(group, control=msgspec.structs.replace(group.control, **changes))
        for group in scenario.clients
    )
    control = msgspec.structs.replace(scenario.control, **changes)
    changed = msgspec.structs.replace(scenario, control=control, clients=clients)
    check(changed)
    return changed
