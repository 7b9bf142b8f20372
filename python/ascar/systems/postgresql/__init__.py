"""PostgreSQL: a server of the study's own, made, filled, changed and removed."""

from ascar.systems.postgresql.space import postgresql_space
from ascar.systems.postgresql.system import PostgreSQL

__all__ = ["PostgreSQL", "postgresql_space"]
