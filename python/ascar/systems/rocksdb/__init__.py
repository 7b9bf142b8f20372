"""RocksDB: a database of the study's own, made, filled, opened anew for each trial and removed."""

from ascar.systems.rocksdb.space import rocksdb_space
from ascar.systems.rocksdb.system import RocksDB

__all__ = ["RocksDB", "rocksdb_space"]
