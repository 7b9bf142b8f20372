"""From checks that hold to what to do about it (Cao 6.6.2, 6.6.3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ascar.analysis.variation_checks import LEVEL
from ascar.render import compact, p_value, percentage
from ascar.results.variation import Advice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.analysis.variation_checks import Check
    from ascar.analysis.variation_time import RunLength

_ONE_THING = 0.25
"""A straight line over the run has a drift of about half of its start's difference, of the other sign."""


def advice_of(checks: Sequence[Check], settled: Sequence[RunLength] = ()) -> list[Advice]:
    """One for every check that holds; what another one explains better is left out.

    Args:
        checks: all of a study.
        settled: the run lengths that the groups need, for the advice on run length.
    """
    held = {one.cause: one for one in checks if one.held}
    if held.keys() & {"order", "first-run"}:
        held.pop("neighbours", None)  # a trend makes neighbours alike
    if "drift" in held and "start" in held:
        ratio = held["drift"].effect / held["start"].effect
        if ratio < -_ONE_THING:
            held.pop("start")  # it begins low and goes on rising, or the other way
    if "lazy-initialization" in held:
        held.pop("start", None)
    return [
        Advice(cause, *_WRITERS[cause](one, settled))
        for cause in _WRITERS
        if (one := held.get(cause)) is not None
    ]


def _test(one: Check) -> str:
    p = p_value(one.p_adjusted)
    return (
        f"{one.result.name} = {one.result.statistic:.3g}, {one.result.sample}, {p} over all checks "
        f"(level {percentage(LEVEL, 0)})"
    )


def _slower(share: float) -> str:
    return f"{percentage(abs(share))} {'below' if share < 0 else 'above'}"


def _lazy(one: Check, _: Sequence[RunLength]) -> tuple[str, str, str]:
    return (
        "lazy initialization of ext4",
        f"runs on ext4 begin {_slower(one.effect)} their end, and lower than on other file systems where "
        f"there are any; {_test(one)}",
        "make the file system with -E lazy_itable_init=0,lazy_journal_init=0, or wait until the kernel's "
        "ext4lazyinit thread has ended, and measure again (section 6.6.2: the range fell from 47% to 22%)",
    )


def _start(one: Check, _: Sequence[RunLength]) -> tuple[str, str, str]:
    seconds = dict(one.said)["start_s"]
    lead = (
        f"the first {seconds:.3g} s of a run are {_slower(one.effect)} its second half (median of the runs); "
        f"{_test(one)}"
    )
    if one.effect < 0:
        return (
            "slow starts: set-up that is not flushed, or cold caches",
            lead,
            "unmount and mount between set-up and load, for sync only schedules writes (section 6.6.2, "
            "+umount); what stays is the cache warming up: leave the start out, or let the load run longer",
        )
    return (
        "fast starts: the page cache takes writes before they reach the device",
        lead,
        "let the load run until dirty data is flushed as fast as it is made, or leave the start out "
        "(section 6.6.3.1: a peak, then a decline)",
    )


def _drift(one: Check, settled: Sequence[RunLength]) -> tuple[str, str, str]:
    run_s = dict(one.said)["run_s"]
    longest = max((group.most_s for group in settled), default=0.0)
    more = (
        f"; until the mean settles it takes up to {longest:.3g} s (90% of a group's runs)" if longest else ""
    )
    return (
        "runs are too short",
        f"the last third of a run is {_slower(one.effect)} its middle third (median of the runs, "
        f"{run_s:.3g} s long){more}; {_test(one)}",
        "let the load run longer, until the cumulative throughput is flat (section 6.5, Fig. 6.1), or leave "
        "the start out",
    )


def _first_run(one: Check, _: Sequence[RunLength]) -> tuple[str, str, str]:
    return (
        "the first run of a configuration differs",
        f"it is {_slower(one.effect)} the others (median of the configurations); {_test(one)}",
        "find what later runs inherit: a file system initialised meanwhile (ext4: lazy_itable_init=0), warm "
        "caches, files laid out already, a device that was fresh; set everything up anew for each run, or "
        "leave first runs out",
    )


def _order(one: Check, _: Sequence[RunLength]) -> tuple[str, str, str]:
    way = "falls" if one.effect < 0 else "rises"
    return (
        "a trend over the runs",
        f"from the second run of a configuration to its last it {way} by {percentage(abs(one.effect))} "
        f"(median of the configurations); {_test(one)}",
        "something ages or fills up: discard (fstrim) and set up anew before each run; measure "
        "configurations in turn, pass by pass, so that the trend does not pass for a difference between them",
    )


def _setups(one: Check, _: Sequence[RunLength]) -> tuple[str, str, str]:
    return (
        "the layout that a set-up makes",
        f"{percentage(one.effect)} of the variance of a configuration's runs is between its set-ups; within "
        f"one they agree more than chance allows; {_test(one)}",
        "lay files out alike: restore an image of the filled file system before each run, use a smaller "
        "partition, on ext4 clear s_hash_seed (section 6.6.2: the range fell to 2%); or set up anew for each "
        "run and average over many",
    )


def _two_levels(one: Check, _: Sequence[RunLength]) -> tuple[str, str, str]:
    said = dict(one.said)
    return (
        "runs fall into two groups",
        f"around {compact(said['low'])} and {compact(said['high'])}, {percentage(one.effect)} of the mean "
        f"apart; {_test(one)}",
        "find what has two states: the layout of a set-up, where an image or a partition begins, clock "
        "frequency, memory node; a mean of both describes neither",
    )


def _levels(one: Check, _: Sequence[RunLength]) -> tuple[str, str, str]:
    return (
        "a run keeps the level with which it begins",
        f"runs of a configuration that begin higher end higher; {_test(one)}",
        "more runs tell more than longer ones; what is decided when a run begins makes it differ: "
        "the layout, if each run is set up anew (restore an image instead, section 6.6.2), or what ran then",
    )


def _time_of_day(one: Check, _: Sequence[RunLength]) -> tuple[str, str, str]:
    return (
        "the time of day",
        f"a wave of 24 h explains {percentage(one.effect)} of a configuration's variance; {_test(one)}",
        "find what runs at fixed hours (backups, scrubbing, users); measure at quiet hours, or spread each "
        "configuration's runs over the day",
    )


def _neighbours(one: Check, _: Sequence[RunLength]) -> tuple[str, str, str]:
    return (
        "something else disturbs runs for a while",
        f"runs of different configurations that follow one another deviate alike; {_test(one)}",
        "look at what ran then (trial.started_at tells when); measure configurations in turn, so that all "
        "suffer alike, and repeat the runs of bad stretches",
    )


_Writer = Callable[["Check", "Sequence[RunLength]"], tuple[str, str, str]]
_WRITERS: Mapping[str, _Writer] = {
    "lazy-initialization": _lazy,
    "start": _start,
    "drift": _drift,
    "first-run": _first_run,
    "order": _order,
    "set-ups": _setups,
    "two-levels": _two_levels,
    "levels": _levels,
    "time-of-day": _time_of_day,
    "neighbours": _neighbours,
}
