"""`ascar doctor`: what this machine can tune, what is missing, how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from ascar.results.machine import Machine, Need, TargetReadiness

EXAMPLES = examples("ascar doctor", "ascar doctor --json | jq '.missing_debian_packages'")


def doctor(json: Json = False) -> int:
    """Say what this machine can tune, what is missing, and how to get it.

    Also says what waits for `ascar confirm`; root's journals are read by root alone. Nothing is changed. Exit
    status 0, whatever is missing.
    """
    from ascar.cli.confirm import unconfirmed_lines
    from ascar.cli.output import emit, people
    from ascar.readiness import readiness

    found = readiness()
    if json:
        emit("doctor", found)
        return 0
    console = people()
    console.print(_headline(found.machine), soft_wrap=True)
    console.print(_table(found.needs))
    console.print()
    _print_targets(console, found.targets)
    for line in unconfirmed_lines(found.unconfirmed):
        console.print(f"\n{line}", style="yellow", soft_wrap=True, markup=False)
    debian, fedora = found.missing_debian_packages, found.missing_fedora_packages
    if debian:
        console.print("\nto get what is missing:")
        console.print(f"  Debian: apt-get install {' '.join(debian)}", soft_wrap=True)
        console.print(f"  Fedora: dnf install {' '.join(fedora)}", soft_wrap=True)
    return 0


def _headline(machine: Machine) -> str:
    from ascar.units import format_size

    return (
        f"{machine.system}, kernel {machine.kernel} ({machine.architecture}), Python {machine.python}, "
        f"{machine.cpus} CPUs, {format_size(machine.memory_bytes)} memory, "
        f"{format_size(machine.free_disk_bytes)} free here"
    )


def _table(needs: Sequence[Need]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("", "for", "found"):
        table.add_column(heading)
    for need in needs:
        style = "" if need.found else "red" if need.needed_by else "yellow"
        get = f"package {need.debian_package}" if need.debian_package else need.remedy
        table.add_row(need.name, need.purpose, need.found or f"missing: {get}", style=style)
    return table


def _print_targets(console: Console, targets: Sequence[TargetReadiness]) -> None:
    for target in targets:
        why = ", ".join(target.missing) or target.problem
        text = "ready" if target.ready else f"cannot be tuned here: {why}"
        style = "green" if target.ready else "red"
        console.print(f"target {target.kind}: {text}", style=style, soft_wrap=True, markup=False)
