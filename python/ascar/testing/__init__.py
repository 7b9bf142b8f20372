"""For tests, ours and third parties': contract suites, simulated systems, a clock that obeys, power cuts.

A plugin's test subclasses a suite in four lines:

    from ascar.testing import OptimizerContract

    class TestMine(OptimizerContract):
        make = Mine

The suites are pytest classes; pytest is needed to run them, not to import this package.
"""

from ascar.systems.virtual import VirtualClock
from ascar.testing.disk_server import DiskServer
from ascar.testing.guest import Guest, GuestCommand
from ascar.testing.optimizers import OptimizerContract
from ascar.testing.spaces import branching, continuous, grid, tiny
from ascar.testing.systems import TargetContract
from ascar.testing.volatile_disk import VolatileDisk
from ascar.testing.workloads import WorkloadContract

__all__ = [
    "DiskServer",
    "Guest",
    "GuestCommand",
    "OptimizerContract",
    "TargetContract",
    "VirtualClock",
    "VolatileDisk",
    "WorkloadContract",
    "branching",
    "continuous",
    "grid",
    "tiny",
]
