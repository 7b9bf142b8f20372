"""What it takes to put a configuration in force on a machine: what can be done at once, what is left."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Self

from ascar.results.machine import LeftToUser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.results.machine import AppliedSetting


@dataclass(frozen=True, slots=True)
class Placement:
    """A configuration as changes of a machine.

    Attributes:
        settings: knobs of the kernel that can be set at once, in the order of writing.
        left: the parameters that are left to the user.
        warnings: what about this place differs from what the result is valid for.
        is_here: whether it is known to be a place of this machine.
    """

    settings: tuple[AppliedSetting, ...] = ()
    left: tuple[LeftToUser, ...] = ()
    warnings: tuple[str, ...] = ()
    is_here: bool = True

    @classmethod
    def by_hand(cls, parameters: Sequence[str], commands: Sequence[str]) -> Placement:
        """Everything is left to the user."""
        why = "give these commands" if commands else "ascar has no command for them: set them by hand"
        return cls(left=(LeftToUser(tuple(parameters), why, tuple(commands)),))

    @classmethod
    def joined(cls, placements: Sequence[Self]) -> Self:
        """The changes of several places; what is left to the user, and warned of, is said once."""
        return cls(
            tuple(chain.from_iterable(one.settings for one in placements)),
            tuple(dict.fromkeys(chain.from_iterable(one.left for one in placements))),
            tuple(dict.fromkeys(chain.from_iterable(one.warnings for one in placements))),
            all(one.is_here for one in placements),
        )
