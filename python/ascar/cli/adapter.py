"""`ascar adapter`: a system behind lines of JSON, for an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import Connect, SampleEvery

EXAMPLES = examples(
    'command = ["ascar", "adapter", "study.toml"]     in the agent\'s file, under [[program]]',
    "echo '{\"get\": true}' | ascar adapter study.toml",
)


def adapter(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="STUDY.toml", help="A study file; its [target] and [space] say what is set."),
    ] = None,
    connect: Connect = None,
    sample_every: SampleEvery = None,
) -> int:
    """Set a system's parameters for an agent: requests on standard input, answers on standard output.

    Each is a line of JSON. {"get": true} tells the values in force, {"set": {NAME: VALUE}} sets some,
    {"restore": true} puts everything back, and {"sample": true} tells counters and gauges. When the input
    ends, everything is put back.

    Exit status: 0 done, 1 something could not be put back, 2 bad input (nothing was touched).
    """
    import sys

    from ascar.errors import InputError
    from ascar.study import duration
    from ascar.systems.adapter import Adapter, converse, follow, in_force, relay

    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    if (study is None) == (connect is None):
        raise InputError("adapter: name a study file, or a session's socket with --connect")
    if connect is not None:
        if sample_every is None:
            relay(connect, requests, answers)
        else:
            follow(connect, duration("--sample-every", sample_every), answers)
        return 0
    if sample_every is not None:
        raise InputError("--sample-every: is only allowed with --connect")
    assert study is not None
    from ascar.space import space_from_table
    from ascar.study import tuned_tables
    from ascar.systems import Adopting, open_target

    target, table, _ = tuned_tables(study)
    with open_target(target) as system:
        space = space_from_table(table, system.space)
        if isinstance(system, Adopting):
            system.adopt(space)
        converse(Adapter(system, space, in_force(system, space)), requests, answers)
    return 0
