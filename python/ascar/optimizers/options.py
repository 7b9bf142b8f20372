"""The base of every optimizer's options, which are read strictly from a study's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import msgspec

from ascar.study import convert, within

if TYPE_CHECKING:
    from collections.abc import Mapping


class OptimizerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of the struct, named ...Options, that an optimizer reads its `[optimizer]` table with."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The least and the greatest value of each option that is a number with bounds."""
        return {}

    @classmethod
    def read(cls, table: Mapping[str, Any] | None) -> Self:
        """The options of a study's `[optimizer]` table without its kind.

        Raises:
            StudyError: an option is unknown, of the wrong type or out of range.
        """
        options = convert(table or {}, cls, "optimizer")
        for key, (low, high) in options.ranges().items():
            within(f"optimizer.{key}", getattr(options, key), low, high)
        return options
