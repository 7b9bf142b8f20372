"""`ascar sharp set`: numbers of the rules in force, as knobs."""

from __future__ import annotations

from typing import Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import Connection, Json, Workload
from ascar.cli.sharp.deploy import in_force

EXAMPLES = examples(
    "ascar sharp set --workload random rule1_tau_us=12000",
    "ascar sharp set --workload random rule1_m100=95 rule2_b100=-30",
)


def set_numbers(
    values: Annotated[
        list[str],
        typer.Argument(
            metavar="KNOB=VALUE...",
            help="A rule's number and its new value, e.g. rule3_tau_us=12000 (m100, b100 or tau_us).",
        ),
    ],
    workload: Workload,
    connection: Connection = None,
    json: Json = False,
) -> int:
    """Change numbers of the rules in force on all controllers of a workload, or leave all as they are.

    The same knobs are parameters for tuners: `ascar.sharp.rule_knobs`.
    """
    from ascar.cli.connection import deployments
    from ascar.cli.output import emit, people
    from ascar.messaging import run_interruptible

    wanted = _wanted(values)
    done, rules = run_interruptible(deployments(connection).change(workload, wanted))
    if json:
        emit("sharp-deploy", done)
    else:
        people().print(in_force(done), soft_wrap=True)
        people().print(rules.text(), end="")
    return 0


def _wanted(values: list[str]) -> dict[str, int]:
    """By knob.

    Raises:
        InputError: one is no KNOB=VALUE, or appears twice.
    """
    from ascar.errors import InputError

    wanted: dict[str, int] = {}
    for text in values:
        name, equals, number = text.partition("=")
        try:
            value = int(number)
        except ValueError:
            equals, value = "", 0
        if not equals or name in wanted:
            raise InputError(f"{text[:80]!r}: must be KNOB=VALUE, each knob once and with a whole number")
        wanted[name] = value
    return wanted
