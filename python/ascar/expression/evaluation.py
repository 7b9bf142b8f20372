"""What a formula comes to with values for its names; the semantics stand in `ascar.expression`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import add, ge, gt, le, lt, mul, sub
from typing import Final

from ascar.errors import ExpressionError
from ascar.expression.tree import Literal, Node, Operation, Result, literal

__all__ = ["Values", "evaluate"]

Values = Mapping[str, float | str | bool | None]
"""A value for every name; None where it is n/a."""


def _number_operation(function: Callable[..., float]) -> Callable[[str, Sequence[Result]], float]:
    def apply(operator: str, operands: Sequence[Result]) -> float:
        for operand in operands:
            if not isinstance(operand, float):
                raise ExpressionError(f"{_called(operator)} takes numbers, not {literal(operand)}")
        try:
            result = function(*operands)
        except (ValueError, OverflowError, ZeroDivisionError):
            result = math.nan
        if not math.isfinite(result):
            shown = ", ".join(literal(operand) for operand in operands)
            raise ExpressionError(
                f"{_called(operator)} of {shown} has no finite value; guard it with if(...)"
            )
        return result

    return apply


def _order(function: Callable[[float, float], bool]) -> Callable[[str, Sequence[Result]], bool]:
    def apply(operator: str, operands: Sequence[Result]) -> bool:
        left, right = operands
        if isinstance(left, float) and isinstance(right, float):
            return function(left, right)
        raise ExpressionError(
            f"{operator!r} orders numbers, not {literal(left)} and {literal(right)}; use == or in"
        )

    return apply


def _same(left: Result, right: Result) -> bool:
    return type(left) is type(right) and left == right


def _divide(left: float, right: float) -> float:
    return left / right


def _minus(number: float) -> float:
    return -number


_STRICT: Final[Mapping[str, Callable[[str, Sequence[Result]], Result]]] = {
    "+": _number_operation(add),
    "-": _number_operation(sub),
    "*": _number_operation(mul),
    "/": _number_operation(_divide),
    "**": _number_operation(math.pow),
    "neg": _number_operation(_minus),
    "min": _number_operation(lambda *numbers: min(numbers)),
    "max": _number_operation(lambda *numbers: max(numbers)),
    "abs": _number_operation(math.fabs),
    "log": _number_operation(math.log),
    "exp": _number_operation(math.exp),
    "sqrt": _number_operation(math.sqrt),
    "==": lambda _, operands: _same(operands[0], operands[1]),
    "!=": lambda _, operands: not _same(operands[0], operands[1]),
    "<": _order(lt),
    "<=": _order(le),
    ">": _order(gt),
    ">=": _order(ge),
}


def evaluate(node: Node, values: Values) -> Result | None:
    """The value of a tree; None where it is n/a.

    Raises:
        ExpressionError: a name has no value, a kind does not fit, or a result is not finite.
    """
    if isinstance(node, Operation):
        return _LAZY.get(node.operator, _eager)(node, values)
    return node.value if isinstance(node, Literal) else _look_up(node.name, values)


def _eager(node: Operation, values: Values) -> Result | None:
    """Operations that need all their operands."""
    operands = [evaluate(operand, values) for operand in node.operands]
    if node.operator == "in":
        return _member(operands[0], operands[1:])
    present = [operand for operand in operands if operand is not None]
    if len(present) < len(operands):
        return None
    return _STRICT[node.operator](node.operator, present)


def _look_up(name: str, values: Values) -> Result | None:
    try:
        value = values[name]
    except KeyError:
        known = ", ".join(sorted(values)[:20]) or "none"
        raise ExpressionError(f"unknown name {name!r}; known here: {known}") from None
    if value is None or isinstance(value, (bool, str)):
        return value
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ExpressionError(f"{name} = {value!r} is not a finite number; measure it again or leave it out")
    return number


def _truth(node: Node, values: Values, operator: str) -> bool | None:
    value = evaluate(node, values)
    if value is None or isinstance(value, bool):
        return value
    raise ExpressionError(f"{operator!r} takes true or false, not {literal(value)}; write a comparison")


def _connect(node: Operation, values: Values) -> bool | None:
    """Kleene's `and` and `or`: `decisive` settles it whatever the other operand is."""
    decisive = node.operator == "or"
    left = _truth(node.operands[0], values, node.operator)
    if left is decisive:
        return decisive
    right = _truth(node.operands[1], values, node.operator)
    if right is decisive:
        return decisive
    return None if left is None or right is None else not decisive


def _negate(node: Operation, values: Values) -> bool | None:
    truth = _truth(node.operands[0], values, "not")
    return None if truth is None else not truth


def _choose(node: Operation, values: Values) -> Result | None:
    truth = _truth(node.operands[0], values, "if")
    return None if truth is None else evaluate(node.operands[1 if truth else 2], values)


_LAZY: Final = {"and": _connect, "or": _connect, "not": _negate, "if": _choose}


def _member(value: Result | None, elements: Sequence[Result | None]) -> bool | None:
    if value is None:
        return None
    if any(element is not None and _same(value, element) for element in elements):
        return True
    return None if None in elements else False


def _called(operator: str) -> str:
    return "'-'" if operator == "neg" else f"{operator!r}"
