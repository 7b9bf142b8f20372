"""ARM, the rule manager: puts rule sets in force on controllers, and hears how they are used (Li, 3.1.1)."""

from ascar.sharp.deployment.controller import ControllerEndpoint, Plane
from ascar.sharp.deployment.controller_socket import ControllerSocket, open_link
from ascar.sharp.deployment.deployments import Deployments
from ascar.sharp.deployment.managed_system import ManagedSystem
from ascar.sharp.deployment.manager import DeploymentFailed, Manager, ManagerTimeouts
from ascar.sharp.deployment.messages import Beat, Here, RuleUse
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.deployment.roster import ExpectedDeployment, Roster
from ascar.sharp.deployment.simulated_controllers import SimulatedControllers

__all__ = [
    "Beat",
    "ControllerEndpoint",
    "ControllerSocket",
    "DeploymentFailed",
    "Deployments",
    "ExpectedDeployment",
    "Here",
    "ManagedSystem",
    "Manager",
    "ManagerTimeouts",
    "Plane",
    "Roster",
    "RuleUse",
    "SimulatedControllers",
    "open_link",
    "rules_id",
]
