"""Tables from outside, as files or as bytes: refused in one line where they would take too much memory."""

from __future__ import annotations

import mmap
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from ascar.errors import AscarError, InputError
from ascar.tables.parquet_size import MAGIC, parquet_bytes
from ascar.tables.text_size import csv_bytes, is_packed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    import polars as pl

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class TableLimits:
    """What a table may have; more is refused before it is decoded.

    Attributes:
        decoded_bytes_max: the memory that all values may take.
        columns_max: the number of columns.
        file_bytes_max: the size of the file.
    """

    decoded_bytes_max: int = 4 * 2**30
    columns_max: int = 2_000
    file_bytes_max: int = 2 * 2**30


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table to read.

    Attributes:
        content: the path of the file, or its bytes.
        shown: the file as the user named it, for messages, e.g. "--table = 'results.csv'".
        limits: what it may have.
        error: the type of the errors.
    """

    content: Path | bytes
    shown: str
    limits: TableLimits = TableLimits()
    error: Callable[[str], AscarError] = InputError

    def read(self, *, columns: Sequence[str] | None = None, typed: bool = True) -> pl.DataFrame:
        """The table, from Parquet or CSV: bytes say which they are, files by the ending of their name.

        Args:
            columns: the columns to read; None: all.
            typed: whether types of CSV are found out; else every cell is text.

        Raises:
            AscarError: it cannot be read, or is more than the limits allow.
        """
        import polars as pl  # only here: who reads no table needs not have it

        # Polars panics where a damaged file contradicts itself.
        damages = (
            OSError,
            ValueError,
            OverflowError,
            pl.exceptions.PolarsError,
            pl.exceptions.PanicException,
        )
        try:
            with self._mapped() as whole:
                parquet = self._is_parquet(whole)
                self._check(whole, parquet=parquet)
            source = BytesIO(self.content) if isinstance(self.content, bytes) else self.content
            if parquet:
                named = None if columns is None else list(columns)
                frame = pl.read_parquet(source, columns=named, glob=False, hive_partitioning=False)
            else:
                options: dict[str, Any] = {"infer_schema_length": None} if typed else {"infer_schema": False}
                frame = pl.read_csv(source, columns=columns, glob=False, **options)
        except damages as problem:
            reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
            raise self.refused(f"cannot be read: {reason}; it must be a CSV or Parquet file") from problem
        self._check_size(
            int(frame.estimated_size())
        )  # rows may share a long text, until they are taken apart
        return frame

    def refused(self, reason: str) -> AscarError:
        """The error that says why the table is not used."""
        return self.error(f"{self.shown}: {reason}")

    @contextmanager
    def _mapped(self) -> Generator[bytes | memoryview]:
        """The content, without a copy of it in memory."""
        if isinstance(self.content, bytes):
            yield self.content
            return
        if not self.content.is_file():
            reason = "is not a file" if self.content.exists() else "no such file"
            raise self.refused(f"{reason}; give a CSV or Parquet file")
        if (size := self.content.stat().st_size) > self.limits.file_bytes_max:
            raise self.refused(f"larger than {self.limits.file_bytes_max} bytes; keep fewer columns")
        if size == 0:
            yield b""
            return
        with self.content.open(
            "rb"
        ) as file:  # the map goes with its last view, which an error may still hold
            yield memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def _is_parquet(self, whole: bytes | memoryview) -> bool:
        if isinstance(self.content, bytes):
            return bytes(whole[:4]) == MAGIC
        return self.content.suffix.lower() in (".parquet", ".pq")

    def _csv_columns(self) -> int:
        """How many columns the first line names."""
        import polars as pl

        source = BytesIO(self.content) if isinstance(self.content, bytes) else self.content
        return len(pl.scan_csv(source, infer_schema=False, glob=False).collect_schema())

    def _check(self, whole: bytes | memoryview, *, parquet: bool) -> None:
        """Refuse what would take more than the limits allow."""
        if parquet:
            decoded = parquet_bytes(whole, self.limits.columns_max)
        else:
            if is_packed(bytes(whole[:4])):
                raise ValueError("is compressed; unpack it first")
            columns = self._csv_columns()
            if columns > self.limits.columns_max:
                raise self.refused(f"has {columns} columns; at most {self.limits.columns_max}")
            decoded = csv_bytes(_pieces(whole), columns)
        self._check_size(decoded)

    def _check_size(self, decoded: int) -> None:
        if decoded > self.limits.decoded_bytes_max:
            raise self.refused(
                f"would take {decoded} bytes in memory, at most {self.limits.decoded_bytes_max} are allowed; "
                "keep fewer rows or columns"
            )


def _pieces(whole: bytes | memoryview) -> Iterator[bytes]:
    return (bytes(whole[place : place + _PIECE_BYTES]) for place in range(0, len(whole), _PIECE_BYTES))
