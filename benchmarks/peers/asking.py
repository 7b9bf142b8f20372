"""An optimizer of somebody else's as a process of its own: asked and told by lines of JSON.

The first line has the parameters: each with name, kind ("integer", "real", "category"), low, high, log. A
category is an integer from 0 to high. What is minimised is a cost above zero. Further lines:

    {"do": "known", "values": {...}, "cost": 1.0}      a measurement that nobody asked for
    {"do": "ask"}                                      answered by {"values": {...}}
    {"do": "tell", "how": "measured", "cost": 0.9}     what became of the last one asked for: "measured";
                                                       "failed" and "invalid" have the worst cost so far
    {"do": "best"}                                     answered by {"values": {...}}: what it recommends
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

Values = dict[str, Any]

_ANSWERS, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer


class AskedOptimizer(Protocol):
    """What answers."""

    def known(self, values: Values, cost: float) -> None:
        """Take in a measurement."""

    def ask(self) -> Values:
        """What it wants to be measured."""

    def tell(self, how: str, cost: float) -> None:
        """Take in what became of the last one that it asked for."""

    def best(self) -> Values:
        """What it recommends."""


def serve(make: Callable[[list[dict[str, Any]], int, int], AskedOptimizer]) -> None:
    """Answer until the input ends.

    Args:
        make: of the parameters, the number of trials, and the seed.
    """
    head = json.loads(sys.stdin.readline())
    optimizer = make(head["parameters"], head["trials"], head["seed"])
    for line in sys.stdin:
        message = json.loads(line)
        match message["do"]:
            case "known":
                optimizer.known(message["values"], message["cost"])
            case "tell":
                optimizer.tell(message["how"], message["cost"])
            case "ask" | "best" as do:
                values = optimizer.ask() if do == "ask" else optimizer.best()
                print(json.dumps({"values": values}), file=_ANSWERS, flush=True)


def plain(value: Any) -> Any:
    """A number as JSON has it, whatever library it is of."""
    return value.item() if hasattr(value, "item") else value
