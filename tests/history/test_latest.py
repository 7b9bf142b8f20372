"""What a running trial has read, seen from outside."""

from __future__ import annotations

import pytest

from ascar.history import History
from ascar.history.latest import Latest
from ascar.loops.offline import tune
from ascar.study import Study


@pytest.fixture
def latest(tmp_path):
    return Latest(tmp_path, "mail")


def test_readings_of_one_trial_alone(latest, tmp_path):
    for second in range(3):
        latest.note(1, second / 2, 100.0 + second)
    other = Latest(tmp_path, "mail")
    assert other.read(1) == [(0.0, 100.0), (0.5, 101.0), (1.0, 102.0)]
    assert other.read(2) == []
    latest.note(2, 0.5, 7.0)
    assert (other.read(1), other.read(2)) == ([], [(0.5, 7.0)])
    latest.remove()
    assert other.read(2) == []
    latest.remove()


def test_what_makes_no_sense_is_left_out(latest, tmp_path):
    path = tmp_path / "mail.readings"
    path.write_bytes(
        b"1 0.5 10\n1 nan 3\n1 1\n\xff\xfe 1 2\n1 1.0 11 12\nx 1 2\n1 2.0 inf\n1 1.5 12\n1 2.0 1"
    )
    assert latest.read(1) == [(0.5, 10.0), (1.5, 12.0)]


def test_a_long_trial_fills_no_disk(latest, tmp_path):
    for second in range(11):
        latest.note(1, float(second), 1.0)
    latest._bytes = 1_000_000
    latest.note(1, 11.0, 1.0)
    assert len(latest.read(1)) == 11


def test_a_place_that_cannot_be_written_stops_nothing(tmp_path):
    Latest(tmp_path / "nowhere", "mail").note(1, 0.5, 1.0)


def test_a_search_notes_its_readings(path, clock):
    text = """
    [study]
    name = "noted"
    objective = "maximize throughput_ops_per_s"
    budget = "10 min"
    [target]
    kind = "simulated"
    metrics = { throughput_ops_per_s = "100 + depth" }
    noise_relative_sd = 0.05
    [space.parameters.depth]
    kind = "integer"
    low = 1
    high = 64
    default = 1
    cost = "dyn-kernel"
    [optimizer]
    kind = "random"
    [stop]
    trials = 2
    """
    seen = []
    with History(path, clock.moment()) as history, History(path, clock.moment()) as other:

        def listen(event):
            if event.kind == "reading":
                seen.append((event.data, other.run("noted").latest_readings(event.data["trial"])))

        tune(Study.parse(text), history, listener=listen)
        assert seen
        for data, readings in seen:
            assert readings[-1] == (data["second"], data["score"])
        assert other.run("noted").latest_readings(seen[-1][0]["trial"]) == []
