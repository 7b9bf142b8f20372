"""Durations and sizes as people write them, and back.

    "10 min", "1.5 h", "90 s", "250 ms", "2 d", "1 h 30 min"     seconds
    "4k", "256 MiB", "1G", "1.5 TiB", "512"                     bytes

Sizes: a bare letter (k, M, G, T, P) and the IEC forms (KiB, MiB, ...) count in 1024s, as fio, mkfs and the
kernel do; the SI forms with a B (kB, MB, ...) count in 1000s. Without a unit it is bytes.
"""

from __future__ import annotations

import math
import re
from difflib import get_close_matches

from ascar.errors import InputError

_TEXT_LENGTH_MAX = 64
_SECONDS_MAX = 1e10  # three centuries
_BYTES_MAX = 2**63 - 1
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_PART = re.compile(_NUMBER + " *([A-Za-z\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}]*)", re.ASCII)

_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "\N{MICRO SIGN}s": 1e-6,
    "\N{GREEK SMALL LETTER MU}s": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
}
_DURATION_UNITS = "ns, us, ms, s, min, h or d"

_PREFIXES = tuple(enumerate("kmgtp", start=1))
_BYTES = (
    {"": 1, "b": 1, "byte": 1, "bytes": 1}
    | {letter: 1024**power for power, letter in _PREFIXES}
    | {f"{letter}ib": 1024**power for power, letter in _PREFIXES}
    | {f"{letter}b": 1000**power for power, letter in _PREFIXES}
)
_SIZE_UNITS = "B, k, M, G, T, P (1024s), KiB, MiB, ... (1024s) or kB, MB, ... (1000s)"


def parse_duration(text: str) -> float:
    """Seconds of a duration: one or more numbers, each with a unit, e.g. "10 min" or "1 h 30 min".

    Raises:
        InputError: no number, no unit, an unknown unit, or longer than 1e10 seconds.
    """
    parts = _parts(text, "a duration", "'10 min', '1.5 h' or '90 s'")
    seconds = 0.0
    for number, unit in parts:
        if not unit:
            raise InputError(f"{text!r} has no unit: write e.g. '{number} s' ({_DURATION_UNITS})")
        if unit not in _SECONDS:
            near = get_close_matches(unit, _SECONDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"{text!r}: unknown unit {unit!r}; allowed: {_DURATION_UNITS}{hint}")
        seconds += float(number) * _SECONDS[unit]
    if seconds > _SECONDS_MAX:
        raise InputError(f"{text!r} is longer than {_SECONDS_MAX:g} seconds; write a shorter duration")
    return seconds


def parse_size(text: str) -> int:
    """Bytes of a size, e.g. "256 MiB", "4k", "1G" or "512".

    Raises:
        InputError: no number, an unknown unit, not a whole number of bytes, or above 2**63 - 1.
    """
    parts = _parts(text, "a size", "'256 MiB', '4k' or '1G'")
    if len(parts) != 1:
        raise InputError(f"{text!r} is not a size: write one number with one unit, e.g. '256 MiB'")
    number, unit = parts[0]
    factor = _BYTES.get(unit.lower())
    if factor is None:
        raise InputError(f"{text!r}: unknown unit {unit!r}; allowed: {_SIZE_UNITS}")
    whole, _, fraction = number.partition(".")
    # In integers, so that large sizes keep every byte.
    numerator = int(f"{whole or '0'}{fraction}") * factor
    size, rest = divmod(numerator, 10 ** len(fraction))
    if rest:
        raise InputError(f"{text!r} is not a whole number of bytes; write it in a smaller unit")
    if size > _BYTES_MAX:
        raise InputError(f"{text!r} is more than {_BYTES_MAX} bytes; write a smaller size")
    return size


def format_duration(seconds: float) -> str:
    """A duration for people, e.g. "250 ms", "90 s", "12 min 5 s", "1 h 30 min".

    From two minutes on in whole seconds, in its two largest units. `parse_duration` reads it.
    """
    if not math.isfinite(seconds) or seconds < 0:
        raise InputError(f"{seconds!r} seconds is not a duration; it must be finite and not negative")
    if seconds < 1e-12:
        return "0 s"
    for unit in ("ns", "us", "ms"):
        digits = f"{seconds / _SECONDS[unit]:.3g}"
        if float(digits) < 1000:
            return f"{digits} {unit}"
    if seconds < 120:
        return f"{round(seconds, 1):g} s"
    rest = round(seconds)
    parts: list[str] = []
    for unit in ("d", "h", "min", "s"):
        count, rest = divmod(rest, int(_SECONDS[unit]))
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def format_size(size_bytes: int) -> str:
    """A size for people: the largest IEC unit that divides it, or three digits of the largest below it."""
    if size_bytes < 0:
        raise InputError(f"{size_bytes!r} bytes is not a size; it must not be negative")
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    power = 0
    while power < len(units) - 1 and size_bytes >= 1024 ** (power + 1):
        power += 1
    exact = power
    while size_bytes % 1024**exact:
        exact -= 1
    if size_bytes // 1024**exact < 10_000:
        return f"{size_bytes // 1024**exact} {units[exact]}"
    return f"{size_bytes / 1024**power:.4g} {units[power]}"


def _parts(text: str, kind: str, examples: str) -> list[tuple[str, str]]:
    """The numbers and units of `text`; nothing else may be in it."""
    if not isinstance(text, str):
        raise InputError(f"{text!r} is not a text: write {kind} in quotes, e.g. {examples}")
    stripped = text.strip()
    if len(stripped) > _TEXT_LENGTH_MAX:
        raise InputError(f"{text[:20]!r}... is too long for {kind}: at most {_TEXT_LENGTH_MAX} characters")
    parts: list[tuple[str, str]] = []
    position = 0
    while position < len(stripped):
        match = _PART.match(stripped, position)
        if not match:
            raise InputError(f"{text!r} is not {kind}: write e.g. {examples}")
        parts.append((match[1], match[2]))
        position = match.end()
        while position < len(stripped) and stripped[position] == " ":
            position += 1
    if not parts:
        raise InputError(f"{text!r} is not {kind}: write e.g. {examples}")
    return parts
