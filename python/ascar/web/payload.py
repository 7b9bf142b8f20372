"""What is explored, as the page receives it: a header in JSON, then columns as they lie in memory.

Layout, little-endian: "ASCX", uint32 version, uint32 length of the header in bytes, uint32 0; the header,
UTF-8 JSON, padded with spaces to a multiple of 8; then the arrays, each padded to a multiple of 8. Offsets in
the header count from the first array. 12 dimensions of 500,000 rows are 6 MB, which a browser does not copy.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.web.exploration import Exploration, Metric

VERSION: Final = 1
MEDIA_TYPE: Final = "application/vnd.ascar.columns"
ALL_BYTES_MAX = 8 * 2**20
"""Up to so many bytes all metrics are sent at once; beyond, each when it is asked for."""
_MAGIC = b"ASCX"
_BYTE = 0xFF


def payload(whole: Exploration, *, version: int = 0, everything: bool = False) -> bytes:
    """All of it, but metrics that are not needed at first where they are large.

    Args:
        whole: the exploration to encode.
        version: the version of the data, which grows while a run is live.
        everything: include all metrics, however large.
    """
    arrays: dict[str, NDArray[Any]] = {"configuration": whole.configurations}
    if len(whole.origins) > 1:
        arrays["origin"] = whole.origin
    if (whole.trials >= 0).any():
        arrays["trial"] = whole.trials
    if whole.changes is not None:
        arrays["changes"] = whole.changes
    for place, one in enumerate(whole.dimensions):
        arrays[f"dimension.{place}"] = _narrow(one.codes)
        if one.raw is not None:
            arrays[f"raw.{place}"] = one.raw
    everything = everything or whole.rows * len(whole.metrics) * 8 <= ALL_BYTES_MAX
    for place, one in enumerate(whole.metrics):
        if everything or one.name == whole.objective:
            arrays[f"metric.{place}"] = one.values
    header = {
        "name": whole.name,
        "version": version,
        "rows": whole.rows,
        "objective": whole.objective,
        "minimize": whole.minimize,
        "notes": whole.notes,
        "origins": [{"name": one.name, "run_id": one.run_id} for one in whole.origins],
        "dimensions": [
            {
                "name": one.name,
                "kind": one.kind,
                "labels": one.labels,
                "values": one.values,
                "cost": one.cost,
                "category": one.category,
                "given": one.given,
                "varies": one.varies,
            }
            for one in whole.dimensions
        ],
        "metrics": [{"name": one.name, "minimize": one.minimize} for one in whole.metrics],
    }
    return _packed(header, arrays)


def metric_payload(metric: Metric) -> bytes:
    """One metric's values, in the same layout."""
    return _packed({"name": metric.name}, {"values": metric.values})


def _narrow(codes: NDArray[np.uint16]) -> NDArray[Any]:
    """In bytes where they suffice; 255 is then "does not apply"."""
    held = codes[codes != 0xFFFF]
    if len(held) and held.max() >= _BYTE:
        return codes
    return np.minimum(codes, _BYTE).astype(np.uint8)


def _packed(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    chunks: list[bytes] = []
    table: list[dict[str, Any]] = []
    offset = 0
    for name, array in arrays.items():
        little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        content = little.tobytes()
        table.append({"name": name, "type": array.dtype.name, "offset": offset, "length": len(array)})
        chunks.append(content + bytes(-len(content) % 8))
        offset += len(chunks[-1])
    text = json.dumps({**header, "arrays": table}, ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "backslashreplace"
    )
    text += b" " * (-len(text) % 8)
    return b"".join((_MAGIC, struct.pack("<III", VERSION, len(text), 0), text, *chunks))
