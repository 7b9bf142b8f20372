"""Whether this machine can tune: what each kind of system needs is looked up, and nothing is changed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

from msgspec.structs import replace

from ascar.errors import EnvironmentLacks
from ascar.extension import kinds
from ascar.program.node_binary import find_ascard
from ascar.results.machine import DoctorResult, Machine, Need, TargetReadiness
from ascar.systems import system_of
from ascar.systems.applied import unconfirmed
from ascar.systems.needs import program_need


def _energy() -> Need:
    domains = sorted(Path("/sys/class/powercap").glob("intel-rapl:*"))
    readable = [domain for domain in domains if os.access(domain / "energy_uj", os.R_OK)]
    remedy = "virtual machines rarely have it; without it there is no metric energy_j"
    return Need(
        "energy counters (RAPL)",
        "the metric energy_j",
        f"{len(readable)} domains" if readable else None,
        remedy=remedy,
    )


def _proxy() -> Need:
    """The node binary's proxy: whether the one of this machine was built with it."""
    try:
        path = find_ascard()
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5, check=False)
        found = str(path) if "proxy" in told.stdout.partition("(")[2] else None
    except (EnvironmentLacks, OSError, subprocess.TimeoutExpired):
        found = None
    remedy = "`pip install ascard` or `make setup` puts it beside ascar"
    enables = "hold clients of NBD, HTTP, S3 and Redis to congestion rules"
    return Need("ascard proxy", enables, found, remedy=remedy)


def _general() -> tuple[Need, ...]:
    """What is of use whatever is tuned."""
    return (
        program_need("strace", "record a workload (ascar workload record)", ("strace", "strace")),
        _energy(),
        _proxy(),
        program_need("tc", "give nodes of a testbed networks (ascar testbed)", ("iproute2", "iproute-tc")),
    )


def readiness() -> DoctorResult:
    """What this machine can tune, and what it lacks."""
    problems: dict[str, str | None] = {}
    found: dict[str, Need] = {}
    for kind in kinds("ascar.systems"):
        try:
            own = system_of({"kind": kind}).needs()
        except EnvironmentLacks as error:
            problems[kind] = error.message
            continue
        problems[kind] = None
        for need in own:
            known = found.get(need.name, need)
            found[need.name] = replace(need, needed_by=tuple(dict.fromkeys(known.needed_by + need.needed_by)))
    found.update((need.name, need) for need in _general())
    missing = [need for need in found.values() if not need.found]
    return DoctorResult(
        machine=_machine(),
        targets=tuple(_readiness(kind, problem, missing) for kind, problem in problems.items()),
        needs=tuple(found.values()),
        missing_debian_packages=tuple(sorted({one.debian_package for one in missing if one.debian_package})),
        missing_fedora_packages=tuple(sorted({one.fedora_package for one in missing if one.fedora_package})),
        unconfirmed=unconfirmed(),
    )


def _readiness(kind: str, problem: str | None, missing: list[Need]) -> TargetReadiness:
    """A target is ready if its package can be imported and none of its needs is missing."""
    lacks = tuple(need.name for need in missing if kind in need.needed_by)
    return TargetReadiness(kind, not lacks and problem is None, lacks, problem)


def _machine() -> Machine:
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return Machine(
        system=_distribution(),
        kernel=platform.release(),
        architecture=platform.machine(),
        python=platform.python_version(),
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=pages * page_bytes,
        free_disk_bytes=shutil.disk_usage(Path.cwd()).free,
    )


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return platform.system()
