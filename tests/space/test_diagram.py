from dataclasses import dataclass, field

import pytest

from ascar.space import integer
from ascar.space.diagram import DiagramLevel, TooLarge, build


@dataclass
class Total:
    """A running rule that holds always, remembers everything, and counts how often it is asked."""

    names: tuple[str, ...]
    first: int = 0
    asked: list[int] = field(default_factory=list)

    def after(self, state, name, value):
        self.asked.append(value)
        return 1000 * state + value


def _levels(size):
    domains = {name: integer(name, (1, size), default=1).domain for name in ("a", "b")}
    return [DiagramLevel(name, domain, tuple(domain.each()), None) for name, domain in domains.items()]


def test_a_diagram_with_too_many_edges_is_given_up_before_the_level_that_has_them():
    rule = Total(("a", "b"))
    with pytest.raises(TooLarge):
        build(_levels(100), [], [rule], edges_max=100 + 100 * 100 - 1)
    assert len(rule.asked) == 100


def test_a_diagram_with_as_many_edges_as_are_allowed_is_built():
    found = build(_levels(100), [], [Total(("a", "b"))], edges_max=100 + 100 * 100)
    assert (found.edges, found.root.count) == (10_100, 10_000)
