"""What `ascar capes status` shows, and `up` at its end."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ascar.capes.messages.folding import fold
from ascar.capes.messages.state import SessionState
from ascar.capes.session.proof import ComparedPhase, judge
from ascar.cli.capes.status_screen import screen
from ascar.cli.capes.up_result import proof_lines
from ascar.objective import Objective

HERE = {
    "event": "here",
    "objective": "maximize ops_per_s",
    "phase": "baseline",
    "knobs": [{"name": "depth", "minimum": 1, "maximum": 64}, {"name": "sched", "choices": ["none", "bfq"]}],
    "defaults": {"depth": 8, "sched": "none"},
    "parts": {"agent": {"state": "running", "pid": 7, "restarts": 2}},
}


def tick(number, value, depth=8):
    return {
        "tick": number,
        "nodes": {"client1": ["ab", [1.0]]},
        "missing": ["client2"],
        "metrics": {"ops_per_s": value},
        "setting": {"depth": depth, "sched": "none"},
        "mode": "automatic",
        "holding": "holding until tick 90: the mean was less",
    }


def shown(state):
    console = Console(file=io.StringIO(), width=120, force_terminal=False)
    console.print(screen(state))
    return console.file.getvalue()


def test_an_empty_state_is_shown():
    assert "no mode yet" in shown(SessionState("s"))


def test_everything_that_matters_is_there():
    state = fold(SessionState("s"), "session", HERE)
    for number in range(30):
        state = fold(state, "ticks", tick(number, 1000 + number % 3))
    for number in range(30, 95):
        state = fold(state, "ticks", tick(number, 1500, depth=32))
    refused = {
        "id": "a",
        "tick": 40,
        "verdict": "refused",
        "reason": "range: depth = 99",
        "set": {"depth": 99},
    }
    state = fold(state, "outcomes", refused)
    model = {"changes": 1, "expected": {"mean": 1480, "low": 1400, "high": None}}
    state = fold(
        state, "learner", {"algorithm": "classic", "epsilon": 0.25, "prediction_error": 0.125, **model}
    )
    state = fold(state, "events", {"event": "breach", "tick": 50, "metric": "ops_per_s"})
    text = shown(state)
    for words in (
        "s, automatic, baseline",
        "1,500",
        "1,001",
        "+49.9%",
        "classic",
        "epsilon 0.250",
        "prediction error 12.5%, 1 change ",
        "1,480, 1,400 to -",
        "* depth  32",
        "1 to 64",
        "none bfq",
        "holding until tick 90",
        "client1 (1), client2 (silent)",
        "agent running, begun anew 2 times",
        "range 1",
        "range: depth = 99",
        "breach metric ops_per_s",
    ):
        assert words in text, f"{words}\n{text}"


def test_what_others_say_is_neither_markup_nor_obeyed():
    state = fold(SessionState("s"), "events", {"event": "x[/red]\x1b[2J", "tick": 1, "why": "[bold]\n\r"})
    refused = {"tick": 1, "verdict": "refused", "reason": "a\x1b]0;title\x07 [/]", "id": "[link]"}
    text = shown(fold(state, "outcomes", refused))
    assert "\x1b" not in text
    assert "x[/red]?[2J" in text


@pytest.mark.parametrize(
    ("gain", "words"), [(0.3, "gain: +29.8%"), (-0.3, "loss: -29.8%"), (0, "nothing is claimed")]
)
def test_the_verdict_in_words(gain, words):
    phases = [
        ComparedPhase(
            at % 2 == 1, tuple(100 * (1 + gain * (at % 2)) + (at * number) % 3 for number in range(9))
        )
        for at in range(16)
    ]
    lines = proof_lines(judge(phases, Objective.parse("maximize x"), 0.05))
    assert words in lines[-1], lines
    assert "8 pairs of phases, 72 and 72 ticks" in lines[0]
    assert proof_lines(None) == []
