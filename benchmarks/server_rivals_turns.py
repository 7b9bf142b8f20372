"""What was recommended, measured again in turns: blocks of one run each, in an order that is drawn."""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascar.pilot.turns import Gain

from .server_rivals_reach import within
from .server_rivals_tuned import ProfileHeld, tuned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ascar.results.trial import Trial
    from ascar.space import Configuration, Space, Value

    from .server_rivals_testbed import Testbed

LEVEL, LEVEL_WIDTH = 0.05, 0.05
"""Of each interval: the error, and the difference within which two are level."""
HALF_WIDTH_MAX = 0.05
BLOCKS_MIN = 4
HELD_MAX = 3
DEFAULT, OURS = "default", "ascar"

Scores = dict[str, "float | None"]
"""The scores of a block by contender; None for a run that failed."""


@dataclass(frozen=True, slots=True)
class Contender:
    """Something that is recommended.

    Attributes:
        name: who recommends it.
        configuration: the server's.
        reported: the gain over the default that was reported; None: none was.
        seconds: what it took to find it.
        is_tuned: whether the kernel has TuneD's profile meanwhile.
        note: what has to be said of it.
    """

    name: str
    configuration: Configuration
    reported: float | None = None
    seconds: float = 0.0
    is_tuned: bool = False
    note: str = ""

    @classmethod
    def advised(cls, name: str, space: Space, advice: Mapping[str, Value]) -> Contender:
        """Advice, as far as a space allows it; what of it is not in force is noted."""
        configuration, kept = within(space, advice)
        said = ", ".join(f"{one} = {value}" for one, value in kept.items())
        return cls(name, configuration, note=f"not in force: {said}" if said else "")

    def state(self, bed: Testbed) -> AbstractContextManager[None]:
        """The state of the kernel in which it runs."""
        return tuned(bed) if self.is_tuned else nullcontext()


def distinct(contenders: Sequence[Contender]) -> dict[str, str]:
    """By contender, the first one that is the same: that one is run for both."""
    found: dict[tuple[str, bool], str] = {}
    return {
        one.name: found.setdefault((one.configuration.text, one.is_tuned), one.name) for one in contenders
    }


def block(
    bed: Testbed,
    load: str,
    contenders: Sequence[Contender],
    seed: int,
    attempted: Callable[[Contender, Trial], None] = lambda _one, _trial: None,
) -> dict[str, Any]:
    """One run of each.

    Args:
        bed: the testbed.
        load: the name of the load.
        contenders: who runs.
        seed: of the order.
        attempted: hears of each run.

    Returns:
        The scores and the seconds by contender, and who was left out since another study holds what it sets.

    Raises:
        RuntimeError: the kernel refuses TuneD's profile.
    """
    order = list(contenders)
    random.Random(seed).shuffle(order)
    scores, seconds, held = Scores(), dict[str, float](), list[str]()
    with bed.bench(load) as bench:
        for one in order:
            try:
                with one.state(bed):
                    trial = bench.attempt(one.configuration)
                    attempted(one, trial)
            except ProfileHeld:
                held.append(one.name)
                continue
            scores[one.name], seconds[one.name] = trial.score, trial.total_s
    return {"scores": scores, "seconds": seconds, "held": held}


def gain(blocks: Sequence[Scores], reference: str, other: str) -> Gain | None:
    """What one gains over another, in the blocks in which both ran; None before there are two."""
    pairs = [(one.get(reference), one.get(other)) for one in blocks]
    whole = [(a, b) for a, b in pairs if a is not None and b is not None]
    if len(whole) < 2:
        return None
    return Gain.of([a for a, _ in whole], [b for _, b in whole], "maximize", LEVEL, LEVEL_WIDTH)


def half_width(found: Gain | None) -> float:
    """Half of the interval of a ratio, as a share of the ratio; infinite where there is none."""
    if found is None or found.interval is None or found.gain_relative is None:
        return float("inf")
    low, high = found.interval
    return (high - low) / 2 / (1 + found.gain_relative)


def settled(blocks: Sequence[Mapping[str, Any]], name: str, limit_s: float) -> bool:
    """Whether a contender is known well enough, against the default and ours, had its time, or cannot run."""
    scores = [one["scores"] for one in blocks]
    if sum(name in one.get("held", ()) for one in blocks) >= HELD_MAX:
        return True
    if sum(one["seconds"].get(name, 0.0) for one in blocks) >= limit_s:
        return True
    if sum(name in one for one in scores) < BLOCKS_MIN:
        return False
    known = {other for one in scores for other in one}
    others = [one for one in (DEFAULT, OURS) if one != name and one in known]
    return all(half_width(gain(scores, other, name)) <= HALF_WIDTH_MAX for other in others)


def standing(found: Gain | None) -> str:
    """How the first stands to the second: level, ahead, behind, or open."""
    if found is None or found.interval is None:
        return "open"
    low, high = found.interval
    if low >= -LEVEL_WIDTH and high <= LEVEL_WIDTH:
        return "level"
    return "ahead" if low > 0 else "behind" if high < 0 else "open"
