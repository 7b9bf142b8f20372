"""Servers of a study's own: what PostgreSQL, Redis and MariaDB have in common."""

from ascar.systems.own_server.configured import ConfiguredKeys, ConfiguredTarget, Given, as_wanted
from ascar.systems.own_server.server import OwnServer
from ascar.systems.own_server.target import OwnServerTarget, ServerKeys, memory_of

__all__ = [
    "ConfiguredKeys",
    "ConfiguredTarget",
    "Given",
    "OwnServer",
    "OwnServerTarget",
    "ServerKeys",
    "as_wanted",
    "memory_of",
]
