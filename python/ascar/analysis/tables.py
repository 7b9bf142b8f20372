"""Tables from outside, CSV and Parquet, as files or as bytes; and the trials among their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ascar.errors import InputError
from ascar.results.trial import Purpose, TrialState
from ascar.tables import TableLimits, TableSource

if TYPE_CHECKING:
    from pathlib import Path

_KEPT = [TrialState.COMPLETE.value, TrialState.FAILED.value]
# One configuration again and again.
_REPEATED = [Purpose.VERIFY.value, Purpose.REDUCE.value, Purpose.BIAS.value]
_POSTED = TableLimits(decoded_bytes_max=2**30)


def read_frame(path: Path, shown: str) -> pl.DataFrame:
    """The table in a file.

    Args:
        path: ends with .parquet or .pq, or is CSV.
        shown: the file as the user named it, for messages, e.g. "--table = 'results.csv'".

    Raises:
        InputError: there is none, it cannot be read, or it would take too much memory.
    """
    return _checked(TableSource(path, shown).read(), shown)


def read_bytes(content: bytes, shown: str) -> pl.DataFrame:
    """The table in the bytes of a CSV or Parquet file; which of them, the bytes say.

    Raises:
        InputError: they are neither, or would take too much memory.
    """
    return _checked(TableSource(content, shown, _POSTED).read(), shown)


def ended_trials(frame: pl.DataFrame) -> pl.DataFrame:
    """Of a table of ascar's own, the trials that ended and were no repetition for a comparison."""
    kept = pl.col("trial.state").is_in(_KEPT)
    if "trial.purpose" in frame.columns:
        kept &= pl.col("trial.purpose").is_in(_REPEATED).not_()
    return frame.filter(kept)


def _checked(frame: pl.DataFrame, shown: str) -> pl.DataFrame:
    if frame.height == 0:
        raise InputError(f"{shown}: has no rows; give one with a row for each evaluation")
    return frame
