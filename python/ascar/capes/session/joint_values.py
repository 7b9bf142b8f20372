"""A relation of a space, joint values of some parameters, as formulas that forbid what is not in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.errors import StudyError
from ascar.expression import LENGTH_MAX, literal
from ascar.space.domain import same

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Value
    from ascar.space.relation import Relation


def forbidden_by_relation(
    relation: Relation, keys: Mapping[str, str], default: Mapping[str, Value]
) -> list[str]:
    """The formulas, at least one of which is true of each combination that is not valid.

    For values of the first parameters that begin a row, one says which values the next may not have. Formulas
    that list whole rows would be too deep.

    Args:
        relation: the relation.
        keys: the names in the formulas of the parameters that may change.
        default: the values of the others.

    Raises:
        StudyError: a parameter has so many values in the rows that no formula holds them.
    """
    changing = [at for at, name in enumerate(relation.names) if name in keys]
    others = [(at, name) for at, name in enumerate(relation.names) if name not in keys]
    rows = dict.fromkeys(
        tuple(literal(row[at]) for at in changing)
        for row in relation.rows
        if all(same(row[at], default[name]) for at, name in others)
    )
    names = [keys[relation.names[at]] for at in changing]
    formulas: list[str] = []
    for depth, name in enumerate(names):
        following: dict[tuple[str, ...], dict[str, None]] = {}
        for row in rows:
            following.setdefault(row[:depth], {})[row[depth]] = None
        for begin, values in following.items():
            before = [f"{one} == {value}" for one, value in zip(names, begin, strict=False)]
            formulas.append(" and ".join([*before, f"{name} not in ({', '.join(values)})"]))
    for formula in formulas:
        if len(formula) > LENGTH_MAX:
            raise StudyError(
                f"space: {relation}: a session may set {len(rows)} of them, and its rules have at most "
                f"{LENGTH_MAX} characters; leave some values out, or pin a parameter"
            )
    return formulas
