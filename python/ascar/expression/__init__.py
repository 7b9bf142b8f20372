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

from dataclasses import dataclass

from ascar.errors import ExpressionError
from ascar.expression.evaluation import Values, evaluate
from ascar.expression.parser import DEPTH_MAX, LENGTH_MAX, RESERVED, Parser
from ascar.expression.tree import Node, Result, literal, names_in, text_of

__all__ = ["DEPTH_MAX", "LENGTH_MAX", "RESERVED", "Expression", "Result", "literal", "parse"]


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
        return text_of(self.root, 0)

    def evaluate_or_none(self, values: Values) -> Result | None:
        """Its value; None where it is n/a.

        Args:
            values: a value for every name; None for a parameter that is not active.

        Raises:
            ExpressionError: a name has no value, a kind does not fit, or a result is not finite.
        """
        return evaluate(self.root, values)

    def evaluate(self, values: Values) -> Result:
        """Its value, where n/a is an error.

        Raises:
            ExpressionError: as `evaluate_or_none`, and where the result is n/a.
        """
        result = evaluate(self.root, values)
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
        result = evaluate(self.root, values)
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
    root = Parser(text).whole()
    expression = Expression(root, names_in(root))
    if len(str(expression)) > LENGTH_MAX:
        raise ExpressionError(
            f"formula {text[:40]!r}... has more than {LENGTH_MAX} characters when spaced; split it"
        )
    return expression
