"""The stages of a trial, in the order in which people are told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

STAGES = {
    "load": "the load, which is measured",
    "drain": "doing what the load left undone",
    "degraded": "the load once more, while a part of the system fails",
    "change": "putting configurations in force",
    "fill": "writing the load's files",
    "settle": "bringing caches and layout to the same state",
    "measurement": "statistics",
    "other": "search, history, start and end",
}
"""What happens in each stage."""


def in_order(stages: Iterable[str]) -> list[str]:
    """The stages, in their order; those that another version has made come last."""
    named = set(stages)
    return [*(stage for stage in STAGES if stage in named), *sorted(named - set(STAGES))]
