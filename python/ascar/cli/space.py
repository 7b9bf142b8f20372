"""`ascar space`: what can be tuned, what it costs to change, what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ascar.cli.options import Json, examples

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ascar.space import Space

__all__ = ["EXAMPLES", "space"]

EXAMPLES = examples(
    "ascar space storage-v5",
    "ascar space study.toml       what the study's pins, costs and guarantees leave of it",
    "ascar space study.toml --json | jq .valid_configurations",
)


def _presets(incomplete: str) -> list[str]:
    from ascar.space import presets

    return [name for name in presets() if name.startswith(incomplete)]


def space(
    named: Annotated[
        str,
        typer.Argument(
            metavar="PRESET|STUDY.toml", help="A preset's name, or a study file.", autocompletion=_presets
        ),
    ],
    json: Json = False,
) -> int:
    """Show a space: parameters, values, change costs, guarantees, constraints, valid configurations."""
    from ascar.cli.output import emit, people
    from ascar.cli.studies import find_space

    found = find_space(named)
    count = found.count()
    if json:
        emit("space", {**document(found), "valid_configurations": count})
    else:
        _print(people(), found, count)
    return 0


def document(found: Space) -> dict[str, Any]:
    """A space as its versioned JSON form, with what a reader would otherwise have to work out."""
    from ascar.outcome import json_ready

    return {**found.to_dict(), "default_configuration": json_ready(found.default())}


def _print(console: Console, found: Space, count: int | None) -> None:
    title = found.name or "space"
    number = "endlessly many" if count is None else f"{count:,}"
    console.print(f"{title}: {len(found)} parameters, {number} valid configurations", style="bold")
    console.print(_table(found))
    if found.constraints:
        console.print("constraints:")
        for constraint in found.constraints:
            console.print(f"  {constraint}", soft_wrap=True, markup=False)
    if found.allow_weaker is not None:
        allowed = ", ".join(found.allow_weaker) or "none"
        console.print(f"values that promise less than the default: {allowed}", soft_wrap=True, markup=False)
    console.print(
        "(* default, [] promises less than the default and is left out unless the study's allow_weaker names it)",
        markup=False,
    )


def _table(found: Space) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("parameter", "values", "when", "change cost", "weakens"):
        table.add_column(heading)
    for parameter in found.parameters:
        table.add_row(
            parameter.name,
            Text(_values(found, parameter.name)),
            "" if parameter.condition is None else Text(str(parameter.condition)),
            f"{parameter.cost.category} {parameter.cost.value}",
            Text(_weaker(found, parameter.name)),
        )
    return table


def _values(found: Space, name: str) -> str:
    """A parameter's values, the default and the left out ones marked."""
    from ascar.cli.text import value
    from ascar.space import Choices

    parameter, allowed = found[name], found.domain(name)
    if not isinstance(parameter.domain, Choices):
        return str(allowed)
    if name in found.pinned:
        return f"{value(found.pinned[name])} (pinned)"
    shown: list[str] = []
    for item in parameter.domain.values:
        text = value(item)
        if item == parameter.default and isinstance(item, bool) == isinstance(parameter.default, bool):
            text += "*"
        left_out = isinstance(allowed, Choices) and item not in allowed.values
        shown.append(f"[{text}]" if left_out else text)
    return " ".join(shown)


def _weaker(found: Space, name: str) -> str:
    return "; ".join(
        f"{label.relation.replace('==', '')}{label.value}: {', '.join(sorted(label.guarantees))}"
        for label in found[name].weaker
    )
