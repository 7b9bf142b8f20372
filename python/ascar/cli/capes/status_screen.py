"""A session's state on a screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ascar.render import compact, count, duration, percentage, plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from ascar.capes.messages.state import SessionState
    from ascar.results.session import ParameterState, Proof

_BARS, _BARS_MAX, _LISTED = "▁▂▃▄▅▆▇█", 60, 5


def screen(state: SessionState) -> RenderableType:
    """All of it, in a few tables."""
    from rich.console import Group

    parts: list[RenderableType] = [_facts(state), "", _knobs(state), "", _parts(state)]
    if state.refused:
        parts += ["", _refused(state)]
    if state.happened:
        parts += ["", _happened(state)]
    return Group(*parts)


def _facts(state: SessionState) -> Table:
    table = _grid()
    title = [state.session, state.mode or "no mode yet"]
    title += [state.phase] if state.phase else []
    title += [f"workload {state.workload}"] if state.workload else []
    left_s = None if state.until_s is None else state.until_s - time.time()
    title += [f"{duration(left_s)} left"] if left_s is not None and left_s > 0 else []
    table.add_row(*_cells("session", ", ".join(title)))
    table.add_row(*_cells("objective", state.objective or "-"))
    table.add_row(*_cells("now", f"{compact(state.now)}  {_bars([value for _, value in state.performance])}"))
    if state.baseline is not None:
        one = state.baseline
        gain = "" if state.gain is None else f"; last minute {state.gain.words} better, not tested"
        table.add_row(
            *_cells(
                "baseline",
                f"{compact(one.mean)}, {compact(one.low)} to {compact(one.high)} in 8 of 10 ticks{gain}",
            )
        )
    if state.proof is not None:
        table.add_row(*_cells("compared", _proof(state.proof)))
    learner = state.learner
    if learner is not None:
        words = [learner.algorithm or "?", learner.phase or "?"]
        if learner.epsilon is not None:
            words.append(f"epsilon {learner.epsilon:.3f}")
        if learner.prediction_error is not None:
            words.append(f"prediction error {percentage(learner.prediction_error, 1)}")
        words.append(count(learner.changes, "change"))
        table.add_row(*_cells("learner", ", ".join(words)))
        if learner.expected is not None:
            one = learner.expected
            table.add_row(
                *_cells("expected", f"{compact(one.mean)}, {compact(one.low)} to {compact(one.high)}")
            )
    if state.holding:
        table.add_row(*_cells("holding", state.holding))
    if not state.stored:
        table.add_row(*_cells("storage", "the last tick is not on disk"))
    return table


def _knobs(state: SessionState) -> Table:
    table = _table("knob", "now", "before", "range")
    for knob in state.knobs:
        mark = "*" if knob.is_changed else " "
        table.add_row(*_cells(f"{mark} {knob.key}", _shown(knob.value), _shown(knob.default), _range(knob)))
    return table


def _parts(state: SessionState) -> Table:
    table = _grid()
    nodes = [
        f"{one.name} ({one.indicators})" if one.is_here else f"{one.name} (silent)"
        for one in state.nodes
        if one.cut_off is None
    ]
    table.add_row(*_cells("nodes", ", ".join(nodes[:20]) or "-"))
    cut_off = [f"{one.name}: {one.cut_off}" for one in state.nodes if one.cut_off is not None]
    if cut_off:
        table.add_row(*_cells("cut off", "; ".join(cut_off[:5])))
    parts = [
        f"{one.name} {one.state}" + (f", begun anew {one.restarts} times" if one.restarts else "")
        for one in state.parts
    ]
    if parts:
        table.add_row(*_cells("parts", "; ".join(parts)))
    return table


def _refused(state: SessionState) -> Table:
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(state.refusals.items()))
    table = _table("tick", f"refused or failed ({counts})")
    for one in state.refused[:_LISTED]:
        table.add_row(*_cells(str(one.tick), one.reason))
    return table


def _happened(state: SessionState) -> Table:
    table = _table("tick", "event")
    for one in state.happened[:_LISTED]:
        detail = ", ".join(f"{key} {value}" for key, value in one.detail.items())
        table.add_row(*_cells("" if one.tick is None else str(one.tick), f"{one.event} {detail}"[:150]))
    return table


def _proof(proof: Proof) -> str:
    from ascar.capes.session.proof import words_of

    pairs, gain = count(proof.pairs, "pair"), words_of(proof)
    if gain is None:
        return f"{pairs} of phases, no interval yet"
    words = "nothing is claimed: " if proof.claim == "none" else ""
    return f"{words}{gain}, {pairs} of phases"


def _cells(*texts: str) -> list[Text]:
    """What others say, as it is: no markup, nothing that a terminal would obey."""
    from rich.text import Text

    return [Text("".join(sign if sign.isprintable() else "?" for sign in text)) for text in texts]


def _grid() -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _table(*names: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in _cells(*names):
        table.add_column(name)
    return table


def _bars(values: list[float]) -> str:
    shown = values[-_BARS_MAX:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    width = (high - low) or 1.0
    return "".join(_BARS[round((value - low) / width * (len(_BARS) - 1))] for value in shown)


def _range(knob: ParameterState) -> str:
    if knob.choices:
        return " ".join(str(one) for one in knob.choices)
    if knob.minimum is None or knob.maximum is None:
        return ""
    return f"{knob.minimum:g} to {knob.maximum:g}"


def _shown(value: object) -> str:
    return "-" if value is None else plain(value)
