"""A setting of a server, as catalogues of servers list it, and what a study makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from ascar.space import ChangeCost, Parameter, boolean, categorical, floating, integer

if TYPE_CHECKING:
    from ascar.space.parameter import Traits


class ServerSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A setting of a server.

    Attributes:
        name: the server's own name.
        kind: "boolean", "integer", "real", or "choice".
        values: the values of a choice.
        search: the range of a number that is searched.
        log: whether the scale of the range is logarithmic.
        step: the distance of whole numbers.
        special: the meanings of numbers outside of the range.
        default: the server's default.
        unit: the unit of the numbers.
        expert: whether the setting belongs to the expert's space.
        what: what the setting does.
        manual: where the manual speaks of it.
    """

    name: str
    kind: Literal["boolean", "integer", "real", "choice"]
    default: bool | int | float | str
    what: str
    manual: str
    values: tuple[str, ...] = ()
    search: tuple[float, float] = (0, 0)
    log: bool = False
    step: int = 1
    special: dict[str, str] = {}
    unit: str = ""
    expert: bool = False

    @property
    def cost(self) -> ChangeCost:
        """The cost of a change."""
        raise NotImplementedError

    def built(self, name: str, traits: Traits) -> Parameter:
        """A parameter with the values of the setting.

        Args:
            name: the parameter's name.
            traits: what it has beside its values and their meanings.
        """
        if self.kind == "boolean":
            return boolean(name, **traits)
        if self.kind == "choice":
            return categorical(name, self.values, **traits)
        low, high = self.search
        traits["special"] = {float(number): meaning for number, meaning in self.special.items()}
        if self.kind == "integer":
            return integer(name, (int(low), int(high)), step=self.step, log=self.log, **traits)
        return floating(name, (low, high), log=self.log, **traits)
