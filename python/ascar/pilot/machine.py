"""What a result was measured on: kept with it, and compared when results are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ascar.errors import AscarError, EnvironmentLacks
from ascar.nodes.local import LocalNode
from ascar.results.machine import MachineDifference, MachineRecord
from ascar.units import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.nodes import Node

_LIMIT_S = 30.0
_TEXT_MAX = 200
# Each line is KEY=VALUE; what a machine does not tell is empty.
_RECORD = r"""
echo "host=$(uname -n)"; echo "kernel=$(uname -r)"; echo "architecture=$(uname -m)"
echo "system=$(. /etc/os-release 2>/dev/null; echo "${PRETTY_NAME:-$(uname -s)}")"
echo "cpu=$(sed -n '/^\(model name\|Model\|cpu model\)[[:space:]]*:/{s/^[^:]*:[[:space:]]*//p;q}' \
    /proc/cpuinfo)"
echo "cpus=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"
echo "governor=$(cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor 2>/dev/null |
    sort -u | tr '\n' ' ')"
echo "memory=$(sed -n 's/^MemTotal:[[:space:]]*\([0-9]*\) kB/\1/p' /proc/meminfo)"
echo "virtual=$(grep -c '^flags.* hypervisor' /proc/cpuinfo)"
echo "load=$(cut -d' ' -f1 /proc/loadavg)"
"""
# Memory that differs by less is the same machine with another kernel; a difference of load matters from so
# many processes a core on.
_MEMORY_SHARE = 0.02
_LOAD_PER_CPU = 0.5


def record_machine(node: Node | None = None) -> MachineRecord:
    """What a node is, and how busy it is now.

    Args:
        node: the node; None: this machine.

    Raises:
        EnvironmentLacks: it cannot be reached, or is no Linux.
    """
    there = LocalNode() if node is None else node
    done = there.run(["sh", "-c", _RECORD], _LIMIT_S)
    pairs = (line.partition("=") for line in done.out.decode(errors="replace").splitlines())
    told = {key: value.strip()[:_TEXT_MAX] for key, _, value in pairs}
    try:
        return MachineRecord(
            node=None if node is None else node.name,
            host=told["host"],
            system=told["system"],
            kernel=told["kernel"],
            architecture=told["architecture"],
            cpu=told["cpu"],
            cpus=int(told["cpus"]),
            governor=", ".join(told["governor"].split()) or None,
            memory_bytes=1024 * int(told["memory"]),
            virtual=int(told["virtual"] or 0) > 0,
            load_begin=float(told["load"]),
            load_end=None,
        )
    except (KeyError, ValueError):
        raise EnvironmentLacks(f"node {there.name}: does not say what it is: {done.err[:200]!r}") from None


def record_end(record: MachineRecord, node: Node | None = None) -> MachineRecord:
    """The same record with the load as it is now, if the node still answers."""
    try:
        return msgspec.structs.replace(record, load_end=record_machine(node).load_begin)
    except AscarError:
        return record


def machine_differences(machines: Mapping[str, MachineRecord | None]) -> tuple[MachineDifference, ...]:
    """In what the machines of results differ.

    Args:
        machines: the machine of each result by its name; None: the result does not say.
    """
    known = {name: machine for name, machine in machines.items() if machine is not None}
    if not known:
        return ()
    found: list[MachineDifference] = []
    if len(known) < len(machines):
        told = {name: "unknown" if one is None else one.host for name, one in machines.items()}
        found.append(MachineDifference(fact="machine", values=told))
    for fact in ("host", "system", "kernel", "architecture", "cpu", "cpus", "governor", "virtual"):
        values = {name: _shown(getattr(one, fact)) for name, one in known.items()}
        if len(set(values.values())) > 1:
            found.append(MachineDifference(fact=fact, values=values))
    memory = [one.memory_bytes for one in known.values()]
    if max(memory) > (1 + _MEMORY_SHARE) * min(memory):
        sizes = {name: format_size(one.memory_bytes) for name, one in known.items()}
        found.append(MachineDifference(fact="memory", values=sizes))
    loads = [one.load_begin / max(one.cpus, 1) for one in known.values()]
    if max(loads) - min(loads) > _LOAD_PER_CPU:
        shown = {name: f"{one.load_begin:g} on {one.cpus} cpus" for name, one in known.items()}
        found.append(MachineDifference(fact="load before", values=shown))
    return tuple(found)


def warnings_of(differences: Sequence[MachineDifference]) -> list[str]:
    """A line for each difference, e.g. "kernel differs: a.json 6.1.0, b.json 6.12.1"."""
    return [
        f"{one.fact} differs: {', '.join(f'{name} {value}' for name, value in one.values.items())}"
        for one in differences
    ]


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
