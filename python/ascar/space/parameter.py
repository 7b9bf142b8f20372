"""Parameter: one knob, its values, its default, what changing it costs, and what its values promise."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

from ascar.errors import ExpressionError, SpaceError
from ascar.expression import RESERVED, Expression, parse
from ascar.space.cost import ChangeCost
from ascar.space.domain import Choices, Domain, Range, Value, same
from ascar.space.guarantee import Guarantee, Weaker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_RELATION = re.compile(r"(<=|>=|<|>) *(-?[0-9]+(?:\.[0-9]+)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One knob of a system.

    Attributes:
        name: a letter, then letters, digits and "_"; the unit comes last (`block_read_ahead_kb`).
        domain: the values it can take.
        default: the value in force where nobody chose another.
        cost: the cost of changing it (Cao 9.4).
        condition: the condition under which it is active; None: always. An inactive parameter is absent from
            a configuration (Cao's "n/a"). A condition that mentions an inactive parameter is not met.
        weaker: values that promise less than the default does.
        special: the meaning of values that are no plain quantity ("0": "mkfs decides").
        unit: the unit for people, e.g. "bytes"; empty where there is none.
        description: a description for people, in one line.
        native: the system's own name of it, such as `vm.dirty_ratio` or `block.DEV.scheduler`; empty where it
            has none of its own (an option of mkfs or mount).
        bounds: the least and the greatest whole number that the system takes, where a study may list other
            values than these; None: it may only leave some out.
    """

    name: str
    domain: Domain
    default: Value
    cost: ChangeCost
    condition: Expression | None = None
    weaker: tuple[Weaker, ...] = ()
    special: tuple[tuple[Value, str], ...] = ()
    unit: str = ""
    description: str = ""
    native: str = ""
    bounds: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name in RESERVED:
            raise SpaceError(
                f"parameter {self.name[:80]!r}: a name is a letter, then up to 63 letters, digits or '_', "
                f"and none of {', '.join(sorted(RESERVED))}"
            )
        object.__setattr__(self, "default", self._canonical("default", self.default))
        named = {value for value, _ in self.special}
        outside = self.domain.special if isinstance(self.domain, Range) else ()
        unnamed = tuple((value, "") for value in outside if value not in named)
        object.__setattr__(self, "special", (*self.special, *unnamed))
        if weakened := " and ".join(sorted(self.weakens(self.default))):
            text = value_text(self.default)
            raise SpaceError(f"parameter {self.name}: default {text} weakens {weakened}; no default can")

    @property
    def kind(self) -> str:
        """categorical, ordinal, boolean, integer or float."""
        if isinstance(self.domain, Range):
            return "integer" if self.domain.integer else "float"
        if set(self.domain.values) == {False, True} and all(
            isinstance(value, bool) for value in self.domain.values
        ):
            return "boolean"
        return "ordinal" if self.domain.ordered else "categorical"

    def canonical(self, value: object) -> Value:
        """`value` as the domain holds it.

        Raises:
            SpaceError: it is not allowed; the message names the parameter, the value and what is.
        """
        return self._canonical("", value)

    def _canonical(self, what: str, value: object) -> Value:
        try:
            return self.domain.canonical(value)
        except SpaceError as error:
            raise SpaceError(f"parameter {self.name}: {what}{' ' if what else ''}{error.message}") from None

    def parse(self, text: str) -> Value:
        """A value from text, as in `name=value` on a command line.

        Raises:
            SpaceError: no value of the domain is written so.
        """
        if isinstance(self.domain, Choices):
            for value in self.domain.values:
                if value_text(value) == text.strip():
                    return value
            return self.canonical(text)
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        return self.canonical(int(number) if number.is_integer() and self.domain.integer else number)

    def weakens(self, value: Value) -> frozenset[Guarantee]:
        """What `value` promises less of than the default; empty for most."""
        return frozenset[Guarantee]().union(
            *(label.guarantees for label in self.weaker if label.covers(value))
        )

    def with_domain(self, domain: Domain) -> Parameter:
        """The same parameter with other values; labels and meanings of values that are gone go too.

        Raises:
            SpaceError: the default is not among them.
        """
        if not isinstance(domain, Choices):
            return replace(self, domain=domain)
        kept = domain.values
        weaker = tuple(label for label in self.weaker if any(label.covers(value) for value in kept))
        special = tuple(pair for pair in self.special if any(same(pair[0], value) for value in kept))
        return replace(self, domain=domain, weaker=weaker, special=special)

    def with_default(self, value: object) -> Parameter:
        """The same parameter as found on a machine where `value` is in force.

        A number that an ordinal parameter does not list is added to its values, in order. Labels compare with
        the default, so what the machine already does is no longer weaker.

        Raises:
            SpaceError: the value is none this parameter can take.
        """
        domain = self.domain
        if isinstance(domain, Choices) and domain.ordered:
            numbers = [known for known in (*domain.values, value) if isinstance(known, (int, float))]
            if len(numbers) == domain.size + 1 and not any(isinstance(number, bool) for number in numbers):
                domain = Choices(tuple(sorted(set(numbers))), ordered=True)
        canonical = replace(self, domain=domain, weaker=()).canonical(value)
        labels: list[Weaker] = []
        for label in self.weaker:
            if not label.covers(canonical):
                labels.append(label)
            elif label.relation != "==":
                labels.append(replace(label, relation=label.relation[0], value=canonical))
        return replace(self, domain=domain, default=canonical, weaker=tuple(labels))


def identifier(native: str) -> str:
    """The name of a parameter for a system's own name: `vm_dirty_ratio` for `vm.dirty_ratio`.

    Every sign that a name may not have becomes "_"; DEV, which stands for any device, is left out.
    """
    return re.sub(r"\W+", "_", native.replace(".DEV.", ".")).strip("_")


def value_text(value: Value) -> str:
    """A value as people write it: true, 4096, 0.5, zstd:1."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Traits(TypedDict, total=False):
    """What the constructors below take besides the values; see `Parameter`.

    `when` is the condition's text. `weaker` maps a value, or a relation like ">5", to the guarantees that it
    weakens. `special` maps a value to its meaning. `cost` is that of a program's setting which changes while
    it runs, unless it is given.
    """

    default: Required[Value]
    cost: ChangeCost
    when: str
    weaker: Mapping[Any, str | Sequence[str]]
    special: Mapping[Any, str]
    unit: str
    description: str
    native: str


def categorical(name: str, values: Sequence[Value], **traits: Unpack[Traits]) -> Parameter:
    """A parameter with values in no order."""
    return build(name, _domain(name, lambda: Choices(tuple(values))), traits)


def ordinal(name: str, values: Sequence[Value], **traits: Unpack[Traits]) -> Parameter:
    """A parameter with values in the order given, neighbours near each other."""
    return build(name, _domain(name, lambda: Choices(tuple(values), ordered=True)), traits)


def boolean(name: str, **traits: Unpack[Traits]) -> Parameter:
    """A parameter that is true or false."""
    return build(name, Choices((False, True)), traits)


def integer(
    name: str, scale: tuple[int, int], *, step: int = 1, log: bool = False, **traits: Unpack[Traits]
) -> Parameter:
    """A parameter with integers from scale[0] to scale[1]; special values may lie outside."""
    return build(name, _domain(name, lambda: _range(scale, step, log, True, traits)), traits)


def floating(
    name: str,
    scale: tuple[float, float],
    *,
    step: float | None = None,
    log: bool = False,
    **traits: Unpack[Traits],
) -> Parameter:
    """A parameter with numbers from scale[0] to scale[1]; special values may lie outside."""
    return build(name, _domain(name, lambda: _range(scale, step, log, False, traits)), traits)


def build(name: str, domain: Domain, traits: Traits) -> Parameter:
    """A parameter of a domain and its traits.

    Raises:
        SpaceError: a trait does not fit; the message names the parameter and the trait.
    """
    when = traits.get("when", "")
    try:
        condition = parse(when) if when else None
    except ExpressionError as error:
        raise SpaceError(f"parameter {name}: when: {error.message}") from error
    return Parameter(
        name=name,
        domain=domain,
        default=traits["default"],
        cost=traits.get("cost", ChangeCost.DYN_APP),
        condition=condition,
        weaker=_labels(name, domain, traits.get("weaker", {})),
        special=tuple(
            (_value_named(name, domain, "special", key), meaning)
            for key, meaning in traits.get("special", {}).items()
        ),
        unit=traits.get("unit", ""),
        description=traits.get("description", ""),
        native=traits.get("native", ""),
    )


def _domain(name: str, make: Callable[[], Domain]) -> Domain:
    try:
        return make()
    except SpaceError as error:
        raise SpaceError(f"parameter {name}: {error.message}") from None


def _range(scale: tuple[float, float], step: float | None, log: bool, integer: bool, traits: Traits) -> Range:
    low, high = scale
    outside: list[float] = []
    for key in traits.get("special", {}):
        try:
            number = float(key)
        except (TypeError, ValueError):
            raise SpaceError(f"special: {key!r}: must be a number outside {low} to {high}") from None
        if not low <= number <= high:
            outside.append(number)
    return Range(low, high, step=step, log=log, integer=integer, special=tuple(outside))


def _labels(name: str, domain: Domain, weaker: Mapping[Any, str | Sequence[str]]) -> tuple[Weaker, ...]:
    labels: list[Weaker] = []
    for key, named in weaker.items():
        texts = (named,) if isinstance(named, str) else tuple(named)
        for text in texts:
            if text not in set(Guarantee):
                allowed = ", ".join(Guarantee)
                raise SpaceError(f"parameter {name}: weaker: {text!r} is not a guarantee; allowed: {allowed}")
        guarantees = frozenset(Guarantee(text) for text in texts)
        if not guarantees:
            raise SpaceError(
                f"parameter {name}: weaker: {key!r}: name what it weakens: {', '.join(Guarantee)}"
            )
        listed = isinstance(domain, Choices) and any(value_text(value) == key for value in domain.values)
        relation = _RELATION.fullmatch(key) if isinstance(key, str) and not listed else None
        if relation:
            labels.append(Weaker(relation[1], float(relation[2]), guarantees))
        else:
            value = _value_named(name, domain, "weaker", key)
            if isinstance(domain, Range) and value not in domain.special:
                raise SpaceError(
                    f"parameter {name}: weaker: {key!r}: name a side of the range, e.g. '>{value}'"
                )
            labels.append(Weaker("==", value, guarantees))
    return tuple(labels)


def _value_named(name: str, domain: Domain, what: str, key: object) -> Value:
    """The value of the domain that a key means: the value itself, or its text."""
    try:
        if isinstance(domain, Choices):
            for value in domain.values:
                if isinstance(key, str) and value_text(value) == key:
                    return value
            return domain.canonical(key)
        return domain.canonical(float(key) if isinstance(key, str) else key)
    except (SpaceError, ValueError) as error:
        problem = error.message if isinstance(error, SpaceError) else f"{key!r} is not a number"
        raise SpaceError(f"parameter {name}: {what}: {problem}") from None
