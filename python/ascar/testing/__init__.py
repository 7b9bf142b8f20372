"""For tests, ours and third parties': contract suites, simulated systems, a clock that obeys.

A plugin's test subclasses a suite in four lines:

    from ascar.testing import OptimizerContract

    class TestMine(OptimizerContract):
        make = Mine

The suites are pytest classes; pytest is needed to run them, not to import this package.
"""

from ascar.systems.virtual import VirtualClock
from ascar.testing.optimizers import OptimizerContract
from ascar.testing.spaces import branching, continuous, grid, tiny
from ascar.testing.systems import TargetContract
from ascar.testing.workloads import WorkloadContract

__all__ = [
    "OptimizerContract",
    "TargetContract",
    "VirtualClock",
    "WorkloadContract",
    "branching",
    "continuous",
    "grid",
    "tiny",
]
