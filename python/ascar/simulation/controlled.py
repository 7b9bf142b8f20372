"""Scenarios under another control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import ScenarioError
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


def with_rule_text(scenario: Scenario, text: str, group: int | None = None) -> Scenario:
    """The scenario with controls that follow a rule set, given as the text of its file.

    Args:
        scenario: the scenario.
        text: the text.
        group: the number of the client group that follows it, from 0; None: all do.

    Raises:
        ScenarioError: it is not a rule set, or there is no such group.
    """
    changes: dict[str, Any] = {"controller": "rules", "rules": text}
    if group is None:
        return _changed(scenario, changes)
    check_group(scenario, group)
    own = scenario.clients[group]
    control = msgspec.structs.replace(own.control or scenario.control, **changes)
    clients = list(scenario.clients)
    clients[group] = msgspec.structs.replace(own, control=control)
    changed = msgspec.structs.replace(scenario, clients=tuple(clients))
    check(changed)
    return changed


def check_group(scenario: Scenario, group: int) -> None:
    """Refuse a client group that a scenario does not have.

    Raises:
        ScenarioError: it has no group of this number, from 0.
    """
    if not 0 <= group < len(scenario.clients):
        count = len(scenario.clients)
        raise ScenarioError(f"client group {group + 1}: {scenario.name!r} has {count}, counted from 1")


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
