"""Asking a system that anybody may have written: what it says is checked, and what it raises is a failure.

A system that lies, breaks, hangs or tells garbage fails the trial that asked it, with a message that names
the method; the loop goes on.
"""

from __future__ import annotations

import math
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ascar.errors import AscarError, StageFailed
from ascar.systems import Sample
from ascar.systems.limit import OverLimit, time_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping
    from types import TracebackType

    from ascar.results.trial import Change
    from ascar.space import Configuration, Value
    from ascar.systems import System, Target

HEALTH_MAX_S = 60.0
"""A system has so long to become ready after a change."""


def apply_checked(system: System, configuration: Configuration) -> Change:
    """Put a configuration in force, and see that it is.

    Raises:
        StageFailed: the system did not, reads back another value, or does not become ready.
    """
    with _call(system, "apply"):
        change = system.apply(configuration)
    for name, found in read_checked(system, tuple(configuration)).items():
        wanted = configuration[name]
        if found != wanted:
            raise StageFailed("change", f"{name} = {wanted!r} was set, but the system reads back {found!r}")
    with _call(system, "health"):
        system.health(HEALTH_MAX_S)
    return change


def read_checked(system: System, names: Collection[str]) -> Mapping[str, Value]:
    """The values in force, of those parameters that the system can be asked about.

    Raises:
        StageFailed: it cannot read them, or tells parameters that nobody asked about.
    """
    with _call(system, "read"):
        found = dict(system.read(names))
    for name in found:
        if name not in names:
            raise StageFailed("change", f"read() of the system returns {name!r:.80}, which was not asked for")
    return found


def settle_checked(target: Target) -> Mapping[str, float]:
    """Settle; seconds by step.

    Raises:
        StageFailed: a step failed or ran out of time.
    """
    with _call(target, "settle"):
        return target.settle()


def sample_checked(system: System) -> Sample:
    """Counters and gauges.

    Raises:
        StageFailed: the system tells something that is not a finite number.
    """
    with _call(system, "sample"):
        found = system.sample()
        sample = Sample(dict(found.counters), dict(found.gauges))
    for name, value in {**sample.counters, **sample.gauges}.items():
        if not _is_number(value):
            raise StageFailed(
                "sample", f"sample() of the system returns {name} = {value!r:.80}; must be a finite number"
            )
    return sample


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@contextmanager
def entering(system: System) -> Generator[None]:
    """Enter a system; leaving it puts everything back.

    Raises:
        StageFailed: entering or leaving took longer than `System.call_max_s`.
        AscarError: as the system.
    """
    with ExitStack() as held:
        with _limited(system, "__enter__"):
            system.__enter__()
        held.push(_leaving(system))
        yield


def _leaving(system: System) -> Callable[..., None]:
    def leave(
        kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _limited(system, "__exit__"):
            system.__exit__(kind, error, trace)

    return leave


@contextmanager
def _limited(system: System, method: str) -> Generator[None]:
    """Interrupt a method that takes longer than the system allows.

    Raises:
        StageFailed: it did.
    """
    try:
        with time_limit(system.call_max_s):
            yield
    except OverLimit:
        left = "; `ascar restore` puts back what the keeper changed" if method == "__exit__" else ""
        raise StageFailed(
            method.strip("_"),
            f"{method}() of the system took longer than {system.call_max_s:g} s and was interrupted{left}",
        ) from None


@contextmanager
def _call(system: System, method: str) -> Generator[None]:
    """What a system raises that is none of our errors fails the trial and not the study.

    Raises:
        StageFailed: it did, or took too long.
    """
    try:
        with _limited(system, method):
            yield
    except AscarError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        raise StageFailed(
            method, f"{method}() of the system raised {type(error).__name__}: {said}"
        ) from error
