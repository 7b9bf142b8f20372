"""`ascar space`: what can be tuned, what it costs to change, what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import Json, Match

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.table import Table

    from ascar.catalogues import KernelSetting
    from ascar.space import Space

EXAMPLES = examples(
    "ascar space storage-v5",
    "ascar space study.toml       what the study's pins, costs and guarantees leave of it",
    "ascar space study.toml --json | jq .valid_configurations",
    "ascar space linux --match dirty",
)


def _named(incomplete: str) -> list[str]:
    from ascar.extension import kinds
    from ascar.space import PRESETS

    return [name for name in (*PRESETS, *kinds("ascar.systems")) if name.startswith(incomplete)]


def space(
    named: Annotated[
        str,
        typer.Argument(
            metavar="TARGET|PRESET|STUDY.toml",
            help="A kind of target, a preset, a study file, or `linux`: the kernel's settings.",
            autocompletion=_named,
        ),
    ],
    match: Match = None,
    json: Json = False,
) -> int:
    """Show a space: parameters, values, change costs, guarantees, constraints, valid configurations.

    Of a study it shows what the study leaves of its target's space; of a preset everything, also the values
    that promise less than the default, which a study uses only if it allows them by name. `linux` shows every
    setting of the kernel that the keeper may change, for a study of online tuning.
    """
    from ascar.cli.output import emit, people
    from ascar.cli.studies import find_space, is_study_file, offered_settings
    from ascar.results.tuning import SpaceResult
    from ascar.space import space_to_document

    settings = offered_settings(named)
    if settings:
        return _show_settings(named, settings, match, json=json)

    found = find_space(named)
    count = found.count()
    if json:
        document = space_to_document(found)
        document["parameters"] = [one for one in document["parameters"] if _has(match, *one.values())]
        result = SpaceResult(
            **document,
            default_configuration=found.default(),
            valid_configurations=count,
            valid_configurations_without_weaker=found.permit_weaker([]).count(),
        )
        emit("space", result)
    else:
        _print(people(), found, count, match, everything=not is_study_file(named))
    return 0


def _has(match: str | None, *texts: object) -> bool:
    """Whether one of the texts has what is looked for."""
    return match is None or any(match.lower() in str(text).lower() for text in texts)


def _show_settings(named: str, offered: Iterable[KernelSetting], match: str | None, *, json: bool) -> int:
    """Show what the `[target]` table of a kind may name."""
    from rich.table import Table
    from rich.text import Text

    from ascar.cli.output import emit, people
    from ascar.results.tuning import CatalogueResult, CatalogueSetting

    settings = tuple(
        CatalogueSetting(
            name=one.name,
            path=one.path,
            values=one.values,
            unit=one.unit,
            cost=one.cost.value,
            weaker=one.weaker,
            what=one.what,
        )
        for one in offered
        if _has(match, one.name, one.what)
    )
    if json:
        emit("catalogue", CatalogueResult(name=named, settings=settings))
        return 0
    table = Table(box=None, pad_edge=False)
    for heading in ("setting", "values", "unit", "weakens", "what it does"):
        table.add_column(heading, overflow="fold")
    for one in settings:
        weaker = "; ".join(f"{relation}: {guarantee}" for relation, guarantee in one.weaker.items())
        table.add_row(*(Text(text) for text in (one.name, one.values, one.unit, weaker, one.what)))
    people().print(table)
    return 0


def _print(console: Console, found: Space, count: int | None, match: str | None, *, everything: bool) -> None:
    number = "endlessly many" if count is None else f"{count:,}"
    title = f"{found.name or 'space'}: {len(found)} parameters, {number} valid configurations"
    console.print(title, style="bold", soft_wrap=True)
    console.print(_table(found, match))
    if found.constraints:
        console.print("constraints:")
        for constraint in found.constraints:
            console.print(f"  {constraint}", soft_wrap=True, markup=False)
    if everything:
        console.print("* default")
    else:
        allowed = ", ".join(found.allow_weaker) or "none"
        console.print(
            f"* default; weaker values that the study allows: {allowed}", soft_wrap=True, markup=False
        )
        console.print(
            "[...] promises less than the default: name it in space.allow_weaker to use it", markup=False
        )


def _table(found: Space, match: str | None) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("parameter", "values", "when", "change cost", "weakens", "the system's name"):
        table.add_column(heading)
    for parameter in found.parameters:
        if not _has(match, parameter.name, parameter.native, parameter.description):
            continue
        table.add_row(
            parameter.name,
            Text(_values(found, parameter.name)),
            "" if parameter.condition is None else Text(str(parameter.condition)),
            f"{parameter.cost.category} {parameter.cost.value}",
            Text(_weaker(found, parameter.name)),
            Text(parameter.native),
        )
    return table


def _values(found: Space, name: str) -> str:
    """A parameter's values, the default and the left out ones marked."""
    from ascar.render import plain
    from ascar.space import Choices

    parameter, allowed = found[name], found.domain(name)
    if name in found.pinned:
        return f"{plain(found.pinned[name])} (pinned)"
    if not isinstance(parameter.domain, Choices):
        return f"{allowed}, default {plain(parameter.default)}"
    shown: list[str] = []
    for item in parameter.domain.values:
        text = plain(item)
        if item == parameter.default and isinstance(item, bool) == isinstance(parameter.default, bool):
            text += "*"
        left_out = isinstance(allowed, Choices) and item not in allowed.values
        shown.append(f"[{text}]" if left_out else text)
    return " ".join(shown)


def _weaker(found: Space, name: str) -> str:
    from ascar.render import plain

    return "; ".join(
        f"{label.relation.replace('==', '')}{plain(label.value)}: {', '.join(sorted(label.guarantees))}"
        for label in found[name].weaker
    )
