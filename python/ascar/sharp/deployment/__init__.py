"""ARM, the rule manager: puts rule sets in force on controllers, and hears how they are used (Li, 3.1.1)."""

from ascar.sharp.deployment.controller import ControllerEndpoint, Plane
from ascar.sharp.deployment.manager import Deployed, DeploymentFailed, Manager, Patience
from ascar.sharp.deployment.messages import Beat, Here, Shown
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.deployment.roster import Expected, Roster
from ascar.sharp.deployment.simulated import SimulatedControllers
from ascar.sharp.deployment.system import ManagedSystem

__all__ = [
    "Beat",
    "ControllerEndpoint",
    "Deployed",
    "DeploymentFailed",
    "Expected",
    "Here",
    "ManagedSystem",
    "Manager",
    "Patience",
    "Plane",
    "Roster",
    "Shown",
    "SimulatedControllers",
    "rules_id",
]
