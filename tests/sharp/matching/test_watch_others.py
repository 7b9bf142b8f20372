"""The daemon on a system that others change too, that pauses, or that rules bring to a standstill."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import NothingDone
from ascar.pilot.turns import PairTest
from ascar.sharp import Action, RuleSet, objective_of
from ascar.sharp.deployment import rules_id
from ascar.sharp.deployment.managed_system import OtherRules
from ascar.sharp.matching import Choice, FoundRules, RuleWatcher, WatchOptions
from rules_at_work import RulesAtWork

OBJECTIVE = objective_of("throughput")
GOOD, STANDING, OTHER = (RuleSet.uniform(Action(100, 0, tau)) for tau in (0, 60_000_000, 7))
WITHOUT, IDLE = 100.0, 0.0
PACE = WatchOptions(observe_s=5.0, settle_s=2.0, measure_s=4.0, look_s=5.0, check_share=0.05)


class AtWork(RulesAtWork):
    """Each rule set brings a rate; what happens at a time is told beforehand."""

    def __init__(self, kept, rates, happens=()):
        super().__init__(kept)
        self.rates, self.happens = dict(rates), dict(happens)
        self.random, self.on_trial_by_others = np.random.default_rng(1), 0
        self.looked_again = 0

    def _time(self):
        for at_s in [one for one in self.happens if one <= self.time_s]:
            self.happens.pop(at_s)(self)

    def in_force(self):
        if self.on_trial_by_others:
            raise OtherRules("controllers have rules on trial; wait until the trial ends")
        return super().in_force()

    def look_again(self):
        self.looked_again += 1
        self.trial = None
        self.time_s += 1.0
        self.on_trial_by_others = max(0, self.on_trial_by_others - 1)

    def collect(self, rules, settle_s, measure_s):
        self.time_s += settle_s + measure_s
        self._time()
        if (self.trial or self.kept) != rules:
            raise OtherRules("client-1: follows other rules than those deployed")
        rate = self.rates[rules]
        return {"client-1": [rate * self.random.normal(1, 0.01)] if rate else [0.0]}

    def measure(self, rules, settle_s, measure_s):
        return {"throughput_mb_per_s": sum(map(sum, self.collect(rules, settle_s, measure_s).values()))}

    def observe(self, seconds):
        self._time()
        if not self.rates[self.kept]:
            self.time_s += seconds
            raise NothingDone("the clients did nothing; observe them for longer")
        return super().observe(seconds)


class Chosen:
    """Knows one rule set."""

    def distance(self, one, other):
        return 0.0

    def choose(self, features, without):
        name = rules_id(GOOD)
        return None if name in without else Choice(name, GOOD, 0.2, 0.1, "a load", "a load", 0.0)


def watched(system, until_s):
    events = []
    test = PairTest(level=0.05, pairs_max=8, pairs_min=4)
    RuleWatcher(system, Chosen(), OBJECTIVE, PACE, test, listener=events.append).run(until_s)
    return events


def of_kind(events, kind):
    return [one for one in events if one.kind == kind]


def test_rules_that_are_in_force_have_to_show_their_gain_and_stay():
    system = AtWork(GOOD, {None: WITHOUT, GOOD: 120.0})
    events = watched(system, 200.0)
    kinds = [one.kind for one in events]
    assert kinds[:2] == ["doubted", "deployed"] and "verified" in kinds
    assert events[0].choice == FoundRules(rules_id(GOOD), GOOD)
    assert not {"rolled-back", "replaced", "none"} & set(kinds)
    assert system.kept == GOOD


def test_rules_in_force_that_let_nothing_pass_are_taken_back_after_one_interval():
    system = AtWork(STANDING, {None: WITHOUT, STANDING: 0.02, GOOD: 120.0})
    events = watched(system, 300.0)
    taken = of_kind(events, "rolled-back")[0]
    assert taken.choice.rules == rules_id(STANDING)
    assert taken.at_s <= 3 * PACE.settle_s + 2 * PACE.measure_s, "two intervals, and what settles"
    assert taken.reason.startswith("the throughput is 0.02") and taken.reason.endswith("or more without")
    assert system.kept == GOOD, "others are looked for"


def test_kept_rules_that_bring_all_to_a_standstill_are_taken_off_within_a_minute():
    def stands(system):
        system.rates[GOOD] = 0.0

    system = AtWork(None, {None: WITHOUT, GOOD: 120.0}, {203.0: stands})
    events = watched(system, 500.0)
    (doubted,) = of_kind(events, "doubted")
    assert 203.0 < doubted.at_s < 263.0
    assert doubted.reason.startswith("nothing moves under these rules, and ")
    assert of_kind(events, "rolled-back")[0].choice.rules == rules_id(GOOD)
    assert system.kept is None


def test_clients_that_pause_are_no_reason_to_doubt_rules_nor_to_end():
    def pauses(system):
        system.rates = dict.fromkeys(system.rates, IDLE)

    def goes_on(system):
        system.rates = {None: WITHOUT, GOOD: 120.0}

    system = AtWork(None, {None: WITHOUT, GOOD: 120.0}, {203.0: pauses, 600.0: goes_on})
    events = watched(system, 900.0)
    assert of_kind(events, "idle") and not of_kind(events, "doubted")
    assert len(of_kind(events, "verified")) == 1
    assert system.kept == GOOD


def test_rules_that_are_doubted_are_not_taken_back_because_the_clients_pause():
    def pauses(system):
        system.rates = dict.fromkeys(system.rates, IDLE)

    def goes_on(system):
        system.rates = {None: WITHOUT, OTHER: 120.0}

    system = AtWork(OTHER, {None: WITHOUT, OTHER: 120.0}, {20.0: pauses, 300.0: goes_on})
    events = watched(system, 600.0)
    kinds = [one.kind for one in events if one.kind != "compared"]
    assert kinds[:2] == ["doubted", "deployed"] and kinds[2] == "idle"
    assert "rolled-back" not in kinds
    verified = of_kind(events, "verified")[0]
    assert verified.choice == FoundRules(rules_id(OTHER), OTHER) and verified.at_s > 300.0
    assert system.kept == OTHER


@pytest.mark.parametrize("at_s", [3.0, 20.0, 30.0])
def test_an_interruption_puts_back_what_was_in_force_before(at_s):
    def interrupts(_):
        raise KeyboardInterrupt

    system = AtWork(OTHER, {None: WITHOUT, OTHER: 120.0}, {at_s: interrupts})
    with pytest.raises(KeyboardInterrupt):
        watched(system, 600.0)
    assert (system.kept, system.trial) == (OTHER, None)


def test_rules_that_could_not_be_verified_are_put_back_at_the_end():
    def pauses(system):
        system.rates = dict.fromkeys(system.rates, IDLE)

    system = AtWork(OTHER, {None: WITHOUT, OTHER: 120.0}, {20.0: pauses})
    events = watched(system, 300.0)
    assert events[-1].kind == "idle"
    assert (system.kept, system.trial) == (OTHER, None)


def test_a_pause_in_a_check_takes_no_rules_off():
    def pauses(system):
        system.rates = dict.fromkeys(system.rates, IDLE)
        system.happens[system.time_s + 40.0] = goes_on

    def goes_on(system):
        system.rates = {None: WITHOUT, GOOD: 120.0}
        if system.time_s < 1_000.0:
            system.happens[system.time_s + 33.0] = pauses

    system = AtWork(None, {None: WITHOUT, GOOD: 120.0}, {203.0: pauses})
    events = watched(system, 2_000.0)
    assert len(of_kind(events, "idle")) > 5
    assert not of_kind(events, "rolled-back")
    assert system.kept == GOOD


def test_clients_that_begin_late_are_waited_for():
    def begins(system):
        system.rates = {None: WITHOUT, GOOD: 120.0}

    system = AtWork(None, {None: IDLE, GOOD: IDLE}, {100.0: begins})
    events = watched(system, 300.0)
    assert events[0].kind == "idle"
    assert system.kept == GOOD


def test_what_others_put_in_force_meanwhile_is_verified_as_well():
    def deploys(system):
        system.kept, system.trial = OTHER, None

    system = AtWork(None, {None: WITHOUT, GOOD: 120.0, OTHER: 50.0}, {203.0: deploys})
    events = watched(system, 500.0)
    (replaced,) = of_kind(events, "replaced")
    assert replaced.reason == "client-1: follows other rules than those deployed"
    after = [one for one in events if one.at_s >= replaced.at_s]
    assert after[1].kind == "doubted" and after[1].choice == FoundRules(rules_id(OTHER), OTHER)
    assert of_kind(after, "rolled-back")[0].choice.rules == rules_id(OTHER)
    assert of_kind(after, "verified") and system.kept == GOOD


def test_rules_that_others_put_in_force_during_a_check_are_not_overwritten():
    def deploys(system):
        if system.kept is None and system.trial is None and system.time_s > 200.0:
            system.kept = OTHER
        else:
            system.happens[system.time_s + 0.1] = deploys

    system = AtWork(None, {None: WITHOUT, GOOD: 120.0, OTHER: 130.0}, {203.0: deploys})
    events = watched(system, 900.0)
    (replaced,) = of_kind(events, "replaced")
    after = [one for one in events if one.at_s >= replaced.at_s]
    assert of_kind(after, "verified")[0].choice == FoundRules(rules_id(OTHER), OTHER)
    assert system.kept == OTHER


def test_a_trial_of_others_is_waited_for_and_told_once():
    system = AtWork(GOOD, {None: WITHOUT, GOOD: 120.0})
    system.on_trial_by_others = 30
    events = watched(system, 200.0)
    assert [one.kind for one in events[:2]] == ["replaced", "doubted"]
    assert system.looked_again == 30
    assert system.kept == GOOD
