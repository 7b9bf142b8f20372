"""Recursive descent, binary operators by precedence climbing; the grammar stands in `ascar.expression`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ascar.errors import ExpressionError
from ascar.expression.tree import BINDING, Literal, Name, Node, Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEPTH_MAX", "LENGTH_MAX", "RESERVED", "Parser"]

LENGTH_MAX: Final = 4096
DEPTH_MAX: Final = 64
RESERVED: Final = frozenset({"and", "or", "not", "in", "true", "false", "if"})

_TOKEN: Final = re.compile(
    r"""(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<string>"(?:[^"\\\x00-\x1f\x7f]|\\["'\\])*"|'(?:[^'\\\x00-\x1f\x7f]|\\["'\\])*')
      | (?P<sign>\*\*|==|!=|<=|>=|[-+*/<>(),])""",
    re.VERBOSE,
)
_BLANK: Final = " \t\r\n"
_FUNCTIONS: Final[Mapping[str, tuple[int, int]]] = {
    "if": (3, 3),
    "min": (1, LENGTH_MAX),
    "max": (1, LENGTH_MAX),
    "abs": (1, 1),
    "log": (1, 1),
    "exp": (1, 1),
    "sqrt": (1, 1),
}
_OPERAND: Final = "a number, a string, a name, a function or '('"
_END: Final = "end"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


class Parser:
    """One parse of one text; `_level` guards the stack."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._index = 0
        self._level = 0

    def whole(self) -> Node:
        """The tree of the text, all of it.

        Raises:
            ExpressionError: it is no formula, or too deep a one.
        """
        node, _ = self._binary(1)
        if self._next.kind != _END:
            raise self._error("an operator or the end")
        return node

    @property
    def _next(self) -> _Token:
        return self._tokens[self._index]

    def _take(self) -> _Token:
        token = self._next
        self._index += 1
        return token

    def _split(self) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        while position < len(self._text):
            if self._text[position] in _BLANK:
                position += 1
                continue
            match = _TOKEN.match(self._text, position)
            if not match:
                raise self._unreadable(position)
            tokens.append(_Token(str(match.lastgroup), match[0], position))
            position = match.end()
        return [*tokens, _Token(_END, "the end", len(self._text))]

    def _unreadable(self, position: int) -> ExpressionError:
        character = self._text[position]
        if character in "\"'":
            return self._error(
                "a string closed by the same quote, with no escapes but \\\\, \\\" and \\'", position
            )
        if character == "=":
            return self._error("'==' (equality has two signs)", position)
        return self._error(f"an operator, a number, a string or a name, not {character!r}", position)

    def _error(self, expected: str, position: int | None = None) -> ExpressionError:
        token = self._next if position is None else None
        at = token.position if token else position or 0
        found = f", found {token.text if token.kind == _END else repr(token.text)}" if token else ""
        text = self._text if len(self._text) <= 120 else f"{self._text[:117]}..."
        return ExpressionError(f"formula {text!r}, position {at + 1}: expected {expected}{found}")

    def _binary(self, least: int) -> tuple[Node, int]:
        """An operand and each operator after it that binds at least as tightly as `least`; and the depth."""
        self._level += 1
        if self._level > DEPTH_MAX:
            raise self._error(f"at most {DEPTH_MAX} levels of nesting")
        node, depth = self._operand(least)
        compared = False
        while (operator := self._operator()) and BINDING[operator] >= least:
            binding = BINDING[operator]
            if compared and binding == BINDING["in"]:
                raise self._error("'and' (comparisons do not chain: write a < b and b < c)")
            if compared and binding > BINDING["in"]:
                raise self._error("'and', 'or' or the end (put the comparison in parentheses)")
            compared = binding == BINDING["in"]
            node, depth = self._join(operator, node, depth)
        self._level -= 1
        return node, depth

    def _operator(self) -> str | None:
        token = self._next
        if token.kind == "sign" or (token.kind == "name" and token.text in ("and", "or", "in")):
            return token.text if token.text in BINDING else None
        following = self._tokens[min(self._index + 1, len(self._tokens) - 1)]
        return "in" if (token.text, following.text) == ("not", "in") and token.kind == "name" else None

    def _join(self, operator: str, left: Node, depth: int) -> tuple[Node, int]:
        if operator == "in":
            return self._membership(left, depth)
        self._take()
        # "**" groups to the right and takes a minus after it; the others group to the left.
        binding = BINDING["neg"] if operator == "**" else BINDING[operator] + 1
        right, right_depth = self._binary(binding)
        return self._operation(operator, (left, right), max(depth, right_depth))

    def _membership(self, left: Node, depth: int) -> tuple[Node, int]:
        negated = self._take().text == "not"
        if negated:
            self._take()
        self._expect("(", "'(' and the values after 'in'")
        elements, elements_depth = self._list(BINDING["+"])
        node, depth = self._operation("in", (left, *elements), max(depth, elements_depth))
        return self._operation("not", (node,), depth) if negated else (node, depth)

    def _operand(self, least: int) -> tuple[Node, int]:
        token = self._next
        if token.kind == "name" and token.text == "not":
            if least > BINDING["not"]:
                raise self._error(f"{_OPERAND} (put 'not ...' in parentheses)")
            self._take()
            inner, depth = self._binary(BINDING["not"])
            return self._operation("not", (inner,), depth)
        if token.text == "-" and token.kind == "sign":
            self._take()
            inner, depth = self._binary(BINDING["neg"])
            return self._operation("neg", (inner,), depth)
        return self._atom()

    def _atom(self) -> tuple[Node, int]:
        token = self._next
        if token.kind == "number":
            number = float(token.text)
            if not math.isfinite(number):
                raise self._error("a finite number")
            self._take()
            return Literal(number), 1
        if token.kind == "string":
            self._take()
            return Literal(re.sub(r"\\(.)", r"\1", token.text[1:-1])), 1
        if token.kind == "sign" and token.text == "(":
            self._take()
            node, depth = self._binary(1)
            self._expect(")", "')'")
            return node, depth
        if token.kind == "name":
            return self._named(token)
        raise self._error(_OPERAND)

    def _named(self, token: _Token) -> tuple[Node, int]:
        if token.text in ("true", "false"):
            self._take()
            return Literal(token.text == "true"), 1
        following = self._tokens[self._index + 1]
        if following.kind == "sign" and following.text == "(":
            return self._call(token)
        if token.text == "if":
            raise self._error("if(condition, then, otherwise)")
        if token.text in RESERVED:
            raise self._error(_OPERAND)
        self._take()
        return Name(token.text), 1

    def _call(self, token: _Token) -> tuple[Node, int]:
        if token.text not in _FUNCTIONS:
            raise self._error(f"one of the functions {', '.join(_FUNCTIONS)}")
        fewest, most = _FUNCTIONS[token.text]
        self._take()
        self._take()
        operands, depth = self._list(1)
        if not fewest <= len(operands) <= most:
            count = f"{fewest} argument{'s' if fewest > 1 else ''}"
            raise self._error(f"{token.text}(...) with {count}, not {len(operands)}", token.position)
        return self._operation(token.text, tuple(operands), depth)

    def _list(self, least: int) -> tuple[list[Node], int]:
        """Operands up to and with the closing parenthesis, and the depth of the deepest."""
        node, depth = self._binary(least)
        nodes = [node]
        while self._next.kind == "sign" and self._next.text == ",":
            self._take()
            node, node_depth = self._binary(least)
            nodes.append(node)
            depth = max(depth, node_depth)
        self._expect(")", "',' or ')'")
        return nodes, depth

    def _expect(self, sign: str, expected: str) -> None:
        if self._next.kind != "sign" or self._next.text != sign:
            raise self._error(expected)
        self._take()

    def _operation(self, operator: str, operands: tuple[Node, ...], depth: int) -> tuple[Node, int]:
        if depth >= DEPTH_MAX:
            raise self._error(f"a formula of at most {DEPTH_MAX} levels of operations; split it")
        return Operation(operator, operands), depth + 1
