"""How long the runs of the last comparison are: equally long, and several cycles where work is deferred."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from ascar.cycles import LOAD_LEAST, PAIRS_LEAST, PAIRS_ROOM, PairLoad, Span, span_of
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.space import ChangeCost, Space, ordinal
from ascar.study import Study
from ascar.systems.simulated import SimulatedSystem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Configuration

SPACE = Space((ordinal("age_s", (5, 30, 600), default=30, cost=ChangeCost.DYN_KERNEL),), name="ages")


class Cyclic(SimulatedSystem):
    """Its cycle is its parameter."""

    told: float | None = None

    def __init__(self) -> None:
        super().__init__({"metrics": {"ops_per_s": "1"}})

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        return float(configuration["age_s"]) if self.told is None else self.told


def side(age_s: int, deferred_s: float = 1.0, load_s: float = 4.0) -> Trial:
    return Trial(
        1,
        SPACE.default().replaced(age_s=age_s),
        Purpose.SEARCH,
        TrialState.COMPLETE,
        score=1.0,
        metrics={"load_s": load_s, "deferred_s": deferred_s},
        stage_s={"change": 1.0, "load": load_s, "drain": deferred_s},
    )


def study(
    objective: str = "maximize ops_per_s", load_min: str = "3 s", load_max: str = "1 h", runs_min: int = 5
) -> Study:
    return Study.of(
        {
            "study": {"name": "x", "objective": objective, "budget": "1 h"},
            "target": {"kind": "simulated", "metrics": {"ops_per_s": "1"}},
            "measurement": {"load_min": load_min, "load_max": load_max},
            "verify": {"runs_min": runs_min},
        }
    )


def test_the_longest_cycle_of_either_side_counts():
    for ages in ((5, 30), (30, 5)):
        found = span_of(study(), Cyclic(), [side(age) for age in ages], left_s=1e6)
        assert found.load_s == 90
        assert "each run spans 3 of the longest cycle of such work, 30 s" in found.note


def test_time_for_half_as_many_pairs_again_as_are_needed_at_least_is_kept():
    found = span_of(study(), Cyclic(), [side(5), side(30)], left_s=1200)
    # 1200 s are 15 runs of 80 s; 1 s goes on the change, and a fifth of the rest on what the load leaves.
    assert found.load_s == pytest.approx(79 * 0.8)
    assert "each run spans 2.1 of the longest cycle of such work, 30 s" in found.note
    assert "the budget is too small for 3, loads of 90 s" in found.note


@pytest.mark.parametrize("left_s", [1200.0, 0.0, -10.0])
def test_where_no_whole_cycle_fits_runs_are_as_long_as_the_study_says(left_s: float):
    """A run of a tenth of a cycle sees no more of it than a short one."""
    sides = [side(30), side(600)]
    found = span_of(study(), Cyclic(), sides, left_s=left_s)
    assert found.load_s == 0
    assert "each run is shorter than the longest cycle of such work, 10 min" in found.note
    assert "the budget is too small for 3, loads of 30 min" in found.note
    load = PairLoad.of(found, sides, left_s, study=study(), usual_s=20.0)
    assert load.load_s == (20 if left_s > 0 else 3)


def test_what_is_charged_whole_at_the_end_makes_a_load_hardly_shorter_while_a_few_pairs_fit():
    """A fixed second of work is a fifth of a load of 4 s, and a twentieth of one of 19 s."""
    left_s = 2 * 5 * (1 + 20 / 0.8)  # five pairs with loads of 20 s, of whose time a fifth is what they leave
    deferring, finishing = [side(600)], [side(600, deferred_s=0.0)]
    long, short = (
        PairLoad.of(Span(), sides, left_s, study=study(), usual_s=20.0) for sides in (deferring, finishing)
    )
    assert long.load_s == pytest.approx(20 / (1 + 0.03 / 0.2))
    assert short.load_s == pytest.approx(left_s / (2 * PAIRS_ROOM) - 1)


@pytest.mark.parametrize(
    ("left_s", "deferred_s", "expected_s"),
    [
        (2 * 5 * 22.0, 1.0, 20 / (1 + 0.03 * 21)),  # ten pairs would take more than the margin
        (2 * 5 * 41.0, 20.0, 20 / (1 + 0.03 * 2)),  # half of the time goes on what is left: nearly whole
        (2 * 8 * 22.0, 1.0, (17.6 - 1) * 20 / 21),  # ten pairs
        (2 * 10 * 23.0, 1.0, 20.0),  # ten pairs of the usual length
        (2 * 3 * 22.0, 1.0, (13.2 - 1) * 20 / 21),  # five pairs at least
    ],
)
def test_what_leaves_little_is_shortened_for_more_pairs_by_no_more_than_the_margin(
    left_s: float, deferred_s: float, expected_s: float
):
    sides = [side(600, deferred_s=deferred_s, load_s=20.0)]
    found = PairLoad.of(Span(), sides, left_s, study=study(), usual_s=20.0)
    assert found.load_s == pytest.approx(expected_s)


def test_loads_of_the_study_that_are_long_enough_stay():
    found = span_of(study(load_min="100 s"), Cyclic(), [side(30)], left_s=1e6)
    assert found.load_s == 0
    assert "undone" in found.note


@pytest.mark.parametrize("deferred_s", [0.0, 0.1])
def test_what_leaves_next_to_nothing_needs_no_longer_runs(deferred_s: float):
    assert span_of(study(), Cyclic(), [side(600, deferred_s)], left_s=1e6) == Span()


@pytest.mark.parametrize("told", [-1.0, math.nan, math.inf])
def test_a_system_that_tells_nonsense_changes_nothing_and_the_note_says_so(told: float):
    system = Cyclic()
    system.told = told
    found = span_of(study(), system, [side(30)], left_s=1e6)
    assert found.load_s == 0
    assert "the length of its cycles is not known: cycle_s: cycle_s() of the system returns" in found.note


def test_an_objective_without_a_rate_is_said_not_to_feel_it():
    found = span_of(study("minimize latency_ms_p99"), Cyclic(), [side(30)], left_s=1e6)
    assert "which the objective does not feel" in found.note


@pytest.mark.parametrize(
    ("left_s", "span_s", "expected_s"),
    [
        (1e6, 0.0, 20.0),  # there is room for the usual length
        (2 * PAIRS_ROOM * 11.0, 0.0, 10.0),  # a change takes 1 s
        (2 * PAIRS_ROOM * 11.0, 90.0, 90.0),  # three cycles
        (0.0, 0.0, 3.0),
    ],
)
def test_pairs_have_one_length_and_room_for_twenty(left_s: float, span_s: float, expected_s: float):
    sides = [side(30, deferred_s=0.0), side(600, deferred_s=0.0)]
    found = PairLoad.of(Span(span_s), sides, left_s, study=study(), usual_s=20.0)
    assert found.load_s == pytest.approx(expected_s)
    assert found.least_s == max(3.0, span_s)


@pytest.mark.parametrize(
    ("pairs", "expected_s"),
    [
        (PAIRS_LEAST, 3.0),  # a change takes 1 s; no shorter than the study says
        (1.2 * PAIRS_LEAST, 3.8),
        (PAIRS_ROOM, 4.0),
        (1.5 * PAIRS_ROOM, 5.0),
    ],
)
def test_loads_are_not_shorter_than_changes_are_worth(pairs: float, expected_s: float):
    """With 3 s of load a pair, more pairs than `PAIRS_LEAST` would be mostly changes."""
    sides = [side(30, deferred_s=0.0)]
    found = PairLoad.of(Span(), sides, 2 * pairs * 4.0, study=study(), usual_s=20.0)
    assert LOAD_LEAST == 4
    assert found.load_s == pytest.approx(expected_s)


def test_loads_whose_usual_length_nobody_knows_are_as_the_study_says():
    sides = [side(30, deferred_s=0.0)]
    for span_s in (0.0, 90.0):
        found = PairLoad.of(Span(span_s), sides, 100.0, study=study(), usual_s=0.0)
        assert found == PairLoad(span_s, max(3.0, span_s))


def test_a_study_that_wants_many_pairs_has_room_for_half_as_many_again():
    sides, left_s = [side(30, deferred_s=0.0)], 2 * 60 * 11.0
    chosen = study(runs_min=40)  # more than there should be room for anyway
    found = PairLoad.of(Span(), sides, left_s, study=chosen, usual_s=20.0)
    assert found.load_s == pytest.approx(10.0)


def test_what_a_stage_takes_beside_its_load_makes_no_load_longer_than_the_study_says():
    sides, chosen = [side(30, deferred_s=0.0)], study(load_min="20 s", load_max="20 s")
    found = PairLoad.of(Span(), sides, 1e6, study=chosen, usual_s=20.7)
    assert found.load_s == 20
