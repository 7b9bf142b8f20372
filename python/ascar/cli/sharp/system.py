"""The system that a command of the rule loop works on: a simulated cluster, or live controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.simulation import Scenario


def scenario_or_live(
    named: str | None,
    *,
    simulated: dict[str, object],
    live: dict[str, object],
    seconds: str | None = None,
    seed: int | None = None,
    settings: list[str] | None = None,
) -> Scenario | None:
    """The scenario; None means the controllers behind a message server.

    Args:
        named: the scenario's file or preset.
        simulated: options that apply to a scenario only, by their spelling.
        live: options that apply to live controllers only, by their spelling.
        seconds: the scenario's duration.
        seed: the scenario's seed.
        settings: keys of the scenario to change.

    Raises:
        InputError: options of the one were given with the other, or the scenario is wrong.
    """
    from ascar.cli.sim.options import scenario_of
    from ascar.errors import InputError

    unfit = [
        name for name, value in (simulated if named is None else live).items() if value not in (None, [])
    ]
    if unfit and named is None:
        raise InputError(f"{', '.join(unfit)}: allowed only with a SCENARIO")
    if unfit:
        raise InputError(f"{', '.join(unfit)}: allowed only for live controllers; leave SCENARIO out")
    return None if named is None else scenario_of(named, seconds, seed, settings)


def with_group_rules(scenario: Scenario, given: Sequence[str]) -> Scenario:
    """The scenario with client groups that follow rules already.

    Args:
        scenario: the scenario.
        given: each N=FILE: the group, counted from 1, and the file of its rules.

    Raises:
        InputError: one is no N=FILE, there is no such group, or the file is not a rule set.
    """
    from pathlib import Path

    from ascar.cli.sharp.files import read
    from ascar.errors import InputError
    from ascar.simulation import with_rule_text

    for one in given:
        number, equals, file = one.partition("=")
        if not (equals and file and number.isascii() and number.isdigit() and len(number) < 10):
            raise InputError(f"--group-rules = {one[:80]!r}: must be N=FILE, e.g. 1=readers.txt")
        scenario = with_rule_text(scenario, read(Path(file)).bare().text(), int(number) - 1)
    return scenario
