"""Columns that hold one word of a list: another word is damage, and named with its column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ascar.errors import HistoryError
from ascar.history.kinds import RunKind, RunState
from ascar.results.trial import Origin, Purpose, TrialState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import StrEnum

_Word = TypeVar("_Word", bound="StrEnum")

OF_RUN: Mapping[str, type[StrEnum]] = {"kind": RunKind, "state": RunState}
OF_TRIAL: Mapping[str, type[StrEnum]] = {"purpose": Purpose, "state": TrialState, "origin": Origin}
MAY_BE_MISSING = {"origin"}
_SHOWN_MAX = 40
_REMEDY = "; put back a copy of the history, or use the newer ascar that wrote it"


def word(kind: type[_Word], value: object, where: str, column: str) -> _Word:
    """The word that a column holds.

    Args:
        kind: the words that it may hold.
        value: what it holds.
        where: the run or the trial, for the message.
        column: the column's name.

    Raises:
        HistoryError: it is none of them.
    """
    if fault := _fault(kind, value, column):
        raise HistoryError(f"{where}: {fault}{_REMEDY}")
    return kind(value)


def see_words(row: Mapping[str, Any], kinds: Mapping[str, type[StrEnum]], where: str) -> None:
    """See that the columns of a row hold their words.

    Raises:
        HistoryError: one does not.
    """
    if faults := wrong_words(row, kinds):
        raise HistoryError(f"{where}: {faults[0]}{_REMEDY}")


def wrong_words(row: Mapping[str, Any], kinds: Mapping[str, type[StrEnum]]) -> list[str]:
    """The columns of a row that do not hold their words, and what they must be."""
    faults = [
        _fault(kind, row[column], column)
        for column, kind in kinds.items()
        if row[column] is not None or column not in MAY_BE_MISSING
    ]
    return [fault for fault in faults if fault]


def _fault(kind: type[StrEnum], value: object, column: str) -> str:
    words = [one.value for one in kind]
    if isinstance(value, str) and value in words:
        return ""
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}..."
    return f"{column} = {shown}: must be {', '.join(words[:-1])} or {words[-1]}"
