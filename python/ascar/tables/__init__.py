"""Tables from outside: CSV and Parquet, read within limits that are checked before anything is decoded."""

from ascar.tables.reading import TableLimits, TableSource
from ascar.tables.text_size import is_packed, json_bytes

__all__ = ["TableLimits", "TableSource", "is_packed", "json_bytes"]
