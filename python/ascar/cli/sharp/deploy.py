"""`ascar sharp deploy` and `down`: rules in force on all controllers of a workload, or on none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import Connection, Forget, Json, Least, RuleFile, WorkloadOrNone

if TYPE_CHECKING:
    from ascar.results.sharp import SharpDeployResult

EXAMPLES = examples(
    "ascar sharp deploy rules.txt                       all controllers run one workload",
    "ascar sharp deploy rules.txt --workload random --least 5",
)
DOWN_EXAMPLES = examples("ascar sharp down --workload random")


def in_force(done: SharpDeployResult) -> str:
    """Which rules are in force, in a line."""
    return f"rules {done.rules} are in force on {len(done.controllers)} controllers of {done.workload}"


def deploy(
    file: RuleFile,
    workload: WorkloadOrNone = None,
    least: Least = 1,
    forget: Forget = False,
    connection: Connection = None,
    json: Json = False,
) -> int:
    """Put a rule set in force on every controller of a workload (Li, 3.1.1 and 3.1.4).

    Each takes the rules on trial, and keeps them once all have. When one is missing, refuses, or does not
    answer, the rules from before are put back on all; the exit status is 1, and says who and why.
    """
    from ascar.cli.connection import deployments
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import read
    from ascar.messaging import run_interruptible

    rules = read(file)
    done = run_interruptible(deployments(connection).deploy(rules, workload, least, forget=forget))
    if json:
        emit("sharp-deploy", done)
    else:
        people().print(in_force(done), soft_wrap=True)
    return 0


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
