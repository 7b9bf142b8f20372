"""What CSV and JSON would take in memory, from counts of their separators; nothing is decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_CELL_BYTES = 16
_JSON_VALUE_BYTES = 40  # a number, its place in a list
_JSON_CONTAINER_BYTES = 120
# gzip, zstd, and the four beginnings of zlib's format, which Polars unpacks by itself.
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")


def csv_bytes(pieces: Iterable[bytes], columns: int) -> int:
    """The bytes that the cells of separated values would take, at most: a short line has all columns, too.

    Args:
        pieces: the content, piece by piece.
        columns: the number of columns in the first line.
    """
    lines = size = 0
    for piece in pieces:
        lines += piece.count(b"\n")
        size += len(piece)
    return size + _CELL_BYTES * max(columns, 1) * (lines + 1)


def is_packed(head: bytes) -> bool:
    """Whether content begins as compressed data does."""
    return head.startswith(_PACKED)


def json_bytes(content: bytes | str) -> int:
    """The bytes that the values of JSON text would take in Python, at most."""
    if isinstance(content, str):
        commas, containers = content.count(","), content.count("[") + content.count("{")
    else:
        commas, containers = content.count(b","), content.count(b"[") + content.count(b"{")
    return len(content) + _JSON_VALUE_BYTES * commas + _JSON_CONTAINER_BYTES * containers
