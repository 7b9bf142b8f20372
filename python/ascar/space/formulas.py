"""A space's formulas: read, checked for unknown names, held against a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.errors import ExpressionError, SpaceError
from ascar.expression import Expression, literal, parse
from ascar.space.diagram import holds
from ascar.space.parameter import value_text
from ascar.space.relation import Relation
from ascar.space.suggestion import names_near

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ascar.space.domain import Value
    from ascar.space.relation import Constraint
    from ascar.space.space import Space


def constraint_of(formula: str | Constraint) -> Constraint:
    """A constraint, read where it is text.

    Raises:
        SpaceError: it cannot be read.
    """
    if isinstance(formula, (Expression, Relation)):
        return formula
    try:
        return parse(formula)
    except ExpressionError as error:
        raise SpaceError(f"constraint: {error.message}") from error


def check_names(what: str, formula: Constraint, known: Collection[str]) -> None:
    """See that a formula names nothing else.

    Raises:
        SpaceError: it does.
    """
    for name in formula.names:
        if name not in known:
            near = names_near(name, known)
            raise SpaceError(f"{what} {str(formula)!r}: unknown parameter {name!r}; known: {near}")


def check_constraint(constraint: Constraint, known: Collection[str]) -> None:
    """See that a constraint is about parameters, all of them known.

    Raises:
        SpaceError: it is not.
    """
    check_names("constraint", constraint, known)
    if not constraint.names:
        raise SpaceError(f"constraint {str(constraint)!r} mentions no parameter; remove it")


def check_holds(
    constraints: Iterable[Constraint], known: Mapping[str, Value | None], whose: str = ""
) -> None:
    """See that none of the constraints is false; one that is n/a holds.

    Raises:
        SpaceError: one is, with the values that break it.
    """
    for constraint in constraints:
        if holds(constraint, known) is False:
            given = ", ".join(f"{name} = {_shown(known[name])}" for name in constraint.names)
            raise SpaceError(
                f"{whose}constraint {str(constraint)!r} is broken by {given}; change one of them"
            )


def forbidding(space: Space, combination: Mapping[str, Any]) -> str:
    """The constraint that excludes a combination of values.

    Raises:
        SpaceError: it is empty, or names an unknown parameter or value.
    """
    if not combination:
        raise SpaceError("forbidden: the combination is empty; name at least one parameter and its value")
    parts = [f"{name} == {literal(space[name].canonical(value))}" for name, value in combination.items()]
    return f"not ({' and '.join(parts)})"


def _shown(value: Value | None) -> str:
    return "n/a" if value is None else value_text(value)
