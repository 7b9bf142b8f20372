"""Thrift's compact protocol, as far as Parquet's metadata needs it: structs as mappings from field to value.

Source: Apache Thrift, "Thrift compact protocol encoding"; Apache Parquet, parquet.thrift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DEPTH_MAX = 16
_VARINT_BYTES_MAX = 10


@dataclass(slots=True)
class CompactReader:
    """Reads values one after the other; each takes a byte at least, so that their number is bounded.

    Attributes:
        content: the bytes.
        place: the next byte to read.
    """

    content: bytes | memoryview
    place: int = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """A struct's fields; lists are lists, binaries are bytes.

        Raises:
            ValueError: the bytes are no struct.
        """
        if depth > _DEPTH_MAX:
            raise ValueError(f"metadata nested deeper than {_DEPTH_MAX}")
        fields: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            field = field + step if step else _zigzag(self._varint())
            fields[field] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_I16, _I32, _I64):
            return _zigzag(self._varint())
        if kind in (_BYTE, _TRUE, _FALSE):  # a truth value in a list takes a byte
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            if count > len(self.content) - self.place:
                raise ValueError("a list longer than the metadata")
            return [self._element(head & 15, depth) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError(f"metadata of the unknown type {kind}")

    def _element(self, kind: int, depth: int) -> Any:
        if kind in (_LIST, _SET):
            raise ValueError("metadata with lists of lists")
        return self._value(kind, depth)

    def _byte(self) -> int:
        if self.place >= len(self.content):
            raise ValueError("metadata is cut off")
        self.place += 1
        return self.content[self.place - 1]

    def _bytes(self, count: int) -> bytes:
        if count > len(self.content) - self.place:
            raise ValueError("metadata is cut off")
        self.place += count
        return bytes(self.content[self.place - count : self.place])

    def _varint(self) -> int:
        value = 0
        for index in range(_VARINT_BYTES_MAX):
            byte = self._byte()
            value |= (byte & 127) << (7 * index)
            if byte < 128:
                return value
        raise ValueError("a number longer than ten bytes")


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
