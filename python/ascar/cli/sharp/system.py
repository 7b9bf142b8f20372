"""The system that a command of the rule loop works on: a simulated cluster, or live controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.rules import RuleSet
    from ascar.sharp.task import RealTestbed
    from ascar.simulation import Scenario
    from ascar.simulation.controlled import Followers


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


def found_testbed(
    named: str | None,
    *,
    others: dict[str, object],
    real_runs: int | None,
    seconds: str | None = None,
    seed: int | None = None,
) -> RealTestbed | None:
    """The testbed that a file describes; None: it is no testbed file.

    Args:
        named: the file, the preset, or None.
        others: options that do not apply to a testbed, by their spelling.
        real_runs: the largest number of runs on it; None: as many as are allowed.
        seconds: the duration of a run.
        seed: the seed of the simulation.

    Raises:
        InputError: options were given that do not apply, or the testbed or its scenario is wrong.
    """
    from pathlib import Path

    from ascar.cli.sim.options import timed
    from ascar.errors import InputError
    from ascar.sharp.task import RealTestbed
    from ascar.sharp.testbed_search import RUNS_MAX, check_runs
    from ascar.sharp.trials.testbed_places import scenario_on
    from ascar.testbed.file import is_testbed_file, read_testbed

    if named is None or not is_testbed_file(Path(named)):
        if real_runs is not None:
            raise InputError(f"--real-runs = {real_runs}: allowed only with a testbed file")
        return None
    unfit = [name for name, value in others.items() if value not in (None, [])]
    if unfit:
        raise InputError(f"{', '.join(unfit)}: allowed only without a testbed file")
    wanted = read_testbed(Path(named))
    runs = RUNS_MAX if real_runs is None else check_runs(real_runs)
    return RealTestbed(wanted, timed(scenario_on(wanted), seconds, seed), runs)


def followers_of(
    client_group: int | None, *, metadata: bool, active_files: str | None, start: RuleSet
) -> Followers:
    """The streams that rules are made for.

    Args:
        client_group: the group, counted from 1; None: all.
        metadata: whether they are the streams of metadata operations.
        active_files: limits on the files of a stream that are to be tried.
        start: the rules that a search begins with.

    Raises:
        InputError: rules or options for streams of file data were given for those of metadata operations.
    """
    from ascar.errors import InputError

    if not metadata:
        return None if client_group is None else client_group - 1
    for option, value in {"--client-group": client_group, "--active-files": active_files}.items():
        if value is not None:
            raise InputError(f"{option} with --metadata: it is for streams of file data; leave it out")
    if start.active_files:
        raise InputError(
            f"--rules with --metadata: active_files={start.active_files} is for streams of file data; "
            "take it out of line 1"
        )
    return "metadata"


def group_rules_of(
    given: Sequence[str], client_group: int | None, *, metadata: bool = False
) -> Callable[[Scenario], Scenario]:
    """What lets client groups of a scenario follow rules already.

    Args:
        given: each N=FILE: the group, counted from 1, and the file of its rules.
        client_group: the group that rules are made for, counted from 1; None: for all.
        metadata: whether they are made for the streams of metadata operations, which belong to no group.

    Raises:
        InputError: one is no N=FILE, a group is named twice or rules are made for it, or a file is not a rule
            set. That a scenario has no such group is told when it is given.
    """
    from pathlib import Path

    from ascar.cli.sharp.files import read
    from ascar.errors import InputError
    from ascar.simulation import with_rule_text

    texts: dict[int, str] = {}
    for one in given:
        number, equals, file = one.partition("=")
        if not (equals and file and number.isascii() and number.isdigit() and len(number) < 10):
            raise InputError(f"--group-rules = {one[:80]!r}: must be N=FILE, e.g. 1=readers.txt")
        group = int(number)
        is_free = metadata or (client_group is not None and group != client_group)
        if not is_free or group in texts:
            raise InputError(
                f"--group-rules = {one[:80]!r}: must be of another group than --client-group, each once"
            )
        texts[group] = read(Path(file)).bare().text()

    def ruled(scenario: Scenario) -> Scenario:
        for group, text in texts.items():
            scenario = with_rule_text(scenario, text, group - 1)
        return scenario

    return ruled
