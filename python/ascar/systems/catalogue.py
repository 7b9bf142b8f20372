"""What a kind of system really has; the space that a history from elsewhere claims is not believed.

Numbers are let through where the system takes numbers: a machine's own value may be outside of every list.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ascar.errors import EnvironmentLacks, InputError, StudyError
from ascar.space import Choices, Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ascar.space import Parameter, Space, Value

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+:-]{0,63}")


class ListedSetting(Protocol):
    """A setting of a list."""

    def parameter(self) -> Parameter:
        """The setting as a parameter, with its own default."""
        ...


@dataclass(frozen=True, slots=True)
class KnownParameter:
    """A parameter that a kind of system has.

    Attributes:
        numbers: whether it takes numbers.
        choices: the texts, and the truth values, that it takes.
        words: whether it takes other words, too: those that a kernel lists.
    """

    numbers: bool
    choices: frozenset[Value] = frozenset()
    words: bool = False

    @classmethod
    def of(cls, parameter: Parameter) -> KnownParameter:
        """What a parameter of a catalogue takes."""
        if isinstance(parameter.domain, Range):
            return cls(numbers=True)
        values = parameter.domain.values
        numbers = any(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        return cls(numbers, frozenset(value for value in values if isinstance(value, (str, bool))))

    def takes(self, value: Value) -> bool:
        """Whether the system takes a value of that kind."""
        if isinstance(value, (bool, str)):
            is_word = self.words and isinstance(value, str) and _WORD.fullmatch(value) is not None
            return is_word or any(value == one and type(value) is type(one) for one in self.choices)
        is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        return self.numbers and is_number


def catalogue_of(parameters: Iterable[Parameter]) -> dict[str, KnownParameter]:
    """Parameters by name, as what a system takes of them."""
    return {one.name: KnownParameter.of(one) for one in parameters}


def check_known(
    target: Mapping[str, Any], space: Space, configuration: Mapping[str, Value] | None = None
) -> None:
    """See that a kind of system has the parameters of a space and takes their values.

    Args:
        target: the `[target]` table of the study.
        space: what its history says was searched.
        configuration: values to check as well.

    Raises:
        InputError: it does not; names the parameter and the value.
        StudyError: the kind is unknown, or a key of the table is wrong.
        EnvironmentLacks: the package of the kind cannot be imported.
    """
    from ascar.systems import options_of, system_of

    known = system_of(target).catalogue(options_of(target))
    if known is None:
        return
    kind = target.get("kind", "localfs")
    for parameter in space.parameters:
        listed = parameter.domain.values if isinstance(parameter.domain, Choices) else ()
        for value in (*listed, parameter.default):
            _check(str(kind), known, parameter.name, value)
    for name, value in (configuration or {}).items():
        _check(str(kind), known, name, value)


def check_where_known(target: Mapping[str, Any], space: Space) -> None:
    """The same for what is only looked at: a kind that is not installed here can be put in force by nobody.

    Raises:
        InputError: a parameter or value is none of the kind's.
    """
    try:
        check_known(target, space)
    except (StudyError, EnvironmentLacks):
        return


def _check(kind: str, known: Mapping[str, KnownParameter], name: str, value: Value) -> None:
    if name not in known:
        names = ", ".join(sorted(known))
        raise InputError(
            f"parameter {name!r}: a target of kind {kind!r} has none of that name; it has {names}"
        )
    if not known[name].takes(value):
        listed = ", ".join(sorted(str(one) for one in known[name].choices)) or "numbers"
        raise InputError(f"{name} = {str(value)[:80]!a}: a target of kind {kind!r} takes {listed}")
