"""Every form of trace that can be read, and telling them apart by what they hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.features.block_trace import parse_blkparse, parse_mqsim, parse_msr
from ascar.features.kernel_trace import parse_kernel_trace
from ascar.features.load_record import parse_load_record
from ascar.features.system_calls import parse_system_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.features.trace import Trace

_LINES_LOOKED_AT = 2000
_PARSERS: dict[str, Callable[[str], Trace]] = {
    "blkparse": lambda text: parse_blkparse(text.splitlines()),
    "kernel": lambda text: parse_kernel_trace(text.splitlines()),
    "msr": lambda text: parse_msr(text.splitlines()),
    "mqsim": lambda text: parse_mqsim(text.splitlines()),
    "strace": lambda text: parse_system_calls(text.splitlines()),
    "load": lambda text: parse_load_record(text.encode()),
}
TRACE_FORMS = tuple(_PARSERS)
"""blkparse: its text; kernel: perf script, trace-cmd, trace_pipe, bpftrace; msr: CSV of MSR Cambridge; mqsim:
its traces; strace: with -f -ttt -T -y; load: `ascard load --record`."""

_SIGNS = {
    "load": re.compile(r"time_s,thread,flowop,type,file,"),
    "kernel": re.compile(r".*\d+\.\d+:\s+(block:)?block_(bio|rq)_\w+: ", re.ASCII),
    "blkparse": re.compile(r"\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+[A-Z]+\s", re.ASCII),
    "strace": re.compile(r"\d+\s+\d{1,12}\.\d+\s+(<\.\.\. )?\w+( resumed|\()", re.ASCII),
    "msr": re.compile(r"\d+,[^,]*,\d+,(read|write),\d+,\d+,\d+\s*$", re.ASCII | re.IGNORECASE),
    "mqsim": re.compile(r"\d+\s+\d+\s+\d+\s+\d+\s+[01]\s*$", re.ASCII),
}
"""What a line of each form looks like, tried in this order."""


def trace_form(text: str) -> str:
    """The form of a trace, from its first line that looks like one.

    Raises:
        InputError: none of its first lines does.
    """
    for line in text[: 400 * _LINES_LOOKED_AT].splitlines()[:_LINES_LOOKED_AT]:
        for form, sign in _SIGNS.items():
            if sign.match(line):
                return form
    first = text.lstrip()[:80].splitlines()[:1]
    raise InputError(
        f"begins with {first[0] if first else ''!r}: not a trace; known: {', '.join(TRACE_FORMS)}"
    )


def parse_trace(content: bytes, form: str | None = None) -> tuple[str, Trace]:
    """The form of a trace, and the trace.

    Args:
        content: the content of the trace's file.
        form: one of `TRACE_FORMS`; None means that the content determines it.

    Raises:
        InputError: the form is not known, or the content is not of this form.
    """
    if form is not None and form not in _PARSERS:
        raise InputError(f"form = {form!r}: must be one of {', '.join(TRACE_FORMS)}")
    if b"\0" in content[:4096]:
        raise InputError(
            "holds no text; print the trace first: `blkparse -i FILE`, `perf script`, `trace-cmd report`"
        )
    text = content.decode("utf-8", "replace")
    form = form or trace_form(text)
    return form, _PARSERS[form](text)
