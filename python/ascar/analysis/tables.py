"""Tables from outside: CSV and Parquet, as files or as bytes, read or refused in one line."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import polars as pl

from ascar.errors import InputError
from ascar.results.trial import Purpose, TrialState

if TYPE_CHECKING:
    from pathlib import Path

_BYTES_MAX = 2 * 2**30
_COLUMNS_MAX = 2_000
_PARQUET = b"PAR1"  # such a file begins and ends with this
_KEPT = [TrialState.COMPLETE.value, TrialState.FAILED.value]
# One configuration again and again.
_REPEATED = [Purpose.VERIFY.value, Purpose.REDUCE.value, Purpose.BIAS.value]


def read_frame(path: Path, shown: str) -> pl.DataFrame:
    """The table in a file.

    Args:
        path: ends with .parquet or .pq, or is CSV.
        shown: the file as the user named it, for messages, e.g. "--table = 'results.csv'".

    Raises:
        InputError: there is none, or it cannot be read.
    """
    try:
        if not path.is_file():
            raise InputError(f"{shown}: no such file; give a CSV or Parquet file")
        if path.stat().st_size > _BYTES_MAX:
            raise InputError(f"{shown}: larger than {_BYTES_MAX} bytes; keep fewer columns")
        parquet = path.suffix.lower() in (".parquet", ".pq")
        frame = pl.read_parquet(path) if parquet else pl.read_csv(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(shown, error) from error
    return _checked(frame, shown)


def read_bytes(content: bytes, shown: str) -> pl.DataFrame:
    """The table in the bytes of a CSV or Parquet file; which of them, the bytes say.

    Raises:
        InputError: they are neither.
    """
    try:
        parquet = content.startswith(_PARQUET)
        frame = (
            pl.read_parquet(BytesIO(content)) if parquet else pl.read_csv(content, infer_schema_length=None)
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(shown, error) from error
    return _checked(frame, shown)


def ended_trials(frame: pl.DataFrame) -> pl.DataFrame:
    """Of a table of ascar's own, the trials that ended and were no repetition for a comparison."""
    kept = pl.col("trial.state").is_in(_KEPT)
    if "trial.purpose" in frame.columns:
        kept &= pl.col("trial.purpose").is_in(_REPEATED).not_()
    return frame.filter(kept)


def _unreadable(shown: str, error: Exception) -> InputError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(f"{shown}: cannot be read: {reason}; it must be a CSV or Parquet file")


def _checked(frame: pl.DataFrame, shown: str) -> pl.DataFrame:
    if frame.height == 0:
        raise InputError(f"{shown}: has no rows; give one with a row for each evaluation")
    if frame.width > _COLUMNS_MAX:
        raise InputError(f"{shown}: has {frame.width} columns; at most {_COLUMNS_MAX}")
    return frame
