"""`ascar sharp deploy` and `down`: rules in force on all controllers of a workload, or on none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import (
    BackAfter,
    Connection,
    Floor,
    Forget,
    Json,
    KeepFor,
    Least,
    Quiet,
    Rehearse,
    RuleFile,
    WorkloadOrNone,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.results.rule_deployment import FloorCheck, SharpDeployResult
    from ascar.sharp import RuleSet
    from ascar.sharp.deployment.floor import ThroughputFloor

EXAMPLES = examples(
    "ascar sharp deploy rules.txt                       all controllers run one workload",
    "ascar sharp deploy rules.txt --workload random --least 5",
    "ascar sharp deploy rules.txt --rehearse random-write --floor 95% --back-after '30 min'",
    "ascar sharp deploy rules.txt --keep-for '7 d'      deploy again before that: the time begins anew",
    "ascar sharp deploy rules.txt --connection proxy-connection.toml    on the streams of `ascard proxy`",
)
DOWN_EXAMPLES = examples("ascar sharp down --workload random")


def in_force(done: SharpDeployResult) -> str:
    """Which rules are in force, in a line."""
    return f"rules {done.rules} are in force on {len(done.controllers)} controllers of {done.workload}"


def deploy(
    file: RuleFile,
    workload: WorkloadOrNone = None,
    floor: Floor = "80%",
    rehearse: Rehearse = None,
    back_after: BackAfter = None,
    keep_for: KeepFor = None,
    least: Least = 1,
    forget: Forget = False,
    connection: Connection = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Put a rule set in force on every controller of a workload (Li, 3.1.1 and 3.1.4).

    Each takes the rules on trial, and keeps them once all have. When one is missing, refuses, or does not
    answer, the rules from before are put back on all; the exit status is 1, and says who and why.

    Before that, the rules are on trial for 10 seconds of the system, after 10 seconds with what is in force:
    when the throughput falls below --floor, they are refused. --rehearse tries them in a simulation first.
    With --back-after, controllers put back what was in force after that time by themselves. With --keep-for,
    rules are kept, and no rules are in force after that time unless they are deployed again before.
    """
    from msgspec import structs

    from ascar.cli.connection import deployments
    from ascar.cli.goals import share_of
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import read
    from ascar.errors import InputError
    from ascar.messaging import run_interruptible
    from ascar.sharp.deployment.controller import KEPT_MAX_S, TRIAL_MAX_S
    from ascar.sharp.deployment.floor import ThroughputFloor

    rules = read(file)
    ends_after_s = _within_s("--back-after", back_after, TRIAL_MAX_S, f"{TRIAL_MAX_S / 60:g} min")
    kept_for_s = _within_s("--keep-for", keep_for, KEPT_MAX_S, f"{KEPT_MAX_S / 86_400:g} d")
    if ends_after_s is not None and kept_for_s is not None:
        raise InputError(
            "--back-after with --keep-for: the one keeps no rules, the other does; give one of them"
        )
    throughput = ThroughputFloor(share_of("--floor", floor))
    if rehearse is not None:
        _rehearse(rules, rehearse, quiet=quiet)
    there = deployments(connection)
    checked = None
    if throughput.share > 0:
        workload = run_interruptible(there.ready(rules, workload, least, forget=forget))
        checked = _checked(rules, workload, connection, throughput)
    deploying = there.deploy(
        rules, workload, least, forget=forget, ends_after_s=ends_after_s, kept_for_s=kept_for_s
    )
    done = structs.replace(run_interruptible(deploying), checked=checked)
    if json:
        emit("sharp-deploy", done)
    else:
        people().print(in_force(done), soft_wrap=True)
    return 0


def _checked(
    rules: RuleSet, workload: str, connection: Path | None, throughput: ThroughputFloor
) -> FloorCheck | None:
    """The throughput on trial and before; nothing is kept. None: there is nothing to compare with."""
    from ascar.cli.output import say
    from ascar.errors import MessagingError
    from ascar.sharp.deployment.managed_system import ManagedSystem, trial_length_s

    trial_s = trial_length_s(throughput.settle_s, throughput.measure_s)
    with ManagedSystem.connected(workload, connection, trial_s=trial_s) as system:
        try:
            system.in_force()
        except MessagingError as error:
            # A deployment is what makes them alike again.
            say(f"--floor is not looked at: {error.message}")
            return None
        checked = throughput.check(system, rules)
    if checked is None:
        say("--floor is not looked at: the clients did nothing before")
    return checked


def _within_s(option: str, text: str | None, most_s: float, most: str) -> float | None:
    """The seconds that an option gives, or None where it was left out."""
    from ascar.errors import InputError
    from ascar.study import duration

    if text is None:
        return None
    seconds = duration(option, text)
    if not 1 <= seconds <= most_s:
        raise InputError(f"{option} = {text!r}: must be from 1 s to {most}")
    return seconds


def _rehearse(rules: RuleSet, named: str, *, quiet: bool) -> None:
    """Refuse rules that do harm in a simulation."""
    from ascar.cli.sim.options import scenario_of
    from ascar.cli.sim.progress import showing
    from ascar.sharp.contest import rehearse

    with showing(quiet=quiet) as listener:
        rehearse(scenario_of(named, None, None, None), rules, listener)


def down(
    workload: WorkloadOrNone = None, forget: Forget = False, connection: Connection = None, json: Json = False
) -> int:
    """Take the rules off every controller of a workload: what the system does by itself is in force again."""
    from ascar.cli.connection import deployments
    from ascar.cli.output import emit, people
    from ascar.messaging import run_interruptible

    done = run_interruptible(deployments(connection).take_down(workload, forget=forget))
    if json:
        emit("sharp-down", done)
    else:
        people().print(f"no rules on {len(done.controllers)} controllers of {done.workload}", soft_wrap=True)
    return 0
