"""Streams under kills of servers, proxies and control: the short form of `benchmarks.endurance`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def endurance(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import endurance

    return endurance


@pytest.mark.slow
def test_no_promise_is_broken_under_kills(endurance: Any, ascard: Path) -> None:
    del ascard
    endurance.PAUSE_S = 2.0
    found = endurance.endured(6, 40.0, 1)
    # How soon p99 is back is for a machine that does nothing else.
    assert [one for one in found["broken"] if "p99" not in one] == []
    assert sum(found["kills"].values()) >= 4
    counts = found["counts"]
    assert counts["writes"] > 300 and counts["reads"] > 100 and counts["flushes"] > 20
    assert counts["connections"] > 6


DONE = dict.fromkeys(("writes", "reads", "flushes"), 9)
KILLED = [(3.0, 3.5)]
CALM = [{"second": second, "latencies": {"52": 100}} for second in range(1, 10)]


def judged(endurance: Any, counts: dict[str, int], finished: bool = True) -> list[str]:
    end = {"counts": DONE | counts, "finished": finished}
    return endurance._judged(1, [[*CALM, end]], endurance.Course(disturbed=KILLED))["broken"]


def test_each_broken_promise_is_named(endurance: Any) -> None:
    assert judged(endurance, {}) == []
    assert judged(endurance, {"lost": 2, "twice": 1}) == ["lost: 2", "twice: 1"]
    assert judged(endurance, {}, finished=False) == [
        "1 of 1 streams did not finish with all their blocks read"
    ]
    assert endurance._judged(2, [[], []], endurance.Course())["broken"][0].startswith("2 of 2 streams")


def test_where_nothing_was_shown_nothing_held(endurance: Any) -> None:
    assert judged(endurance, {"flushes": 0}) == ["flushes: none, so nothing was shown"]
    end = {"counts": DONE, "finished": True}
    assert endurance._judged(1, [[end]], endurance.Course(disturbed=KILLED))["broken"] == [
        "p99: no second was undisturbed, so nothing tells when it is back"
    ]
    found = endurance._judged(1, [[*CALM, end]], endurance.Course())
    assert found["broken"] == ["kills: none, so nothing was shown"]


def test_memory_that_grows_and_latency_that_stays_are_named(endurance: Any) -> None:
    course = endurance.Course()
    course.memory_mib["proxy"] = [4.0, 4.1, 8.0, 12.0, 30.0, 31.0]
    course.disturbed = [(20.0, 21.0), (40.0, 41.0)]
    lines = [
        {"second": second, "latencies": {"52" if second < 41 or second > 60 else "80": 100}}
        for second in range(1, 70)
    ]
    end = {"counts": DONE, "finished": True}
    found = endurance._judged(1, [[*lines, end]], course)
    assert found["broken"] == [
        "p99 was not back within 5 s after 1 of 2 kills",
        "memory of proxy: 4.1 MiB at first, 31.0 MiB at the end",
    ]
    assert found["p99_ms_undisturbed"] == pytest.approx(8.192)
    assert found["p99_back_s"]["most"] > 15
