"""Results of `ascar watch`."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from ascar.results.measurement import Count


class Shift(msgspec.Struct, frozen=True):
    """A shift of the mean. Times are seconds on the readings' own clock.

    Attributes:
        found_s: the time at which the evidence was sufficient.
        began_s: the most likely start of the shift.
        began_low_s: the lower end of the start's 95% interval; null if the shift may have started before the
            remembered readings.
        began_high_s: the upper end of that interval.
        form: "step", "drift" (which still went on when it was found), or "either" if the readings fit both.
        direction: the direction of the shift.
        before: the level before the shift.
        size: the distance that the level had moved when the shift was found; selection makes it slightly too
            large.
        size_low: the lower end of the size's 95% interval.
        size_high: the upper end of that interval.
        relative: the size over the level before; null if that level is 0.
    """

    in_document_too: ClassVar = ("relative",)

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

    @property
    def relative(self) -> float | None:
        """The size over the level before; None if that level is 0."""
        return self.size / abs(self.before) if self.before else None


class WatchShift(Shift, frozen=True, kw_only=True, tag_field="schema", tag="ascar/watch-shift/1"):
    """A line of `ascar watch`: a shift of the mean, printed as soon as it is found.

    Attributes:
        name: the name of the column.
    """

    name: str


class LevelSegment(msgspec.Struct, frozen=True):
    """The level between two shifts, or since the last one was found.

    Attributes:
        start_s: the time at which the segment starts.
        end_s: the end of its last batch.
        batches: the number of batches.
        mean: the mean over the batches.
    """

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
        files: the files that were read.
        name: the name of the column.
        readings: the number of readings.
        nodes: the number of nodes.
        start_s: the time of the first batch.
        end_s: the end of the last batch.
        period_s: the period of the pattern; null without a pattern.
        batch_s: the length of a batch.
        batches: the number of batches that were used.
        batches_left_out: the number of batches without readings of some node.
        false_alarm_s: the minimum of the mean time to an alarm without a shift.
        false_alarm_probability_max: the largest probability of an alarm by now without a shift.
        verdict: whether the mean has shifted.
        verdict_line: the verdict in one line.
        shifts: the shifts that were found, in order.
        levels: the levels between the shifts.
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
    shifts: tuple[Shift, ...]
    levels: tuple[LevelSegment, ...]
