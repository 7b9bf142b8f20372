"""Servers of a study's own: what PostgreSQL and Redis have in common."""

from ascar.systems.own_server.server import OwnServer
from ascar.systems.own_server.target import OwnServerTarget, ServerKeys, memory_of

__all__ = ["OwnServer", "OwnServerTarget", "ServerKeys", "memory_of"]
