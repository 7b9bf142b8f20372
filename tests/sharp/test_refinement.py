"""Refinement: gains that are there are found and shown, none is claimed, what is worse is put back."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from ascar.errors import InputError, MessagingError, WorkError
from ascar.sharp import Action, RuleSet, objective_of
from ascar.sharp.hill import Bounds
from ascar.sharp.refinement import Course, Refiner, Step
from ascar.sharp.running import SimulatedRunning
from ascar.simulation import preset

START = RuleSet.uniform(Action(100, 0, 20_000))
QUICK = Course(settle_s=0, measure_s=1, steps_max=400, tries=12, restarts=1)


@dataclass
class Hills:
    """A system whose throughput is a formula of the action in force, with noise."""

    peaks: tuple[tuple[Action, float], ...]
    noise: float = 0.01
    kept: RuleSet | None = START
    trial: RuleSet | None = None
    log: list[str] = field(default_factory=list)
    random: Random = field(default_factory=lambda: Random(7))
    lost_after: int | None = None

    def in_force(self) -> RuleSet | None:
        return self.kept

    def try_out(self, rules: RuleSet) -> None:
        self.log.append("try")
        self.trial = rules

    def back(self) -> None:
        self.log.append("back")
        self.trial = None

    def keep(self) -> None:
        assert self.trial is not None
        self.log.append("keep")
        self.kept, self.trial = self.trial, None

    def measure(self, rules: RuleSet | None, settle_s: float, measure_s: float) -> dict[str, float]:
        assert rules == (self.kept if self.trial is None else self.trial)
        if self.lost_after is not None:
            self.lost_after -= 1
            if self.lost_after < 0:
                raise MessagingError("c1: silent for 15 s")
        assert rules is not None
        return {"throughput_mb_per_s": self.height(rules.rules[0].action) * self.random.gauss(1, self.noise)}

    def height(self, action: Action) -> float:
        def far(peak: Action) -> float:
            return (
                ((action.m100 - peak.m100) / 60) ** 2
                + ((action.b100 - peak.b100) / 100) ** 2
                + ((action.tau_us - peak.tau_us) / 20_000) ** 2
            )

        return max(height / (1 + far(peak)) for peak, height in self.peaks)


def test_a_hill_is_climbed_and_the_gain_is_shown() -> None:
    system = Hills(((Action(70, 120, 5_000), 300.0),))
    found = Refiner(system, objective_of("throughput"), course=QUICK).refine(START, 0)
    assert found.verification is not None and found.verification.kind == "verified"
    assert found.verification.gain_low is not None and found.verification.gain_low > 0
    assert system.height(found.rules.rules[0].action) > 2 * system.height(START.rules[0].action)
    assert system.kept == found.rules and system.trial is None


def test_on_a_plain_nothing_is_claimed() -> None:
    """Level 0.05 a step makes a few accept what is equal; the last comparison does not."""
    claims = 0
    for seed in range(10):
        system = Hills(((Action(100, 0, 20_000), 100.0),), random=Random(seed))
        system.height = lambda _: 100.0  # type: ignore[method-assign]
        course = Course(settle_s=0, measure_s=1, steps_max=30, restarts=0, seed=seed)
        found = Refiner(system, objective_of("throughput"), course=course).refine(START, 0)
        claims += found.rules != START
        assert system.kept is not None and system.kept.bare() == found.rules
        assert system.trial is None
    assert claims <= 1


def test_a_restart_finds_the_higher_of_two_hills() -> None:
    peaks = ((Action(100, 0, 20_000), 100.0), (Action(170, -180, 60_000), 400.0))
    course = Course(settle_s=0, measure_s=1, steps_max=2_000, restarts=12, loss_max=0.9)
    system = Hills(peaks)
    found = Refiner(system, objective_of("throughput"), course=course).refine(START, 0)
    assert system.height(found.rules.rules[0].action) > 150
    assert found.verification is not None and found.verification.kind == "verified"
    assert any(step.restart for step in found.steps)


def test_a_great_loss_ends_a_step_at_once() -> None:
    system = Hills(((Action(100, 0, 20_000), 100.0),), noise=0.0)
    heights = {START.rules[0].action: 100.0}
    system.height = lambda action: heights.get(action, 10.0)  # type: ignore[method-assign]
    found = Refiner(system, objective_of("throughput"), course=QUICK).refine(START, 0)
    assert {step.kind for step in found.steps} == {"loss"}
    assert {step.pairs for step in found.steps} == {1}
    assert found.rules == START and found.verification is None


def test_bounds_are_kept() -> None:
    bounds = Bounds(m100=(90, 110), b100=(0, 0), tau_us=(15_000, 25_000))
    seen: list[Step] = []
    system = Hills(((Action(30, 200, 0), 500.0),))
    Refiner(system, objective_of("throughput"), bounds, QUICK, listener=seen.append).refine(START, 0)
    assert seen
    assert all(bounds.hold(step.new) for step in seen)
    with pytest.raises(InputError, match="outside of the bounds"):
        Refiner(system, objective_of("throughput"), Bounds(m100=(30, 40))).refine(START, 0)
    with pytest.raises(InputError, match="rule 2: there are rules 1 to 1"):
        Refiner(system, objective_of("throughput")).refine(START, 1)


def test_a_rule_that_sets_the_window_is_refined() -> None:
    """What most searches end with, m = 0 and b a window, lies outside of table 3.2."""
    start = RuleSet.uniform(Action(0, 800, 0))
    system = Hills(((Action(0, 300, 0), 300.0),), kept=start)
    seen: list[Step] = []
    refiner = Refiner(system, objective_of("throughput"), course=QUICK, listener=seen.append)
    found = refiner.refine(start, 0)
    assert found.verification is not None and found.verification.kind == "verified"
    assert abs(found.rules.rules[0].action.b100 - 300) < 100
    assert all(Bounds.around(start.rules[0].action).hold(one.new) for one in seen)


def test_what_is_to_be_small_is_made_small() -> None:
    system = Hills(((Action(70, 120, 5_000), 300.0),))
    slow = system.height
    system.height = lambda action: 1_000 / slow(action)  # type: ignore[method-assign]
    goal = objective_of("minimize throughput_mb_per_s")
    found = Refiner(system, goal, course=QUICK).refine(START, 0)
    assert found.verification is not None and found.verification.kind == "verified"
    assert found.verification.gain_relative is not None and found.verification.gain_relative > 0
    assert system.height(found.rules.rules[0].action) < system.height(START.rules[0].action)


@pytest.mark.parametrize("lost_after", [0, 5, 60])
def test_a_lost_system_is_told_and_has_its_first_rules(lost_after: int) -> None:
    system = Hills(((Action(70, 120, 5_000), 300.0),), lost_after=lost_after)
    with pytest.raises(WorkError, match="silent for 15 s"):
        Refiner(system, objective_of("throughput"), course=QUICK).refine(START, 0)
    assert system.kept == START and system.trial is None


def test_an_interruption_puts_the_first_rules_back() -> None:
    system = Hills(((Action(70, 120, 5_000), 300.0),))
    kept = 0

    def listener(step: Step) -> None:
        nonlocal kept
        kept += step.kind == "better"
        if kept == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Refiner(system, objective_of("throughput"), course=QUICK, listener=listener).refine(START, 0)
    assert system.kept == START and system.trial is None
    assert "keep" in system.log


def test_it_ends_in_time() -> None:
    system = Hills(((Action(70, 120, 5_000), 300.0),))
    asked = iter([False, False, True, True, True])
    refiner = Refiner(system, objective_of("throughput"), course=QUICK, over=lambda: next(asked))
    assert refiner.refine(START, 0).stopped == "time"


def test_a_gain_on_the_simulated_cluster() -> None:
    """Random writes past the cache: fewer requests in flight leave the disks less to jump."""
    running = SimulatedRunning(preset("random-write"), START)
    course = Course(restarts=0, seed=2)
    found = Refiner(running, objective_of("throughput"), course=course).refine(START, 0)
    assert found.verification is not None and found.verification.kind == "verified"
    assert found.verification.gain_relative is not None and found.verification.gain_relative > 0.05
    assert running.in_force() == found.rules


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pairs_max": 1}, "pairs_max = 1"),
        ({"level": 1.0}, "level = 1.0"),
        ({"measure_s": 0.0}, "measure_s = 0.0"),
        ({"steps_max": 0}, "steps_max = 0"),
        ({"verification_pairs": 4}, "verification_pairs = 4: must be from 8"),
    ],
)
def test_refused_courses(changes: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Course(**changes)
