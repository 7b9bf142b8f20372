"""Variants of an optimizer that differ in one option: `genetic.mutation=0.01,0.02` (Cao Fig. 5.5)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascar.errors import StudyError
from ascar.lab.simulation import Contender

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Sweep:
    """One option of one optimizer, at several values.

    Attributes:
        kind: the optimizer.
        option: a key of its `[optimizer]` table.
        values: the values that the option is set to.
    """

    kind: str
    option: str
    values: Sequence[Any]

    @classmethod
    def parse(cls, text: str) -> Sweep:
        """Read "KIND.OPTION=VALUE,VALUE,...".

        Raises:
            StudyError: it is not of this form.
        """
        name, _, values = text.partition("=")
        kind, _, option = name.strip().partition(".")
        parts = [part.strip() for part in values.split(",") if part.strip()]
        if not kind or not option or not parts:
            raise StudyError(
                f"--sweep = {text!r}: must be KIND.OPTION=VALUE,VALUE, e.g. 'genetic.mutation=0.01,0.02,0.04'"
            )
        return cls(kind, option, [_value(part) for part in parts])

    @property
    def name(self) -> str:
        """For plots and files."""
        return f"{self.kind}.{self.option}"

    @property
    def contenders(self) -> list[Contender]:
        """One a value."""
        return [
            Contender(self.kind, {self.option: value}, f"{self.kind} {self.option}={value}")
            for value in self.values
        ]


def _value(text: str) -> Any:
    """A number or a truth value as TOML has them; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
