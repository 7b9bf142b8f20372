"""Rules of a system at work that gain by what one client loses are not kept."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.pilot.turns import PairTest
from ascar.rules import Action, RuleSet
from ascar.sharp import objective_of
from ascar.sharp.client_shares import ClientShares, check_bounds
from ascar.sharp.live_comparison import kept_if_better
from ascar.sharp.matching import RuleWatcher, WatchOptions
from ascar.sharp.metric_bounds import bounds_of
from rules_at_work import RulesAtWork

BEFORE, AFTER = (RuleSet.uniform(Action(100, 0, tau_us)) for tau_us in (20_000, 0))
OBJECTIVE = objective_of("throughput")
NONE = ()


class AtWork(RulesAtWork):
    """Two clients; under the new rules they get what is said, from some interval on."""

    def __init__(self, kept, under, changes_at=0, then=None):
        super().__init__(kept)
        self.under, self.changes_at, self.then = under, changes_at, then or under
        self.intervals, self.random = 0, np.random.default_rng(1)

    def collect(self, rules, settle_s, measure_s):
        self.passes(rules, settle_s + measure_s)
        self.intervals += 1
        new = self.under if self.intervals < self.changes_at or not self.changes_at else self.then
        rates = new if rules == AFTER else (50.0, 50.0)
        return {f"client-{at}": [rate * self.random.normal(1, 0.02)] for at, rate in enumerate(rates)}

    def measure(self, rules, settle_s, measure_s):
        return {"throughput_mb_per_s": sum(map(sum, self.collect(rules, settle_s, measure_s).values()))}


class Chosen:
    """Chooses the same rules for everything."""

    def distance(self, one, other):
        return 0.0

    def choose(self, features, without):
        from ascar.sharp.matching.choice import Choice

        return None if "new" in without else Choice("new", AFTER, 0.2, 0.1, "a load", "a load", 0.0)


def test_better_rules_that_starve_a_client_are_not_kept():
    system = AtWork(BEFORE, (100.0, 30.0))
    after, found, broken = kept_if_better(system, OBJECTIVE, BEFORE, AFTER, bounds_of(None))
    assert after == BEFORE == system.kept
    assert found.improved
    assert broken.startswith("group_share_min >= 0.9 is not kept: a client gets 6")
    assert broken.endswith("of what it got before")
    after, _, broken = kept_if_better(AtWork(BEFORE, (100.0, 30.0)), OBJECTIVE, BEFORE, AFTER, NONE)
    assert (after, broken) == (AFTER, "")


def test_rules_from_which_all_gain_are_kept():
    after, _, broken = kept_if_better(AtWork(BEFORE, (60.0, 55.0)), OBJECTIVE, BEFORE, AFTER, bounds_of(None))
    assert (after, broken) == (AFTER, "")


def watched(system, **options):
    events = []
    pace = WatchOptions(observe_s=5.0, settle_s=2.0, measure_s=4.0, check_share=0.5)
    test = PairTest(level=0.05, pairs_max=8, pairs_min=4)
    RuleWatcher(system, Chosen(), OBJECTIVE, pace, test, listener=events.append, **options).run(600)
    return events


def test_a_watch_takes_back_rules_that_starve_a_client_and_says_so():
    system = AtWork(None, (100.0, 30.0))
    events = watched(system)
    assert system.kept is None
    (taken,) = [one for one in events if one.kind == "rolled-back"]
    assert "group_share_min >= 0.9 is not kept" in taken.reason
    kept = AtWork(None, (100.0, 30.0))
    watched(kept, bounds=NONE)
    assert kept.kept == AFTER


def test_a_watch_doubts_kept_rules_that_begin_to_starve_a_client():
    # The whole gets as much as before: only the checks of each client tell.
    system = AtWork(None, (65.0, 60.0), changes_at=30, then=(95.0, 30.0))
    events = watched(system)
    kinds = [one.kind for one in events]
    assert kinds.index("verified") < kinds.index("doubted")
    doubted = next(one for one in events if one.kind == "doubted")
    assert "group_share_min >= 0.9 is not kept" in doubted.reason
    assert system.kept is None


def test_few_intervals_show_nothing_and_other_bounds_are_told():
    shares = ClientShares(bounds_of(["jain_index >= 0.9"]))
    for at, jain in enumerate((0.5, 0.51, 0.49, 0.5, 0.52, 0.5)):
        assert at > 1 or not shares.broken()
        for side in ("reference", "candidate"):
            shares.take(side, {"a": [1.0]}, {"jain_index": jain})
    assert shares.broken().startswith("jain_index >= 0.9 is not kept: it is 0.5")


def test_a_bound_on_what_no_running_system_tells_is_refused():
    with pytest.raises(InputError, match="--constraint names 'latency_ms_p99'; a running system tells"):
        check_bounds(bounds_of(["latency_ms_p99 <= 5"]))
    check_bounds(bounds_of(["client_share_min >= 0.8", "stdev <= 5"]))
