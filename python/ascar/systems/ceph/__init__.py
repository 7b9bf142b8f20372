"""Ceph: a small cluster of the study's own, made, filled, started anew for each trial and removed."""

from ascar.systems.ceph.space import ceph_space
from ascar.systems.ceph.system import Ceph

__all__ = ["Ceph", "ceph_space"]
