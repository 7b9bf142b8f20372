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
- `+ - * / **`, unary minus and the functions take numbers only; a boolean is not a number. `**` binds tighter
  than a minus before it and groups to the right: -2**2 is -4. `log` is the natural logarithm.
- A result that is not finite, or not real, is an error (division by zero, overflow, log(0), (-1)**0.5).
- A *constraint* holds unless it is false: where it is n/a it is satisfied. A *condition* holds only where it
  is true. So `xfs_inode_size_bytes <= 2048` says nothing about ext4, and needs no guard.

Limits: 4096 characters; 64 levels, both of nesting in the text and of operations in the tree.
`crates/expression` implements it; `tests/data/expression_vectors.json` holds vectors for others.
"""

from __future__ import annotations

from typing import Final

from ascar import _core

Expression = _core.Expression
literal = _core.expression_literal

DEPTH_MAX: Final = _core.EXPRESSION_DEPTH_MAX
LENGTH_MAX: Final = _core.EXPRESSION_LENGTH_MAX
RESERVED: Final = frozenset(_core.EXPRESSION_RESERVED)

Result = float | str | bool
"""What an expression evaluates to; None stands for n/a."""


def parse(text: str) -> Expression:
    """Parse a formula.

    Raises:
        ExpressionError: one line with the text, the position (from 1) and what was expected there.
    """
    return Expression(text)
