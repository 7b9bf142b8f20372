"""One small expression language for constraints, conditions, objectives, rewards and users' rules.

Grammar (EBNF; blanks, tabs and line ends may stand between tokens):

    expression = or ;
    or         = and , { "or" , and } ;
    and        = not , { "and" , not } ;
    not        = "not" , not | comparison ;
    comparison = sum , [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) , sum
                       | [ "not" ] , "in" , "(" , sum , { "," , sum } , ")" ] ;
    sum        = term , { ( "+" | "-" ) , term } ;
    term       = factor , { ( "*" | "/" ) , factor } ;
    factor     = "-" , factor | power ;
    power      = atom , [ "**" , factor ] ;
    atom       = NUMBER | STRING | "true" | "false" | NAME | "(" , expression , ")"
               | "if" , "(" , expression , "," , expression , "," , expression , ")"
               | ( "min" | "max" ) , "(" , expression , { "," , expression } , ")"
               | ( "abs" | "log" | "exp" | "sqrt" ) , "(" , expression , ")" ;
    NUMBER     = ( DIGITS , [ "." , [ DIGITS ] ] | "." , DIGITS )
               , [ ( "e" | "E" ) , [ "+" | "-" ] , DIGITS ] ;
    STRING     = '"' , { character | escape } , '"' | "'" , { character | escape } , "'" ;
    NAME       = LETTER , { LETTER | DIGIT } ;        (ASCII letters and "_")

Comparisons do not chain: write `a < b and b < c`. In a STRING the only escapes are backslash before a
backslash, a quote or the other quote; control characters are refused. `and or not in true false if` are
reserved; the other function names are functions only before a parenthesis.

Values are numbers (IEEE 754 doubles; integers are converted), strings, booleans, and *n/a* (None): the value
of a parameter that is not active. Semantics, exactly:

- `a and b`: `a` first; where it is false the result is false and b is not evaluated. Else b: false where b is
  false; then n/a if either is n/a, else true. `or` likewise with true. `not n/a` is n/a. (Kleene's logic.)
  The operands must be boolean or n/a.
- `if(c, a, b)`: n/a where c is n/a; else only the branch chosen is evaluated. c must be boolean or n/a.
- Every other operation evaluates all its operands, left to right, and is n/a when any of them is.
- `==`, `!=`, `in` compare values of one kind; values of different kinds are unequal. `<` and its like take
  numbers only. `x in (a, b)` is n/a only where x is n/a, or where no element equals x and one is n/a.
- `+ - * / **`, unary minus and the functions take numbers only; a boolean is no number. `**` binds tighter
  than a minus before it and groups to the right: -2**2 is -4. `log` is the natural logarithm.
- A result that is not finite, or not real, is an error (division by zero, overflow, log(0), (-1)**0.5).
- A *constraint* holds unless it is false: where it is n/a it is satisfied. A *condition* holds only where it
  is true. So `xfs_inode_size_bytes <= 2048` says nothing about ext4, and needs no guard.

Limits: 4096 characters; 64 levels, both of nesting in the text and of operations in the tree.
`tests/data/expression_vectors.json` holds vectors for other implementations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, ge, gt, le, lt, mul, sub
from typing import Final

from ascar.errors import ExpressionError

__all__ = ["DEPTH_MAX", "LENGTH_MAX", "RESERVED", "Expression", "Result", "literal", "parse"]

LENGTH_MAX: Final = 4096
DEPTH_MAX: Final = 64
RESERVED: Final = frozenset({"and", "or", "not", "in", "true", "false", "if"})

Result = float | str | bool
"""What an expression evaluates to; None stands for n/a."""

Values = Mapping[str, float | str | bool | None]


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


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A parsed formula. Equal where the trees are equal; `str` gives its canonical text, which parses to it.

    Attributes:
        root: the tree.
        names: the names it mentions, each once, in order of first mention.
    """

    root: Node
    names: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return self.root == other.root if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.root)

    def __str__(self) -> str:
        return _text(self.root, 0)

    def evaluate_or_none(self, values: Values) -> Result | None:
        """Its value; None where it is n/a.

        Args:
            values: a value for every name; None for a parameter that is not active.

        Raises:
            ExpressionError: a name has no value, a kind does not fit, or a result is not finite.
        """
        return _evaluate(self.root, values)

    def evaluate(self, values: Values) -> Result:
        """Its value, where n/a is an error.

        Raises:
            ExpressionError: as `evaluate_or_none`, and where the result is n/a.
        """
        result = _evaluate(self.root, values)
        if result is None:
            absent = ", ".join(name for name in self.names if values.get(name) is None)
            raise ExpressionError(f"{self} is n/a: {absent} not active; use it only where they are")
        return result

    def number(self, values: Values) -> float:
        """Its value, which must be a number.

        Raises:
            ExpressionError: as `evaluate`, and where the result is no number.
        """
        result = self.evaluate(values)
        if isinstance(result, float):
            return result
        raise ExpressionError(
            f"{self} is {literal(result)}, not a number; write a formula that gives a number"
        )

    def holds(self, values: Values) -> bool | None:
        """Whether it is true; None where it is n/a.

        Raises:
            ExpressionError: as `evaluate_or_none`, and where the result is neither true nor false.
        """
        result = _evaluate(self.root, values)
        if result is None or isinstance(result, bool):
            return result
        raise ExpressionError(f"{self} is {literal(result)}, not true or false; write a comparison")


def parse(text: str) -> Expression:
    """Parse a formula.

    Raises:
        ExpressionError: one line with the text, the position (from 1) and what was expected there.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ExpressionError(f"{text!r} is no formula: write it as a string")
    if len(text) > LENGTH_MAX:
        raise ExpressionError(f"formula {text[:40]!r}... has {len(text)} characters; at most {LENGTH_MAX}")
    root = _Parser(text).whole()
    names: dict[str, None] = {}
    _collect(root, names)
    expression = Expression(root, tuple(names))
    if len(str(expression)) > LENGTH_MAX:
        raise ExpressionError(
            f"formula {text[:40]!r}... has more than {LENGTH_MAX} characters when spaced; split it"
        )
    return expression


# Evaluation.


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


def _evaluate(node: Node, values: Values) -> Result | None:
    if isinstance(node, Operation):
        return _LAZY.get(node.operator, _eager)(node, values)
    return node.value if isinstance(node, Literal) else _look_up(node.name, values)


def _eager(node: Operation, values: Values) -> Result | None:
    """Operations that need all their operands."""
    operands = [_evaluate(operand, values) for operand in node.operands]
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
    value = _evaluate(node, values)
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
    return None if truth is None else _evaluate(node.operands[1 if truth else 2], values)


_LAZY: Final = {"and": _connect, "or": _connect, "not": _negate, "if": _choose}


def _member(value: Result | None, elements: Sequence[Result | None]) -> bool | None:
    if value is None:
        return None
    if any(element is not None and _same(value, element) for element in elements):
        return True
    return None if None in elements else False


def _collect(node: Node, names: dict[str, None]) -> None:
    if isinstance(node, Name):
        names.setdefault(node.name)
    elif isinstance(node, Operation):
        for operand in node.operands:
            _collect(operand, names)


# Text.

# How tightly an operator binds; an operand that binds less is put in parentheses.
_BINDING: Final = {
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
_ATOM: Final = 9


def _text(node: Node, least: int) -> str:
    """The text of `node`, in parentheses where it binds less than `least`."""
    if isinstance(node, Literal):
        return literal(node.value)
    if isinstance(node, Name):
        return node.name
    operator, operands = node.operator, node.operands
    binding = _BINDING.get(operator, _ATOM)
    inner = operands[0]
    if binding == _ATOM:
        text = f"{operator}({', '.join(_text(operand, 0) for operand in operands)})"
    elif operator == "not" and isinstance(inner, Operation) and inner.operator == "in":
        binding = _BINDING["in"]
        text = _membership_text(inner, "not in")
    elif operator in ("not", "neg"):
        text = f"{'not ' if operator == 'not' else '-'}{_text(inner, binding)}"
    elif operator == "in":
        text = _membership_text(node, "in")
    elif operator == "**":
        text = f"{_text(operands[0], _ATOM)} ** {_text(operands[1], _BINDING['neg'])}"
    else:
        # Left-grouping; comparisons do not chain, so both of their sides must bind tighter.
        left = binding + 1 if binding == _BINDING["in"] else binding
        text = f"{_text(operands[0], left)} {operator} {_text(operands[1], binding + 1)}"
    return f"({text})" if binding < least else text


def _membership_text(node: Operation, operator: str) -> str:
    value, *elements = (_text(operand, _BINDING["in"] + 1) for operand in node.operands)
    return f"{value} {operator} ({', '.join(elements)})"


def literal(value: Result) -> str:
    """A value as the text that parses to it (a negative number: to the minus of one)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def _called(operator: str) -> str:
    return "'-'" if operator == "neg" else f"{operator!r}"


# Parsing: recursive descent, the binary operators by precedence climbing.

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


class _Parser:
    """One parse of one text; `_level` guards the stack."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._index = 0
        self._level = 0

    def whole(self) -> Node:
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
        while (operator := self._operator()) and _BINDING[operator] >= least:
            binding = _BINDING[operator]
            if compared and binding == _BINDING["in"]:
                raise self._error("'and' (comparisons do not chain: write a < b and b < c)")
            if compared and binding > _BINDING["in"]:
                raise self._error("'and', 'or' or the end (put the comparison in parentheses)")
            compared = binding == _BINDING["in"]
            node, depth = self._join(operator, node, depth)
        self._level -= 1
        return node, depth

    def _operator(self) -> str | None:
        token = self._next
        if token.kind == "sign" or (token.kind == "name" and token.text in ("and", "or", "in")):
            return token.text if token.text in _BINDING else None
        following = self._tokens[min(self._index + 1, len(self._tokens) - 1)]
        return "in" if (token.text, following.text) == ("not", "in") and token.kind == "name" else None

    def _join(self, operator: str, left: Node, depth: int) -> tuple[Node, int]:
        if operator == "in":
            return self._membership(left, depth)
        self._take()
        # "**" groups to the right and takes a minus after it; the others group to the left.
        binding = _BINDING["neg"] if operator == "**" else _BINDING[operator] + 1
        right, right_depth = self._binary(binding)
        return self._operation(operator, (left, right), max(depth, right_depth))

    def _membership(self, left: Node, depth: int) -> tuple[Node, int]:
        negated = self._take().text == "not"
        if negated:
            self._take()
        self._expect("(", "'(' and the values after 'in'")
        elements, elements_depth = self._list(_BINDING["+"])
        node, depth = self._operation("in", (left, *elements), max(depth, elements_depth))
        return self._operation("not", (node,), depth) if negated else (node, depth)

    def _operand(self, least: int) -> tuple[Node, int]:
        token = self._next
        if token.kind == "name" and token.text == "not":
            if least > _BINDING["not"]:
                raise self._error(f"{_OPERAND} (put 'not ...' in parentheses)")
            self._take()
            inner, depth = self._binary(_BINDING["not"])
            return self._operation("not", (inner,), depth)
        if token.text == "-" and token.kind == "sign":
            self._take()
            inner, depth = self._binary(_BINDING["neg"])
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
