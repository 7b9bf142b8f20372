"""Typed values out of JSON and plain values: the one place where msgspec learns a type.

msgspec (0.22) learns a type when it first decodes one. Meanwhile every thread can see the half of it that is
known: a second thread that decodes the same type, or one that holds it, ends the process with SIGSEGV. Each
type is learned here under one lock, and used afterwards without it. Encoding learns nothing.

Other libraries that several threads call: NumPy, jax, Polars and SQLAlchemy are made for it, the latter with
a connection for each thread, as sqlite3 needs it. An object of `_core` refuses a second thread while a method
changes it.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
_learning = threading.RLock()
_known: dict[Any, msgspec.json.Decoder[Any]] = {}


@overload
def decode(content: bytes | str, kind: type[_T], *, hook: Callable[[type, Any], Any] | None = None) -> _T: ...


@overload
def decode(content: bytes | str, kind: Any, *, hook: Callable[[type, Any], Any] | None = None) -> Any: ...


def decode(content: bytes | str, kind: Any, *, hook: Callable[[type, Any], Any] | None = None) -> Any:
    """JSON text as a value of a type, strictly.

    Args:
        content: the text.
        kind: the type.
        hook: makes values of types that msgspec does not know.

    Raises:
        msgspec.MsgspecError: it is no JSON, or a value of another shape.
    """
    return _decoder(kind, hook).decode(content)


@overload
def convert(value: Any, kind: type[_T], *, strict: bool = True) -> _T: ...


@overload
def convert(value: Any, kind: Any, *, strict: bool = True) -> Any: ...


def convert(value: Any, kind: Any, *, strict: bool = True) -> Any:
    """Plain values as a value of a type.

    Args:
        value: mappings, sequences, text and numbers.
        kind: the type.
        strict: text is not read as a number.

    Raises:
        msgspec.ValidationError: it is a value of another shape.
    """
    _decoder(kind, None)
    return msgspec.convert(value, kind, strict=strict)


def finite(value: object) -> float | None:
    """A number as a float; None: it is none, or not finite, such as a whole number larger than any float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # `math.isfinite` raises OverflowError for such a whole number.
    return float(value) if abs(value) <= sys.float_info.max else None


def _decoder(kind: Any, hook: Callable[[type, Any], Any] | None) -> msgspec.json.Decoder[Any]:
    key = kind, hook
    found = _known.get(key)
    if found is None:
        with _learning:
            found = _known.get(key)
            if found is None:
                found = _known[key] = msgspec.json.Decoder(kind, dec_hook=hook)
    return found
