"""MariaDB: a server of the study's own, made, filled, changed and removed."""

from ascar.systems.mariadb.space import mariadb_space
from ascar.systems.mariadb.system import MariaDB

__all__ = ["MariaDB", "mariadb_space"]
