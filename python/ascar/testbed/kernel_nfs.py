"""The kernel's NFS server and client in nodes that are kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.testbed.kernel_parts import NfsMount, NfsServer

PROGRAMS = ("rpc.nfsd", "rpc.mountd", "exportfs", "nfsdcld", "rpcbind", "rpc.statd", "mount.nfs")
"""What is installed with the Debian packages nfs-kernel-server and nfs-common."""

# What the daemons note is gone after a cut; nfsdcld's, by which clients get their locks back, is kept.
_DAEMONS = """
set -e
mountpoint -q /var/lib/nfs || mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak /var/lib/nfs/rpc_pipefs /var/lib/nfs/v4recovery /run/rpcbind
touch /var/lib/nfs/etab /var/lib/nfs/rmtab /var/lib/nfs/state
pidof rpcbind >/dev/null || rpcbind -w
pidof rpc.statd >/dev/null || rpc.statd --no-notify
"""
# Version 4 shows its exports below one root, which must be of a kind that can be exported; /srv is.
_SERVER = (
    _DAEMONS
    + """
grace=$1 threads=$2 without=$3
shift 3
modprobe -d /run/modules nfsd
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /run/rpc_pipefs /run/kept/nfs
mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs sunrpc /run/rpc_pipefs
echo "$grace" > /proc/fs/nfsd/nfsv4leasetime
echo "$grace" > /proc/fs/nfsd/nfsv4gracetime
nfsdcld -p /run/rpc_pipefs -s /run/kept/nfs
exportfs -o ro,fsid=0,no_subtree_check '*:/srv'
while [ $# -gt 0 ]; do
    mkdir -p "/srv/$1"
    exportfs -o "$2" "$3:/srv/$1"
    shift 3
done
rpc.mountd
rpc.nfsd $without "$threads"
"""
)
# A first packet that nobody takes yet would be repeated a second later, the next after two, and so on.
_CLIENT = """
set -e
options=$1 from=$2 place=$3 tries=$4 module=$5
mkdir -p "$place"
modprobe -d /run/modules "$module"
until timeout 0.5 bash -c 'true > "/dev/tcp/$0/2049"' "${from%%:*}" 2>/dev/null; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || break
    sleep 0.3
done
exec mount.nfs "$from" "$place" -o "$options"
"""
_TRIES_PER_S = 1.25


def server_words(server: NfsServer) -> list[str]:
    """The program of a node that starts its server."""
    without = " ".join(f"-N {one[0]}" for one in ("3", "4.2") if one not in server.versions)
    exports = [
        # A file system in memory has no number of its own.
        word
        for number, one in enumerate(server.exports, 1)
        for word in (one.name, f"{one.options}{',' if one.options else ''}fsid={number}", one.clients)
    ]
    words = [str(server.grace_s), str(server.threads), without, *exports]
    return ["sh", "-c", _SERVER, "nfs", *words]


def threads_words(threads: int) -> list[str]:
    """The program of a node that gives its running server so many threads."""
    return ["sh", "-c", 'echo "$1" > /proc/fs/nfsd/threads', "threads", str(threads)]


def daemons_words() -> list[str]:
    """The program of a node that starts what a client of version 3 needs for locks, where it does not run."""
    return ["sh", "-c", _DAEMONS]


def mount_words(mount: NfsMount) -> list[str]:
    """The program of a node that mounts an export."""
    below = f"/srv/{mount.export}" if mount.version == "3" else f"/{mount.export}"
    minutes = -(-mount.wait_s // 60)
    options = f"vers={mount.version},retry={minutes}{',' if mount.options else ''}{mount.options}"
    place = mount.place or f"/mnt/{mount.export}"
    tries = str(int(mount.wait_s * _TRIES_PER_S))
    return [
        "sh",
        "-c",
        _CLIENT,
        "mount",
        options,
        f"{mount.server}:{below}",
        place,
        tries,
        f"nfsv{mount.version[0]}",
    ]
