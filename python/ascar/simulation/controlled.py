"""Scenarios under another control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.errors import ScenarioError
from ascar.simulation.reading import check, read_text
from ascar.simulation.scenario import Control, RivalControl

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ascar.results.cluster import ClusterOutcome
    from ascar.simulation.scenario import Scenario

METADATA_OPERATIONS = frozenset(("createfile", "openfile", "closefile", "statfile", "deletefile"))
"""Operations that the metadata server carries out."""
_WITHOUT_DATA = METADATA_OPERATIONS | {"delay", "barrier", "sync"}

Followers = int | Literal["metadata"] | None
"""Whose streams follow rules: those of a client group, by its number from 0; all clients' streams of metadata
operations; None: all clients' streams of file data."""


def with_control(
    scenario: Scenario,
    *,
    window: float | None = None,
    tau_us: float | None = None,
    window_min: float | None = None,
    followers: Followers = None,
) -> Scenario:
    """The scenario with another window, gap and least window for these streams; None leaves them as they are.

    Raises:
        ScenarioError: out of the bounds of a control, or there are no such streams.
    """
    given = {"window": window, "tau_us": tau_us, "window_min": window_min}
    changes = {name: value for name, value in given.items() if value is not None}
    return _changed(scenario, changes, followers) if changes else scenario


def with_controller(
    scenario: Scenario,
    controller: str,
    settings: Mapping[str, float] | None = None,
    followers: Followers = None,
) -> Scenario:
    """The scenario with one controller for all these streams.

    Args:
        scenario: the scenario.
        controller: as scenarios name it; not "rules".
        settings: settings of it, keys of `control.rivals`; None: as the scenario has them.
        followers: the streams.

    Raises:
        ScenarioError: a setting is out of range, or there are no such streams.
    """
    rivals = {} if settings is None else {"rivals": RivalControl(**settings)}
    return _changed(scenario, {"controller": controller, "rules": None, **rivals}, followers)


def controls_of(scenario: Scenario, followers: Followers) -> tuple[Control, ...]:
    """The controls of these streams."""
    if followers == "metadata":
        return (scenario.metadata.control or Control(),)
    if followers is None:
        return scenario.controls
    return (scenario.clients[followers].control or scenario.control,)


def with_rules(scenario: Scenario, path: Path) -> Scenario:
    """The scenario with all its controls following the rule set of a file.

    Raises:
        ScenarioError: the file cannot be read, or is not a rule set.
    """
    return with_rule_text(scenario, read_text(path, f"rules {str(path)!r}"))


def with_rule_text(scenario: Scenario, text: str, followers: Followers = None) -> Scenario:
    """The scenario with controllers that follow a rule set, given as the text of its file.

    Args:
        scenario: the scenario.
        text: the text.
        followers: the streams that follow it.

    Raises:
        ScenarioError: it is not a rule set, or there is no such group.
    """
    return _changed(scenario, {"controller": "rules", "rules": text}, followers)


def check_followers(scenario: Scenario, followers: Followers) -> None:
    """Refuse streams that a scenario does not have.

    Raises:
        ScenarioError: it has no such client group, no operations on metadata, or none on file data.
    """
    steps = {step.op for load in scenario.workloads for group in load.threads for step in group.flowops}
    if followers == "metadata" and METADATA_OPERATIONS.isdisjoint(steps):
        allowed = ", ".join(sorted(METADATA_OPERATIONS))
        raise ScenarioError(f"metadata: {scenario.name!r} has none of the operations {allowed}")
    if followers == "metadata":
        return
    if steps <= _WITHOUT_DATA:
        raise ScenarioError(
            f"{scenario.name!r} moves no file data, so no stream would follow the rules; --metadata makes "
            "rules for its operations on metadata"
        )
    if followers is not None and not 0 <= followers < len(scenario.clients):
        count = len(scenario.clients)
        raise ScenarioError(f"client group {followers + 1}: {scenario.name!r} has {count}, counted from 1")


def followers_in_words(followers: Followers) -> str:
    """Followers as results name them."""
    if followers is None:
        return "data"
    return followers if followers == "metadata" else f"client group {followers + 1}"


def rules_of(outcome: ClusterOutcome, scenario: Scenario, followers: Followers) -> tuple[str, ...]:
    """The rule sets that these streams followed in a run, with their use, as text."""
    groups = len(scenario.clients)
    if followers is None:
        texts = outcome.rules[:groups]
    elif followers == "metadata":
        texts = outcome.rules[groups:]
    else:
        texts = outcome.rules[followers : followers + 1]
    return tuple(text for text in texts if text is not None)


def _changed(scenario: Scenario, changes: dict[str, Any], followers: Followers) -> Scenario:
    """The scenario with other controls of these streams."""
    if followers is not None:
        check_followers(scenario, followers)
    if followers == "metadata":
        (control,) = controls_of(scenario, followers)
        controlled = msgspec.structs.replace(control, **changes)
        metadata = msgspec.structs.replace(scenario.metadata, control=controlled)
        changed = msgspec.structs.replace(scenario, metadata=metadata)
    else:
        clients = list(scenario.clients)
        for number, group in enumerate(clients):
            if followers == number or (followers is None and group.control is not None):
                control = msgspec.structs.replace(group.control or scenario.control, **changes)
                clients[number] = msgspec.structs.replace(group, control=control)
        control = (
            scenario.control
            if followers is not None
            else msgspec.structs.replace(scenario.control, **changes)
        )
        changed = msgspec.structs.replace(scenario, control=control, clients=tuple(clients))
    check(changed)
    return changed
