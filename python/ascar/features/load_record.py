"""The record of `ascard load --record`: every operation on files, as CSV."""

from __future__ import annotations

import io

from ascar.errors import InputError
from ascar.features.trace import Trace, TraceOperation
from ascar.tables import is_packed

OPERATIONS = {
    "read": TraceOperation.READ,
    "readwholefile": TraceOperation.READ,
    "write": TraceOperation.WRITE,
    "writewholefile": TraceOperation.WRITE,
    "aiowrite": TraceOperation.WRITE,
    "appendfile": TraceOperation.WRITE,
    "appendfilerand": TraceOperation.WRITE,
    "createfile": TraceOperation.CREATE,
    "deletefile": TraceOperation.DELETE,
    "statfile": TraceOperation.STAT,
    "fsync": TraceOperation.SYNC,
    "fsyncset": TraceOperation.SYNC,
    "openfile": TraceOperation.OPEN,
    "closefile": TraceOperation.CLOSE,
}


def parse_load_record(content: bytes) -> Trace:
    """A trace from a record's content.

    Raises:
        InputError: it is not a record, or holds no operation.
    """
    if is_packed(content[:4]):
        raise InputError("not a record of `ascard load --record`: is compressed; unpack it first")
    import polars as pl  # only here: who reads no record needs not have it

    schema = {
        "time_s": pl.Float64,
        "thread": pl.Int64,
        "flowop": pl.String,
        "type": pl.String,
        "file": pl.String,
        "offset": pl.Int64,
        "bytes": pl.Int64,
        "latency_us": pl.Float64,
    }
    try:
        frame = pl.read_csv(io.BytesIO(content), schema=schema, null_values=[])
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise InputError(f"not a record of `ascard load --record`: {str(error).splitlines()[0]}") from error
    header = content[:200].split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    if header != ",".join(schema) or frame.is_empty() or frame.null_count().sum_horizontal().item() > 0:
        raise InputError(
            f"not a record of `ascard load --record`: it begins with {header[:80]!r}, or is empty"
        )
    frame = frame.with_columns(
        operation=pl.col("type").replace_strict(OPERATIONS, default=None, return_dtype=pl.Int8),
        file_number=pl.col("file").rank("dense").cast(pl.Int64),
    )
    unknown = frame.filter(pl.col("operation").is_null())
    if not unknown.is_empty():
        raise InputError(f"the record holds a flowop that is not known here: {unknown['type'][0]!r}")
    return Trace.of(
        {
            "seconds": frame["time_s"].to_numpy(),
            "operation": frame["operation"].to_numpy(),
            "thread": frame["thread"].to_numpy(),
            "file": frame["file_number"].to_numpy(),
            "offset_bytes": frame["offset"].to_numpy(),
            "size_bytes": frame["bytes"].to_numpy(),
            "latency_s": frame["latency_us"].to_numpy() * 1e-6,
        }
    )
