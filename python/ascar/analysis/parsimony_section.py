"""The report's part on as little as is needed: what each parameter brings, and what went back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.analysis.markup import Html, each, tag
from ascar.analysis.sections import table
from ascar.render import gain_kept, parameter_worth, percentage, reduction_step

if TYPE_CHECKING:
    from ascar.objective import Objective
    from ascar.results.outcome import Outcome


def parsimony_section(outcome: Outcome, objective: Objective) -> Html:
    """How the best configuration was reduced to what is needed; empty where that was not tried."""
    found, unit = outcome.parsimony, objective.unit
    if found is None:
        return Html("")
    kept = gain_kept(found)
    parts = [
        tag("h2", "As little as is needed"),
        tag("p", f"{found.note[:1].upper()}{found.note[1:]}{kept and f'; they keep {kept}'}."),
        tag(
            "p",
            "Each configuration below was run in turns with the best one that the search found. A parameter "
            f"goes back to its default where the loss is proven to be below {percentage(found.margin)} of "
            "the best; the intervals hold at all looks together.",
            class_="muted",
        ),
    ]
    if found.worth:
        rows = [[tag("code", one.name), parameter_worth(one, unit)] for one in found.worth]
        parts.append(
            table("Parameters that are kept, and what each of them brings", ["parameter", "loss"], rows)
        )
    if found.left_out:
        parts.append(tag("p", "Back to the default: ", tag("code", ", ".join(found.left_out)), "."))
    if found.steps:
        steps = [[", ".join(step.left_out), reduction_step(step, unit)] for step in found.steps]
        parts.append(table("What was tried", ["the best without", "result against the best"], steps))
    return each(*parts)
