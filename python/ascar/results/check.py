"""The result of `ascar check`: what of a study works on this machine."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from typing import ClassVar

import msgspec

from ascar.results.machine import Need


class CheckedParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter that was changed once.

    Attributes:
        parameter: the name of the parameter.
        before: the value of the default configuration; null if the parameter does not apply there.
        tried: the value that was set; null if the study leaves no other value.
        read_back: the value that the system read back; null if the system cannot read it.
        seconds: the duration of the change; null if nothing was set.
        commands: the statements that an administrator would type.
        problem: what went wrong, in one line; null if nothing did.
    """

    parameter: str
    before: bool | int | float | str | None
    tried: bool | int | float | str | None = None
    read_back: bool | int | float | str | None = None
    seconds: float | None = None
    commands: tuple[str, ...] = ()
    problem: str | None = None


class CheckResult(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="ascar/check/1"):
    """What of a study works on this machine.

    Attributes:
        study: the name of the study.
        kind: the kind of the target.
        missing: the needs of the target that this machine does not meet.
        load_metrics: the metrics of one short load under the default configuration.
        sample: the counters and gauges of the system.
        parameters: the parameters, each changed once.
        problems: everything that went wrong, in the order of the check.
        statements: every statement that a study may issue on a server that people use.
        rights: what the account needs for them.
        notes: what trials on such a server leave out, and why, a line each.
    """

    in_document_too: ClassVar = ("works",)

    study: str
    kind: str
    missing: tuple[Need, ...]
    load_metrics: Mapping[str, float]
    sample: Mapping[str, float]
    parameters: tuple[CheckedParameter, ...]
    problems: tuple[str, ...]
    statements: tuple[str, ...] = ()
    rights: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def works(self) -> bool:
        """Whether nothing went wrong."""
        return not self.problems
