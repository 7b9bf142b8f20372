"""Redis: a server of the study's own, made, filled, changed and removed."""

from ascar.systems.redis.space import redis_space
from ascar.systems.redis.system import Redis

__all__ = ["Redis", "redis_space"]
