"""What targets that are servers of others share: connection, settings, guard, load, restoration."""

from ascar.systems.existing.keys import ExistingKeys
from ascar.systems.existing.target import ExistingTarget

__all__ = ["ExistingKeys", "ExistingTarget"]
