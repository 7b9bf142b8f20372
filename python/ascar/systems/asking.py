"""Asking a system that anybody may have written: what it says is checked, and what it raises is a failure.

A system that lies, breaks, hangs or tells garbage fails the trial that asked it, with a message that names
the method; the loop goes on.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

from ascar.errors import AscarError, StageFailed
from ascar.systems import Sample
from ascar.systems.limit import OverLimit, time_limit
from ascar.typed import finite

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping
    from types import TracebackType

    from ascar.results.trial import Change
    from ascar.space import Configuration, Value
    from ascar.systems import Degradable, System, Target

HEALTH_MAX_S = 60.0
"""A system has so long to become ready after a change."""

_GRACE_S = 10.0
"""A system that keeps its limit by itself has so much longer to say what failed."""


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
    """Counters, gauges and deferred work.

    Raises:
        StageFailed: the system tells something that is not a finite number, or less than no deferred work.
    """
    with _call(system, "sample"):
        found = system.sample()
        sample = Sample(dict(found.counters), dict(found.gauges), dict(found.deferred))
    for name, value in {**sample.counters, **sample.gauges, **sample.deferred}.items():
        if finite(value) is None:
            raise StageFailed(
                "sample", f"sample() of the system returns {name} = {value!r:.80}; must be a finite number"
            )
    for name, value in sample.deferred.items():
        if value < 0:
            raise StageFailed(
                "sample", f"sample() of the system returns deferred {name} = {value!r:.80}; must be 0 or more"
            )
    return sample


def drain_checked(system: System, limit_s: float) -> None:
    """Have the deferred work done.

    Raises:
        StageFailed: it is not done within `limit_s`.
    """
    with _call(system, "drain", min(system.call_max_s, limit_s + _GRACE_S)):
        system.drain(limit_s)


def degrade_checked(target: Degradable) -> None:
    """Make a part fail.

    Raises:
        StageFailed: it cannot be done.
    """
    with _call(target, "degrade"):
        target.degrade()


def repair_checked(target: Degradable) -> None:
    """Start it again.

    Raises:
        StageFailed: it does not start.
    """
    with _call(target, "repair"):
        target.repair()


def recover_checked(target: Degradable) -> None:
    """Wait until all is as before, or for as long as the study waits.

    Raises:
        StageFailed: the part does not come back.
    """
    with _call(target, "recover"):
        target.recover()


def cycle_checked(system: System, configuration: Configuration, metrics: Mapping[str, float]) -> float:
    """Seconds of the longest cycle of deferred work.

    Raises:
        StageFailed: the system tells something that is not a finite number from 0.
    """
    with _call(system, "cycle_s"):
        found = system.cycle_s(configuration, metrics)
    if (seconds := finite(found)) is None or seconds < 0:
        raise StageFailed("cycle_s", f"cycle_s() of the system returns {found!r:.80}; must be 0 or more")
    return seconds


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


class _Limited(Protocol):
    call_max_s: float


@contextmanager
def _limited(system: _Limited, method: str, limit_s: float | None = None) -> Generator[None]:
    """Interrupt a method that takes longer than a limit; None: the system's own.

    Raises:
        StageFailed: it did.
    """
    allowed_s = system.call_max_s if limit_s is None else limit_s
    try:
        with time_limit(allowed_s):
            yield
    except OverLimit:
        left = "; `ascar restore` puts back what the keeper changed" if method == "__exit__" else ""
        raise StageFailed(
            method.strip("_"),
            f"{method}() of the system took longer than {allowed_s:g} s and was interrupted{left}",
        ) from None


@contextmanager
def _call(system: _Limited, method: str, limit_s: float | None = None) -> Generator[None]:
    """What a system raises that is none of our errors fails the trial and not the study.

    Raises:
        StageFailed: it did, or took too long.
    """
    try:
        with _limited(system, method, limit_s):
            yield
    except AscarError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        raise StageFailed(
            method, f"{method}() of the system raised {type(error).__name__}: {said}"
        ) from error
