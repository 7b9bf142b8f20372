"""A small Parquet file that takes as much memory as wanted: its row group is named again and again."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from ascar.tables.thrift import CompactReader

if TYPE_CHECKING:
    import polars as pl


def bomb(frame: pl.DataFrame, times: int, rows: int | None = None) -> bytes:
    """The frame, `times` times.

    Args:
        frame: some rows.
        times: how often a reader decodes them.
        rows: the rows that the footer claims; None: as many as there are.
    """
    buffer = BytesIO()
    frame.write_parquet(buffer, row_group_size=frame.height, statistics=False)
    content = buffer.getvalue()
    length = int.from_bytes(content[-8:-4], "little")
    footer = CompactReader(content[-8 - length : -8]).struct()
    (group,) = footer[4]
    if rows is not None:
        group[3] = rows
        for column in group[1]:
            column[3][5] = rows
    footer[3] = group[3] * times
    footer[4] = [group] * times
    plain = {key: value for key, value in footer.items() if key in (1, 2, 3, 4)}
    written = _struct(plain)
    return content[: -8 - length] + written + len(written).to_bytes(4, "little") + b"PAR1"


def _struct(fields: dict) -> bytes:
    parts, last = [], 0
    for field, value in sorted(fields.items()):
        kind, body = _value(value, field)
        parts.append(bytes([(field - last) << 4 | kind]) + body)
        last = field
    return b"".join(parts) + b"\0"


def _value(value, field) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return (1 if value else 2), b""
    if isinstance(value, bytes):
        return 8, _varint(len(value)) + value
    if isinstance(value, dict):
        return 12, _struct(value)
    if isinstance(value, list):
        kinds = {_value(one, field)[0] for one in value}
        kind = kinds.pop() if kinds else 5
        head = (
            bytes([len(value) << 4 | kind])
            if len(value) < 15
            else bytes([15 << 4 | kind]) + _varint(len(value))
        )
        return 9, head + b"".join(_value(one, field)[1] for one in value)
    return (6 if value > 2**31 or field in (3, 5, 6, 7, 9, 11, 2) else 5), _varint(value << 1 ^ value >> 63)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
