"""Whether this machine can tune: its needs and targets are looked up, and nothing is changed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

from ascar.errors import EnvironmentLacks
from ascar.extension import kinds, load
from ascar.program.node_binary import find_ascard
from ascar.results.machine import DoctorResult, Machine, Need, TargetReadiness

_PATH_EXTRA = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # an ordinary user's PATH often lacks them


def _program(name: str, purpose: str, package: tuple[str, str], targets: tuple[str, ...] = ()) -> Need:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_PATH_EXTRA))
    return Need(name, purpose, shutil.which(name, path=path), targets, *package)


def _root() -> Need:
    found = "yes" if os.geteuid() == 0 else "through sudo" if _sudo_works() else None
    remedy = "run as root (sudo ascar ...), or allow this user sudo without a password; sqlite needs no root"
    return Need("root", "format, mount, change kernel settings", found, ("localfs",), remedy=remedy)


def _sudo_works() -> bool:
    """Whether sudo asks for no password: the keeper is started where nobody can type one."""
    sudo = shutil.which("sudo")
    if sudo is None:
        return False
    try:
        return (
            subprocess.run([sudo, "-n", "true"], capture_output=True, timeout=5, check=False).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _keeper() -> Need:
    try:
        found = str(find_ascard())
    except EnvironmentLacks:
        found = None
    remedy = "run `make setup`: it builds ascard and puts it beside ascar"
    return Need("ascard", "the keeper: changes the machine, puts it back", found, ("localfs",), remedy=remedy)


def _loop_devices() -> Need:
    device = Path("/dev/loop-control")
    remedy = "run `modprobe loop`; in a container, pass /dev/loop-control and the loop devices through"
    return Need(
        "loop devices",
        "image files as disks",
        str(device) if device.exists() else None,
        ("localfs",),
        remedy=remedy,
    )


def _memory_group() -> Need:
    """A control group that limits memory: v2's file of controllers, or v1's directory."""
    found = None
    for controllers in (
        Path("/sys/fs/cgroup/cgroup.controllers"),
        Path("/sys/fs/cgroup/unified/cgroup.controllers"),
    ):
        if "memory" in _text(controllers).split():
            found = "version 2"
    if Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists():
        found = found or "version 1"
    remedy = "boot with cgroup_enable=memory, or mount the memory controller"
    return Need("memory control group", "limit the page cache that a load may use", found, remedy=remedy)


def _file_system(name: str) -> Need:
    known = name in _text(Path("/proc/filesystems")).split()
    module = Path("/lib/modules", platform.release())
    lists = "".join(_text(module / listing) for listing in ("modules.dep", "modules.builtin"))
    found = "kernel" if known else "module" if f"/{name}.ko" in lists else None
    remedy = f"install the kernel's module {name}, or leave {name} out of the study"
    return Need(f"kernel: {name}", "a file system to compare", found, remedy=remedy)


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


_FIO = ("fio", "fio")
_E2FS = ("e2fsprogs", "e2fsprogs")
_UTIL = ("util-linux", "util-linux")
_MOUNT = ("mount", "util-linux")


def needs() -> tuple[Need, ...]:
    """Everything that is looked for, found or not."""
    return (
        _root(),
        _keeper(),
        _loop_devices(),
        _program("mount", "mount file systems", _MOUNT, ("localfs",)),
        _program("blkid", "see what a device holds before it is written", _UTIL, ("localfs",)),
        _program("mkfs.ext4", "make ext2, ext3, ext4", _E2FS, ("localfs",)),
        _program("mkfs.xfs", "make xfs", ("xfsprogs", "xfsprogs")),
        _program("mkfs.btrfs", "make btrfs", ("btrfs-progs", "btrfs-progs")),
        _program("fio", "the load of most studies", _FIO, ("localfs",)),
        _program("strace", "record a workload (ascar workload record)", ("strace", "strace")),
        _file_system("ext4"),
        _file_system("xfs"),
        _file_system("btrfs"),
        _memory_group(),
        _energy(),
    )


def readiness() -> DoctorResult:
    """What this machine can tune, and what it lacks."""
    found = needs()
    missing = [need for need in found if not need.found]
    return DoctorResult(
        machine=_machine(),
        targets=tuple(_target(kind, found) for kind in kinds("ascar.systems")),
        needs=found,
        missing_debian_packages=tuple(sorted({one.debian_package for one in missing if one.debian_package})),
        missing_fedora_packages=tuple(sorted({one.fedora_package for one in missing if one.fedora_package})),
    )


def _target(kind: str, needed: tuple[Need, ...]) -> TargetReadiness:
    """A target is ready if its package can be imported and none of its needs is missing."""
    missing = tuple(need.name for need in needed if kind in need.needed_by and not need.found)
    problem = None
    try:
        load("ascar.systems", kind, "target.kind")
    except EnvironmentLacks as error:
        problem = error.message
    return TargetReadiness(kind, not missing and problem is None, missing, problem)


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


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
