"""NFS: mount options, the windows of clients, a server's threads and exports, and the disk below."""

from ascar.systems.nfs.space import nfs_space
from ascar.systems.nfs.system import Nfs

__all__ = ["Nfs", "nfs_space"]
