"""`ascar doctor`: what this machine can tune, what is missing, how to get it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ascar.cli.options import Json, examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from ascar.cli.machine import Need

EXAMPLES = examples("ascar doctor", "ascar doctor --json | jq '.missing_debian_packages'")


@dataclass(frozen=True, slots=True)
class _Target:
    """A target kind, and whether it could be tuned here."""

    kind: str
    ready: bool
    missing: list[str]
    problem: str | None


def doctor(json: Json = False) -> int:
    """Say what this machine can tune, what is missing, and how to get it.

    Nothing is changed. Exit status 0, whatever is missing.
    """
    from ascar.cli import machine
    from ascar.cli.output import emit, people
    from ascar.extension import kinds

    needs = machine.needs()
    debian, fedora = machine.missing_packages(needs)
    targets = [_target(kind, needs) for kind in kinds("ascar.targets")]
    if json:
        document = {
            "machine": machine.describe(),
            "targets": [asdict(target) for target in targets],
            "needs": [need.to_dict() for need in needs],
            "missing_debian_packages": debian,
            "missing_fedora_packages": fedora,
        }
        emit("doctor", document)
        return 0
    console = people()
    console.print(_headline(machine.describe()), soft_wrap=True)
    console.print(_table(needs))
    console.print()
    _print_targets(console, targets)
    if debian:
        console.print("\nto get what is missing:")
        console.print(f"  Debian: apt-get install {' '.join(debian)}", soft_wrap=True)
        console.print(f"  Fedora: dnf install {' '.join(fedora)}", soft_wrap=True)
    return 0


def _target(kind: str, needs: Sequence[Need]) -> _Target:
    """Ready if its package can be imported and nothing that it needs is missing."""
    from ascar.errors import EnvironmentLacks
    from ascar.extension import load

    missing = [need.name for need in needs if kind in need.targets and not need.found]
    problem = None
    try:
        load("ascar.targets", kind, "target.kind")
    except EnvironmentLacks as error:
        problem = error.message
    return _Target(kind, not missing and problem is None, missing, problem)


def _headline(facts: dict[str, object]) -> str:
    from ascar.units import format_size

    memory, disk = (format_size(int(str(facts[key]))) for key in ("memory_bytes", "free_disk_bytes"))
    return (
        f"{facts['system']}, kernel {facts['kernel']} ({facts['architecture']}), Python {facts['python']}, "
        f"{facts['cpus']} CPUs, {memory} memory, {disk} free here"
    )


def _table(needs: Sequence[Need]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("", "for", "found"):
        table.add_column(heading)
    for need in needs:
        style = "" if need.found else "red" if need.targets else "yellow"
        get = f"package {need.debian}" if need.debian else need.remedy
        table.add_row(need.name, need.purpose, need.found or f"missing: {get}", style=style)
    return table


def _print_targets(console: Console, targets: Sequence[_Target]) -> None:
    for target in targets:
        why = ", ".join(target.missing) or target.problem
        text = "ready" if target.ready else f"cannot be tuned here: {why}"
        style = "green" if target.ready else "red"
        console.print(f"target {target.kind}: {text}", style=style, soft_wrap=True, markup=False)
