"""A setting of a server, as catalogues of servers list it, and what a study makes of it."""

from __future__ import annotations

import math
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, Self, TypeVar

import msgspec
from msgspec.structs import replace

from ascar.errors import SpaceError, StudyError
from ascar.space import ChangeCost, Parameter, boolean, categorical, floating, integer
from ascar.space.parameter import identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        advised: the value that the manual advises, or a formula over the `memory` of the server; None: none.
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
    advised: bool | int | float | str | None = None

    @property
    def parameter_name(self) -> str:
        """The name in a study, whose formulas know no hyphen."""
        return identifier(self.name)

    @property
    def cost(self) -> ChangeCost:
        """The cost of a change."""
        raise NotImplementedError

    def is_searched(self, parameters: str) -> bool:
        """Whether a study searches it.

        Args:
            parameters: "expert" or "wide".
        """
        return self.expert or parameters == "wide"

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

    def between(self, least: float, most: float) -> Self:
        """The setting with what a range leaves of the one that is searched, which may be nothing.

        Args:
            least: the least number.
            most: the greatest number.
        """
        low, high = self.search
        begin, end = max(low, least), min(high, most)
        if self.kind == "integer":
            begin = low + math.ceil((begin - low) / self.step) * self.step
            end = low + math.floor((end - low) / self.step) * self.step
        return replace(self, search=(begin, end))


class RankedSetting(ServerSetting, frozen=True, kw_only=True):
    """A setting whose values promise more or less than the one that is in force today, whichever that is.

    Attributes:
        context: when a change takes effect: at once, for new connections, or with a new start.
        guarantees: what a weaker value promises less of.
        weakest_first: the values by how much they promise, as the server writes them; those that are not
            listed promise most.
        weakens: which numbers promise less than the one in force.
        weakest_special: a number that promises least, wherever it stands.
        unranked_special: a number that promises nothing that others could be held against: it is weaker than
            each of them, and each of them that `weakens` names is weaker than it.
        when: the condition under which it has an effect.
        set_by: what sets it instead of a search: a key of `[target]`, or the setting's own name where only
            the server of today says it.
    """

    context: Literal["dynamic", "connection", "restart"]
    guarantees: tuple[str, ...] = ()
    weakest_first: tuple[str, ...] = ()
    weakens: Literal["", "above", "below"] = ""
    weakest_special: str = ""
    unranked_special: str = ""
    when: str = ""
    set_by: str = ""

    @property
    def cost(self) -> ChangeCost:
        """The cost of a change; applications that have to connect anew are as good as started again."""
        return ChangeCost.DYN_APP if self.context == "dynamic" else ChangeCost.APP_RESTART

    def is_searched(self, parameters: str) -> bool:
        """Whether a study searches it; what something else sets, none does."""
        return not self.set_by and super().is_searched(parameters)

    def text(self, value: object) -> str:
        """A value as the server writes it."""
        raise NotImplementedError

    def value(self, text: str) -> bool | int | float | str:
        """A value from what the server writes; what is none of the kind stays a text."""
        raise NotImplementedError

    def parameter(self, default: bool | int | float | str | None = None) -> Parameter:
        """The setting as a parameter of a space.

        Args:
            default: the value in force where nobody chose another; None: the server's own.

        Raises:
            SpaceError: the setting cannot have that value.
        """
        value = self.default if default is None else default
        return self.built(
            self.parameter_name,
            {
                "default": value,
                "cost": self.cost,
                "weaker": self._weaker(value),
                "when": self.when,
                "unit": self.unit,
                "description": self.what,
                "native": self.name,
            },
        )

    def parameter_in_force(self, value: bool | int | float | str) -> Parameter:
        """The setting with the value in force as its default, also one that no search would try.

        Raises:
            SpaceError: the setting cannot have that value.
        """
        try:
            return self.parameter(value)
        except SpaceError:
            found = self.found(self.text(value))
            if found is None:
                raise
            return replace(found, when=self.when).parameter()

    def up_to(self, most: int | None, today: bool | int | float | str) -> Self:
        """The setting with a range that ends at a number, or at the value in force where that is greater.

        Args:
            most: the number; None: there is none.
            today: the value in force.
        """
        if most is None or not isinstance(today, int):
            return self
        low, high = self.search
        steps = (min(high, max(most, today)) - low) // self.step
        return replace(self, search=(low, low + max(1, steps) * self.step))

    def installed(self, text: str) -> Self:
        """The setting with the installed version's default; the list's own where that would not be a value.

        Args:
            text: the default, as the server writes it.
        """
        known = replace(self, default=self.value(text))
        with suppress(SpaceError):
            known.parameter()
            return known
        return self

    def found(self, text: str) -> Self | None:
        """The setting with the value in force as its default, also one that no search would try.

        Args:
            text: the value, as the server writes it; a word that nobody knows makes None.
        """
        value = self.value(text)
        known = replace(self._through(value), default=value, when="")
        with suppress(SpaceError):
            known.parameter()
            return known
        if isinstance(value, (bool, str)):
            return None
        return replace(known, special={**self.special, text: "the value that the study found"})

    def _through(self, value: bool | int | float | str) -> Self:
        """The setting with steps that meet a number within the range; whoever takes that takes the others."""
        low, high = self.search
        if self.kind != "integer" or not isinstance(value, int) or not low < value < high:
            return self
        begin = low + (value - low) % self.step
        return replace(self, search=(begin, begin + (high - begin) // self.step * self.step))

    def _weaker(self, default: bool | float | str) -> dict[object, list[str]]:
        """The values that promise less than a default, and what they promise less of."""
        named, text = list(self.guarantees), self.text(default)
        if self.weakest_first:
            first = self.weakest_first
            below = first[: first.index(text)] if text in first else first
            return {self.value(one): named for one in below}
        if not self.weakens or text == self.weakest_special:
            return {}
        found: dict[object, list[str]] = {f"{'>' if self.weakens == 'above' else '<'}{text}": named}
        for special in (self.weakest_special, self.unranked_special):
            if special not in ("", text):
                found[int(special)] = named
        return found


R = TypeVar("R", bound=RankedSetting)


def known_to(settings: Mapping[str, R], name: str, what: str) -> R:
    """The setting of a name that a study gives.

    Args:
        settings: the settings that there are, by name.
        name: the name.
        what: what they are settings of.

    Raises:
        StudyError: there is none of that name.
    """
    if name not in settings:
        near = get_close_matches(name, settings, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise StudyError(
            f"target.settings: {name!r:.80} is no setting of {what} that ascar may change; must be one of "
            f"{', '.join(settings)}{hint}"
        )
    return settings[name]
