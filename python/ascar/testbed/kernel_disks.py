"""Disks of nodes that are kernels: `ascard disk` inside the node, its data in a file of this machine."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.program.found import find_program

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.testbed.kernel_parts import NodeDisk, RemoteDisk

KEPT = "/run/kept"
"""Where the node sees the directory that keeps its data."""
_START = """
mkdir -p /run/disks
exec "$@" >"/run/disks/$DISK.log" 2>&1 </dev/null &
echo $! >"/run/disks/$DISK.pid"
"""
_END = """
for file in /run/disks/*.pid; do
    [ -e "$file" ] || continue
    read -r pid <"$file"
    name=${file##*/}
    if kill -TERM "$pid" 2>/dev/null; then ending="$ending $pid"; else gone="$gone ${name%.pid}"; fi
done
for pid in $ending; do
    while [ -e "/proc/$pid" ]; do sleep 0.02; done
done
rm -f /run/disks/*.pid
[ -z "$gone" ] || { echo "ended before, and lost what was in its cache:$gone" >&2; exit 1; }
"""
# What the disk has said tells why it is not there.
_ATTACH = """
set -e
socket=$1 device=$2 log=$3 place=$4
modprobe -d /run/modules nbd
tries=0
until [ -S "$socket" ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { cat "$log" >&2; exit 1; }
    sleep 0.02
done
nbd-client -unix "$socket" "$device" -name disk -block-size 512 >&2
[ -z "$place" ] || { mkdir -p "$place"; mount "$device" "$place"; }
"""
_ATTACH_REMOTE = """
set -e
modprobe -d /run/modules nbd
tries=0
until nbd-client "$1" "$2" "$3" -name disk -block-size 512 -connections "$4" >&2; do
    tries=$((tries + 1))
    [ $tries -lt 60 ] || exit 1
    sleep 0.5
done
"""
MKFS = {"ext4": ("-q", "-F"), "xfs": ("-q", "-f"), "btrfs": ("-q", "-f")}


def place_of(disk: NodeDisk) -> str:
    """Where the node mounts it; empty: nowhere."""
    if disk.file_system is None or disk.port is not None:
        return ""
    return disk.place or f"/srv/{disk.name}"


def data_file(kept: Path, disk: NodeDisk) -> Path:
    """The file with the disk's data."""
    return kept / f"{disk.name}.disk"


def make_data(kept: Path, disk: NodeDisk) -> None:
    """Make the file with the disk's data, and the file system in it, where it is not there yet.

    Raises:
        EnvironmentLacks: the program that makes the file system is not installed.
        StageFailed: it fails.
    """
    file = data_file(kept, disk)
    if file.exists():
        return
    new = file.with_suffix(".new")
    with new.open("wb") as data:
        data.truncate(disk.size_bytes)
    if disk.file_system is not None:
        mkfs = find_program(f"mkfs.{disk.file_system}")
        if mkfs is None:
            raise EnvironmentLacks(f"disk {disk.name}: mkfs.{disk.file_system} is not installed")
        done = subprocess.run(
            [mkfs, *MKFS[disk.file_system], new],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise StageFailed("mkfs", f"disk {disk.name}: {done.stderr.strip()[-300:]}", done.stderr)
    new.replace(file)


def start_words(disk: NodeDisk, scenario: str, before: list[str], ascard: str) -> list[str]:
    """The program of a node that starts the disk's server.

    Args:
        disk: the disk.
        scenario: its scenario, as the node sees it.
        before: the words of a program that becomes the server, see `io_flusher`.
        ascard: the node's `ascard`.
    """
    where = ["--socket", socket_of(disk)] if disk.port is None else ["--listen", f"0.0.0.0:{disk.port}"]
    words = [ascard, "disk", "--scenario", scenario, *where, "--size", str(disk.size_bytes)]
    words += ["--file", f"{KEPT}/{disk.name}.disk"]
    words += [] if disk.raid is None else ["--raid", str(disk.raid)]
    return ["env", f"DISK={disk.name}", "sh", "-c", _START, "disk", *before, *words]


def end_words() -> list[str]:
    """The program of a node that ends the servers of its disks, which write their caches."""
    return ["sh", "-c", _END]


def socket_of(disk: NodeDisk) -> str:
    """Where the disk's server listens in its node."""
    return f"/run/disks/{disk.name}.sock"


def attach_words(disk: NodeDisk, number: int) -> list[str]:
    """The program of a node that attaches its disk, and mounts it."""
    log = f"/run/disks/{disk.name}.log"
    return ["sh", "-c", _ATTACH, "attach", socket_of(disk), f"/dev/nbd{number}", log, place_of(disk)]


def attach_remote_words(disk: RemoteDisk) -> list[str]:
    """The program of a node that attaches another node's disk."""
    words = [disk.server, str(disk.port), disk.device, str(disk.connections)]
    return ["sh", "-c", _ATTACH_REMOTE, "attach", *words]
