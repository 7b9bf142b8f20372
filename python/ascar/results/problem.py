"""The error of a command that failed."""

from __future__ import annotations

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a command failed.

    Attributes:
        kind: the class of the error in `ascar.errors`, "UsageError", "Interrupted", or another exception's
            class.
        message: the message in one line: the offending key or name, its value, and what is allowed.
        exit_status: the exit status of the command.
    """

    kind: str
    message: str
    exit_status: int


class ErrorResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/error/1",
):
    """What any command prints instead of its own document when it fails; also on stderr, as one line.

    Attributes:
        error: the error.
    """

    error: Problem
