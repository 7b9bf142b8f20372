"""The tree of a formula, and its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "ATOM",
    "BINDING",
    "Literal",
    "Name",
    "Node",
    "Operation",
    "Result",
    "literal",
    "names_in",
    "text_of",
]

Result = float | str | bool
"""What an expression evaluates to; None stands for n/a."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a string, true or false."""

    value: Result

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter or metric."""

    name: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or function with its operands; `operator` is its sign or name, "neg" for unary minus."""

    operator: str
    operands: tuple[Node, ...]


Node = Literal | Name | Operation


# How tightly an operator binds; an operand that binds less is put in parentheses.
BINDING: Final = {
    "or": 1,
    "and": 2,
    "not": 3,
    "in": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "neg": 7,
    "**": 8,
} | dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 4)
ATOM: Final = 9


def text_of(node: Node, least: int) -> str:
    """The text of `node`, in parentheses where it binds less than `least`."""
    if isinstance(node, Literal):
        return literal(node.value)
    if isinstance(node, Name):
        return node.name
    operator, operands = node.operator, node.operands
    binding = BINDING.get(operator, ATOM)
    inner = operands[0]
    if binding == ATOM:
        text = f"{operator}({', '.join(text_of(operand, 0) for operand in operands)})"
    elif operator == "not" and isinstance(inner, Operation) and inner.operator == "in":
        binding = BINDING["in"]
        text = _membership_text(inner, "not in")
    elif operator in ("not", "neg"):
        text = f"{'not ' if operator == 'not' else '-'}{text_of(inner, binding)}"
    elif operator == "in":
        text = _membership_text(node, "in")
    elif operator == "**":
        text = f"{text_of(operands[0], ATOM)} ** {text_of(operands[1], BINDING['neg'])}"
    else:
        # Left-grouping; comparisons do not chain, so both of their sides must bind tighter.
        left = binding + 1 if binding == BINDING["in"] else binding
        text = f"{text_of(operands[0], left)} {operator} {text_of(operands[1], binding + 1)}"
    return f"({text})" if binding < least else text


def _membership_text(node: Operation, operator: str) -> str:
    value, *elements = (text_of(operand, BINDING["in"] + 1) for operand in node.operands)
    return f"{value} {operator} ({', '.join(elements)})"


def literal(value: Result) -> str:
    """A value as the text that parses to it (a negative number: to the minus of one)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def names_in(node: Node) -> tuple[str, ...]:
    """The names a tree mentions, each once, in order of first mention."""
    names: dict[str, None] = {}
    _collect(node, names)
    return tuple(names)


def _collect(node: Node, names: dict[str, None]) -> None:
    if isinstance(node, Name):
        names.setdefault(node.name)
    elif isinstance(node, Operation):
        for operand in node.operands:
            _collect(operand, names)
