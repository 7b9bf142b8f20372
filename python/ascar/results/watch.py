"""Results of `ascar watch`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measurement import Count


class WatchShift(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/watch-shift/1",
):
    """A line of `ascar watch`: a shift of the mean, printed as soon as it is found.

    Attributes:
        name: of the column.
        found_s: on the readings' own clock, as all times here.
        began_s: most likely when it began.
        began_low_s: earliest; null: it may have begun before what is remembered.
        began_high_s: latest.
        form: either: the readings fit both.
        before: the level before.
        size: how far the level had moved when the shift was found.
        relative: the size over the level before; null where that is 0.
    """

    name: str
    found_s: float
    began_s: float
    began_low_s: float | None
    began_high_s: float
    form: Literal["step", "drift", "either"]
    direction: Literal["up", "down"]
    before: float
    size: float
    size_low: float
    size_high: float
    relative: float | None


class ShiftFound(msgspec.Struct, frozen=True, kw_only=True):
    """A shift of the mean.

    Attributes:
        found_s: on the readings' own clock, as all times here.
        began_s: most likely when it began.
        began_low_s: earliest; null: it may have begun before what is remembered.
        began_high_s: latest.
        form: either: the readings fit both.
        before: the level before.
        size: how far the level had moved when the shift was found.
        relative: the size over the level before; null where that is 0.
    """

    found_s: float
    began_s: float
    began_low_s: float | None
    began_high_s: float
    form: Literal["step", "drift", "either"]
    direction: Literal["up", "down"]
    before: float
    size: float
    size_low: float
    size_high: float
    relative: float | None


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """Between shifts."""

    start_s: float
    end_s: float
    batches: Count
    mean: float


class WatchResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/watch/1",
):
    """The last line of `ascar watch`: what was seen altogether.

    Attributes:
        name: of the column.
        period_s: null: no pattern.
        batches_left_out: in which some node was not heard.
        false_alarm_s: mean time to an alarm while nothing shifts, at least.
        false_alarm_probability_max: of an alarm by now if nothing had shifted.
    """

    files: tuple[str, ...]
    name: str
    readings: Count
    nodes: Count
    start_s: float
    end_s: float
    period_s: float | None
    batch_s: float
    batches: Count
    batches_left_out: Count
    false_alarm_s: float
    false_alarm_probability_max: float
    verdict: Literal["shifted", "steady", "too-short"]
    verdict_line: str
    shifts: tuple[ShiftFound, ...]
    levels: tuple[Level, ...]
