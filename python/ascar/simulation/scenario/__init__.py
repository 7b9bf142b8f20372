"""A scenario: everything that a run of the simulated cluster depends on.

The structs are the tables of a scenario file, and their defaults the test bed of Li's thesis, section 3.2.2:
Lustre's defaults on gigabit Ethernet and 7200 rpm notebook disks. Units are last in the names; MB is 10**6
bytes, MiB 2**20, KiB 2**10. Types are checked here, ranges by the simulator itself.
"""

from ascar.simulation.scenario.clients import Cache, ClientGroup
from ascar.simulation.scenario.control import Control, RuleExtensions
from ascar.simulation.scenario.devices import Flash, Mechanical, Memory
from ascar.simulation.scenario.failures import Failure, Noise
from ascar.simulation.scenario.network import Link, Network
from ascar.simulation.scenario.scenario import Scenario
from ascar.simulation.scenario.servers import Layout, Locks, Metadata, Queue, ServerGroup, Striping
from ascar.simulation.scenario.workloads import FileSet, Flowop, ThreadGroup, Workload

__all__ = [
    "Cache",
    "ClientGroup",
    "Control",
    "Failure",
    "FileSet",
    "Flash",
    "Flowop",
    "Layout",
    "Link",
    "Locks",
    "Mechanical",
    "Memory",
    "Metadata",
    "Network",
    "Noise",
    "Queue",
    "RuleExtensions",
    "Scenario",
    "ServerGroup",
    "Striping",
    "ThreadGroup",
    "Workload",
]
