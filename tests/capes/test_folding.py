"""A session's messages folded into its state."""

from __future__ import annotations

import json

import pytest

from ascar.capes.messages.folding import SUBJECTS, fold
from ascar.capes.messages.state import SessionState
from ascar.results.encode import json_ready
from ascar.results.session import Proof

PROOF = Proof(
    pairs=3,
    baseline_mean=100.0,
    tuned_mean=110.0,
    baseline_ticks=30,
    tuned_ticks=30,
    baseline_samples=30,
    tuned_samples=30,
    gain=0.1,
    gain_low=0.05,
    gain_high=0.2,
    difference=10.0,
    difference_low=5.0,
    difference_high=20.0,
    confidence=0.95,
    p_value=0.01,
    claim="gain",
    method="pairs",
)

HERE = {
    "version": 1,
    "event": "here",
    "objective": "maximize ops_per_s",
    "interval_s": 0.5,
    "phase": "learning",
    "until_s": None,
    "knobs": [{"name": "depth", "minimum": 1, "maximum": 64, "choices": []}],
    "defaults": {"depth": 8},
    "parts": {"agent": {"state": "running", "pid": 7, "restarts": 1}},
    "proof": json_ready(PROOF),
}


def tick(number, value=100.0, depth=8, **keys):
    return {
        "version": 1,
        "tick": number,
        "part": 0,
        "parts": 1,
        "stored": True,
        "layouts": {"ab": ["x"]},
        "nodes": {"n": ["ab", [1.0]]},
        "missing": [],
        "metrics": {"ops_per_s": value},
        "setting": {"depth": depth},
        "mode": "automatic",
        "holding": None,
        "workload": None,
        **keys,
    }


def told(*messages):
    state = SessionState("s")
    for what, document in messages:
        state = fold(state, what, document)
    json.dumps(json_ready(state.result()), allow_nan=False)
    return state


def test_what_is_known_before_and_after_who_runs_it_has_spoken():
    first = told(("ticks", tick(1)))
    assert (first.tick, first.now, first.knobs[0].value, first.knobs[0].default) == (1, None, 8, None)
    state = told(("ticks", tick(1)), ("session", HERE), ("ticks", tick(2)))
    assert state.now == 100
    assert state.interval_s == 0.5
    (knob,) = state.knobs
    assert (knob.default, knob.minimum, knob.maximum, knob.is_changed) == (8, 1, 64, False)
    assert (state.parts[0].name, state.parts[0].restarts) == ("agent", 1)
    assert state.proof.claim == "gain"


def test_the_baseline_is_what_was_before_anything_was_turned():
    messages = [("session", HERE)]
    messages += [("ticks", tick(at, 100 + at % 2)) for at in range(10)]
    messages += [("ticks", tick(at, 200, depth=16)) for at in range(10, 70)]
    state = told(*messages)
    assert state.knobs[0].is_changed
    assert state.baseline.mean == pytest.approx(100.5, abs=0.2)
    assert 100 <= state.baseline.low <= state.baseline.high <= 101
    assert state.gain.gain_relative == pytest.approx(1, abs=0.01)
    # Back at the default, what has not settled does not count.
    again = told(*messages, *(("ticks", tick(at, 900)) for at in range(70, 74)))
    assert again.baseline == state.baseline
    assert told(*messages, *(("ticks", tick(at, 900)) for at in range(70, 90))).baseline.mean > 300


@pytest.mark.parametrize(
    ("objective", "before", "after", "relative", "words"),
    [
        ("maximize ops_per_s", 100, 130, 0.3, "+30.0%"),
        ("minimize ops_per_s", 100, 70, 0.3, "+30.0%"),
        ("minimize ops_per_s", 100, 130, -0.3, "-30.0%"),
        ("maximize -ops_per_s", 100, 70, None, "+30"),  # -100 before, -70 after: less than 0, and better
        ("maximize -ops_per_s", 100, 130, None, "-30"),
        ("minimize -ops_per_s", 100, 130, None, "+30"),
        ("maximize ops_per_s - 50", 50, 130, None, "+80"),  # from zero
    ],
)
def test_the_gain_of_the_last_minute_is_above_zero_where_it_is_better(
    objective, before, after, relative, words
):
    messages = [("session", {**HERE, "objective": objective})]
    messages += [("ticks", tick(at, before)) for at in range(10)]
    messages += [("ticks", tick(at, after, depth=16)) for at in range(10, 70)]
    state = told(*messages)
    assert state.gain.words == words
    assert state.gain.interval is None
    assert state.result().gain == (None if relative is None else pytest.approx(relative))


def test_nodes_that_are_silent_and_parts_of_one_tick():
    state = told(
        ("ticks", tick(5, nodes={"a": ["ab", [1.0, 2.0]]}, missing=["c"])),
        ("ticks", tick(5, nodes={"b": ["ab", [1.0]]}, missing=["c"], part=1)),
    )
    nodes = {one.name: (one.is_here, one.indicators) for one in state.nodes}
    assert nodes == {"a": (True, 2), "b": (True, 1), "c": (False, 0)}
    state = fold(state, "ticks", tick(6, nodes={"a": ["ab", [1.0]]}, missing=["b", "c"]))
    assert {one.name: one.seen_tick for one in state.nodes} == {"a": 6, "b": 5, "c": None}
    assert fold(state, "ticks", tick(4)) is state


def test_refusals_are_counted_by_kind_with_the_newest_first():
    def outcome(number, verdict, reason):
        return (
            "outcomes",
            {
                "version": 1,
                "id": f"a-{number}",
                "tick": number,
                "verdict": verdict,
                "reason": reason,
                "set": {"depth": 9},
            },
        )

    state = told(
        outcome(1, "accepted", None),
        outcome(1, "applied", None),
        outcome(2, "refused", "range: depth = 99"),
        outcome(3, "failed", "node n: no answer"),
        *(outcome(at, "refused", "busy: a-3 is on its way") for at in range(4, 104)),
    )
    assert state.verdicts == {"accepted": 1, "applied": 1, "refused": 101, "failed": 1}
    assert state.refusals == {"range": 1, "node": 1, "busy": 100}
    assert len(state.refused) == 50
    assert (state.refused[0].tick, state.refused[0].wanted) == (103, {"depth": 9})


def test_the_learner_and_events():
    state = told(
        (
            "learner",
            {
                "version": 1,
                "tick": 4,
                "algorithm": "classic",
                "phase": "acting",
                "epsilon": 0.3,
                "prediction_error": 0.1,
                "objective": "minimize latency_ms",
                "expected": {"mean": 5.0, "low": None, "high": 6},
                "wanted": {"depth": 3},
                "changes": 2,
                "refused": 1,
            },
        ),
        ("events", {"event": "breach", "tick": 9, "metric": "ops_per_s", "mean": 3, "minimum": 4}),
    )
    assert (state.learner.epsilon, state.learner.expected.high, state.learner.wanted) == (
        0.3,
        6,
        {"depth": 3},
    )
    assert state.lower_is_better
    # Sessions of several nodes have nobody else who tells where the knobs stood before.
    before = {"tick": 5, "objective": "maximize ops_per_s", "before": {"depth": 8, "other": 1}}
    alone = told(("ticks", tick(5)), ("learner", before), *(("ticks", tick(at)) for at in range(6, 20)))
    assert [(one.key, one.default, one.is_changed) for one in alone.knobs] == [("depth", 8, False)]
    assert alone.baseline.mean == 100
    known = told(("ticks", tick(1)), ("session", HERE), ("learner", {"before": {"depth": 9}}))
    assert known.knobs[0].default == 8
    assert (state.happened[0].event, state.happened[0].tick) == ("breach", 9)
    assert state.happened[0].detail["minimum"] == 4


HOSTILE = [None, [], "x" * 10_000, -1, 1e400, float("nan"), 10**400, True, {"a": {}}, [[1]], {"x": [None]}]


@pytest.mark.parametrize("what", [*SUBJECTS, "unknown"])
def test_whatever_a_message_holds_a_state_comes_of_it(what):
    start = told(("session", HERE), ("ticks", tick(1)))
    whole = {**HERE, **tick(2), "event": "here", "verdict": "refused", "reason": "x", "id": "y", "set": {}}
    for key in whole:
        for value in HOSTILE:
            for document in ({**whole, key: value}, {key: value}):
                state = fold(start, what, document)
                json.dumps(json_ready(state.result()), allow_nan=False)
    assert fold(start, what, {**tick(3), "version": 2}) is start


def test_what_a_hostile_sender_can_make_us_keep_is_bounded():
    state = SessionState("s")
    for at in range(25):
        names = {f"{at}-{number}": ["ab", [1.0]] for number in range(1000)}
        state = fold(state, "ticks", tick(at, nodes=names, setting={f"{at}-{n}": 1 for n in range(200)}))
    assert len(state.nodes) <= 20_000
    assert len(state.knobs) <= 1000
