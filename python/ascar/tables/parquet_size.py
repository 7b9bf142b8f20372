"""What a Parquet file would take in memory, from its metadata and the heads of its pages; nothing is decoded.

The footer alone is not believed: it says one thing, and the pages that a reader goes through may say another.
Source: Apache Parquet, parquet.thrift (the numbers of fields).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ascar.tables.thrift import CompactReader

if TYPE_CHECKING:
    from collections.abc import Mapping

MAGIC = b"PAR1"
"""A Parquet file begins and ends with this."""

_FOOTER_BYTES_MAX = 4 << 20
_PAGES_MAX = 200_000
# Bytes of a decoded value by physical type: boolean, int32, int64, int96, float, double. Of a text, a view.
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
_VIEW_BYTES = 16
_FIXED = 7
# Each value repeats the beginning of the one before, at no cost in the page.
_DELTA_BYTE_ARRAY = 7


def parquet_bytes(content: bytes | memoryview, columns_max: int) -> int:
    """The bytes that all values would take once decoded, at most.

    Args:
        content: the whole file.
        columns_max: the greatest number of columns.

    Raises:
        ValueError: it is no Parquet file, it has more columns, or its size cannot be told.
    """
    size = len(content)
    length = int.from_bytes(content[size - 8 : size - 4], "little")
    if size < 12 or bytes(content[size - 4 :]) != MAGIC or length > size - 12:
        raise ValueError("is not a whole Parquet file")
    if length > _FOOTER_BYTES_MAX:
        raise ValueError(f"has {length} bytes of metadata, at most {_FOOTER_BYTES_MAX} are read")
    footer = CompactReader(content[size - 8 - length : size - 8]).struct()
    leaves = [_struct(one) for one in _list(footer, 2) if not _struct(one).get(5)]
    if len(leaves) > columns_max:
        raise ValueError(f"has {len(leaves)} columns; at most {columns_max}")
    widths = [_width(leaf) for leaf in leaves]
    groups = [_struct(one) for one in _list(footer, 4)]
    rows = max(_number(footer, 3), sum(_number(group, 3) for group in groups))
    walk = _Walk(content)
    paged = sum(walk.group(group, widths) for group in groups)
    return max(paged, rows * sum(widths))


class _Walk:
    """Goes from page to page; a page that several columns name counts as often as it is named."""

    def __init__(self, content: bytes | memoryview) -> None:
        self._content = memoryview(content)
        self._pages = 0

    def group(self, group: Mapping[int, Any], widths: list[int]) -> int:
        """The decoded bytes of a row group."""
        columns = _list(group, 1)
        if len(columns) != len(widths):
            raise ValueError("has a row group without some of its columns")
        return sum(self._chunk(_struct(one), width) for one, width in zip(columns, widths, strict=True))

    def _chunk(self, chunk: Mapping[int, Any], width: int) -> int:
        about = _struct(chunk.get(3))
        start = _number(about, 11) or _number(about, 9)  # a dictionary's page comes first
        claimed = _taken(_number(about, 6), _number(about, 5), width)
        return max(claimed, self._range(start, _number(about, 7), width))

    def _range(self, start: int, length: int, width: int) -> int:
        if start + length > len(self._content):
            raise ValueError("has a column beyond its end")
        reader = CompactReader(self._content[: start + length], start)
        total = 0
        while reader.place < start + length:
            self._pages += 1
            if self._pages > _PAGES_MAX:
                raise ValueError(f"has more than {_PAGES_MAX} pages; write it with larger ones")
            head = reader.struct()
            data, data_v2 = _struct(head.get(5)), _struct(head.get(8))
            if _DELTA_BYTE_ARRAY in (data.get(2), data_v2.get(4)):
                raise ValueError("uses the encoding DELTA_BYTE_ARRAY; write it with another one")
            values = sum(_number(one, 1) for one in (data, data_v2, _struct(head.get(7))))
            total += _taken(_number(head, 2), values, width)
            reader.place += _number(head, 3)
        return total


def _taken(unpacked: int, values: int, width: int) -> int:
    """The bytes of a page's values: of texts, views and the texts themselves; of numbers, one of the two."""
    return unpacked + width * values if width == _VIEW_BYTES else max(unpacked, width * values)


def _width(leaf: Mapping[int, Any]) -> int:
    kind = leaf.get(1)
    return _number(leaf, 2) if kind == _FIXED else _WIDTHS.get(cast("int", kind), _VIEW_BYTES)


def _struct(value: Any) -> dict[int, Any]:
    return cast("dict[int, Any]", value) if isinstance(value, dict) else {}


def _list(struct: Mapping[int, Any], field: int) -> list[Any]:
    value = struct.get(field, [])
    if not isinstance(value, list):
        raise ValueError(f"has no list in field {field} of its metadata")  # noqa: TRY004  # the file is wrong
    return cast("list[Any]", value)


def _number(struct: Mapping[int, Any], field: int) -> int:
    value = struct.get(field, 0)
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"has {value!r:.40} in field {field} of its metadata")
    return value
