"""Contenders for people: the scores of each, and what the first of them gains over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.render import estimate, number, p_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ascar.results.contest import ContestEntry
    from ascar.results.rule_search import ContenderFigures

_SAID = {"better": "ahead", "worse": "behind", "open": "not told apart", "itself": ""}


def contenders_table(contenders: Sequence[ContestEntry], score: str) -> Table:
    """A row a contender.

    Args:
        contenders: the one that is compared with each of the others first.
        score: the name of the scores.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", f"mean {score}", f"gain of {contenders[0].name}", "", ""):
        table.add_column(Text(heading))
    for one in contenders:
        tested = "" if one.p_value is None else p_value(one.p_value)
        cells = (one.name, _mean(one), gain_words(one), tested, _SAID[one.verdict])
        table.add_row(*map(Text, cells))
    return table


def _mean(one: ContestEntry) -> str:
    if one.ci_low is None or one.ci_high is None:
        return number(one.mean)
    return f"{number(one.mean)} [{number(one.ci_low)}, {number(one.ci_high)}]"


def gain_words(one: ContestEntry | ContenderFigures) -> str:
    """What the first contender gains over this one, with the interval; nothing for the first itself."""
    if one.gain_relative is not None:
        return estimate(one.gain_relative, one.gain_low, one.gain_high)
    if one.difference is not None:
        return estimate(one.difference, one.difference_low, one.difference_high, "{:+.4g}".format)
    return ""
