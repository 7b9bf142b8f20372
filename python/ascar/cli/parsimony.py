"""As little as is needed, for people: what each parameter brings, and what went back to the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.render import count, duration, gain_kept, parameter_worth, reduction_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from ascar.objective import Objective
    from ascar.results.outcome import Outcome
    from ascar.results.parsimony import Parsimony

_NAMES_SHOWN = 8


def print_parsimony(console: Console, outcome: Outcome, objective: Objective) -> None:
    """Print how the best configuration was reduced; nothing where that was not tried."""
    if outcome.parsimony is None:
        return
    console.print()
    for line in _lines(outcome.parsimony, objective.unit):
        console.print(line, soft_wrap=True, markup=False)


def _lines(found: Parsimony, unit: str) -> Iterator[str]:
    cost = f"{count(found.pairs, 'pair')}, {duration(found.seconds)}"
    yield f"as little as is needed: {found.note} ({cost})"
    if kept := gain_kept(found):
        yield f"  keeps {kept}"
    for worth in found.worth:
        yield f"  {worth.name}: {parameter_worth(worth, unit)}"
    if found.left_out:
        yield f"  back to the default: {_names(found.left_out)}"
    for step in found.steps:
        yield f"  the best without {_names(step.left_out)}: {reduction_step(step, unit)}"


def _names(names: tuple[str, ...]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
