"""What people and job schedulers may ask of a session, in words: `P.control` of docs/capes-protocol.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ascar.errors import InputError
from ascar.messaging import token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FORMS: Final = {
    "kill": "",
    "revive": "",
    "restore": "",
    "mode": "observe|approve|automatic",
    "waiting": "",
    "approve": "ID",
    "reject": "ID",
    "set": "KNOB=VALUE...",
    "floor": "METRIC MINIMUM|none",
    "ceiling": "METRIC MAXIMUM|none",
    "workload": "start|end NAME",
    "audit": "[LIMIT]",
}
"""Operations, with the words that each takes."""

_MODES: Final = ("observe", "approve", "automatic")
_PHASES: Final = ("start", "end")
_AUDIT_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """One request.

    Attributes:
        op: the operation.
        keys: the other keys of the request.
    """

    op: str
    keys: dict[str, Any] = field(default_factory=dict[str, Any])


def control_request_of(op: str, words: Sequence[str], *, job: str = "") -> ControlRequest:
    """The request that some words make.

    Args:
        op: the operation, one of `FORMS`.
        words: the words after the operation.
        job: the scheduler's name for the job, of a workload.

    Raises:
        InputError: they make none; says what is allowed.
    """
    if op not in FORMS:
        raise InputError(f"OPERATION = {op!r}: must be one of {', '.join(FORMS)}")
    if job and op != "workload":
        raise InputError(f"--job = {job!r}: applies only to `workload`; leave it out")
    return ControlRequest(op, _READERS.get(op, _none)(op, words) | ({"job": job} if op == "workload" else {}))


def _none(op: str, words: Sequence[str]) -> dict[str, Any]:
    _count(op, words, 0)
    return {}


def _mode(op: str, words: Sequence[str]) -> dict[str, Any]:
    (mode,) = _count(op, words, 1)
    return {"mode": _one_of("mode", mode, _MODES)}


def _id(op: str, words: Sequence[str]) -> dict[str, Any]:
    return {"id": _count(op, words, 1)[0]}


def _set(op: str, words: Sequence[str]) -> dict[str, Any]:
    if not words:
        raise _wrong(op)
    wanted: dict[str, Any] = {}
    for word in words:
        knob, sign, text = word.partition("=")
        if not sign or not knob or not text or knob in wanted:
            raise InputError(f"set {word!r}: must be KNOB=VALUE, each knob once, such as vm.dirty_ratio=30")
        wanted[knob] = _value(text)
    return {"set": wanted}


def _limit(op: str, words: Sequence[str]) -> dict[str, Any]:
    metric, text = _count(op, words, 2)
    value = None if text == "none" else _number(text)
    if value is None and text != "none":
        raise InputError(f"{op} {text!r}: must be a number, or none")
    return {"metric": metric, "minimum" if op == "floor" else "maximum": value}


def _workload(op: str, words: Sequence[str]) -> dict[str, Any]:
    phase, name = _count(op, words, 2)
    return {"phase": _one_of("workload", phase, _PHASES), "name": token("workload", name)}


def _audit(op: str, words: Sequence[str]) -> dict[str, Any]:
    if not words:
        return {"limit": 20}
    (text,) = _count(op, words, 1)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= _AUDIT_MAX:
        raise InputError(f"audit {text!r}: must be a number of entries, 1 to {_AUDIT_MAX}")
    return {"limit": int(text)}


_READERS: Final[dict[str, Callable[[str, Sequence[str]], dict[str, Any]]]] = {
    "mode": _mode,
    "approve": _id,
    "reject": _id,
    "set": _set,
    "floor": _limit,
    "ceiling": _limit,
    "workload": _workload,
    "audit": _audit,
}


def _count(op: str, words: Sequence[str], number: int) -> Sequence[str]:
    if len(words) != number:
        raise _wrong(op)
    return words


def _wrong(op: str) -> InputError:
    form = f"{op} {FORMS[op]}".strip()
    return InputError(f"{op}: write `ascar capes control {form}`")


def _one_of(what: str, word: str, allowed: Sequence[str]) -> str:
    if word not in allowed:
        raise InputError(f"{what} {word!r}: must be one of {', '.join(allowed)}")
    return word


def _value(text: str) -> bool | float | str:
    """As a setting has it: a boolean, a number, else a word."""
    number = _number(text)
    if number is None:
        return {"true": True, "false": False}.get(text, text)
    return int(number) if number.is_integer() else number


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e300 else None
