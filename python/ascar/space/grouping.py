"""Grouping: the space in which every group of parameters is one, and the way there and back.

The parameter of a joint group holds the number of a row; that of equal ranges is their range. What a
constraint or a condition says of a member is said of that parameter: `a` becomes `group_a in (0, 3)`, and
a number `if(group_a in (0, 3), 64, 128)`. Optimizers search that space (`ascar.optimizers.grouped`), so one
change of one parameter leads from any valid choice of a group to any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ascar.errors import ExpressionError, SpaceError
from ascar.expression import Expression, literal, parse
from ascar.space.configuration import Configuration
from ascar.space.domain import Choices, Value
from ascar.space.groups import ParameterGroup, groups_of, tied_pair
from ascar.space.parameter import Parameter, value_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ascar.space.relation import Constraint
    from ascar.space.space import Space

# Strings and numbers of a formula are passed over; a word before a parenthesis is a function.
_WORDS: Final = re.compile(r'"(?:\\.|[^"\\])*"|[0-9.]+(?:[eE][+-]?[0-9]+)?|[A-Za-z_][A-Za-z0-9_]*(?! *\()')
_NAME_LENGTH_MAX: Final = 64


@dataclass(frozen=True)
class Grouping:
    """Groups, and the space in which each is one parameter.

    Attributes:
        whole: the space whose parameters are grouped.
        groups: the groups, by the name of the parameter that stands for each.
        space: the space in which it does; the whole one where there are no groups.
    """

    whole: Space
    groups: Mapping[str, ParameterGroup]
    space: Space

    @classmethod
    def of(cls, space: Space) -> Grouping:
        """The grouping of a space; a group that some formula cannot be told of is left apart."""
        groups = groups_of(space)
        while groups:
            named = {_name(group, space): group for group in groups}
            try:
                return cls(space, named, _grouped(space, named))
            except _Untold as untold:
                groups = tuple(group for group in groups if not set(group.names) & untold.names)
        return cls(space, {}, space)

    def encode(self, configuration: Mapping[str, Value]) -> Configuration:
        """A configuration of the whole space in the space of groups.

        Raises:
            SpaceError: the values of a group's parameters do not stand together.
        """
        if not self.groups:
            return configuration if isinstance(configuration, Configuration) else Configuration(configuration)
        values = dict[str, Value]()
        for name in self.space.names:
            group = self.groups.get(name)
            if group is not None:
                values[name] = self._code(name, group, configuration)
            elif name in configuration:
                values[name] = configuration[name]
        return Configuration(values)

    def decode(self, configuration: Mapping[str, Value]) -> Configuration:
        """A configuration of the space of groups in the whole space."""
        if not self.groups:
            return configuration if isinstance(configuration, Configuration) else Configuration(configuration)
        values = dict(configuration)
        for name, group in self.groups.items():
            code = values.pop(name)
            row = (code,) * len(group.names) if group.equal else group.rows[int(code)]
            values |= dict(zip(group.names, row, strict=True))
        return Configuration({name: values[name] for name in self.whole.names if name in values})

    @cached_property
    def _codes(self) -> dict[str, dict[tuple[Value, ...], int]]:
        return {
            name: {row: code for code, row in enumerate(group.rows)} for name, group in self.groups.items()
        }

    def _code(self, name: str, group: ParameterGroup, configuration: Mapping[str, Value]) -> Value:
        row = tuple(configuration[member] for member in group.names)
        if group.equal and len(set(row)) == 1:
            return row[0]
        code = self._codes[name].get(row)
        if code is None:
            given = ", ".join(
                f"{member} = {value_text(value)}" for member, value in zip(group.names, row, strict=True)
            )
            raise SpaceError(f"{given:.200}: these values do not stand together; change them together")
        return code


class _Untold(Exception):
    """A formula becomes too long or too deep when it is told of groups."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = names


def _name(group: ParameterGroup, space: Space) -> str:
    """A name that no parameter has."""
    if group.equal:
        return group.names[0]
    name = f"group_{group.names[0]}"[:_NAME_LENGTH_MAX]
    while name in space:
        name = f"_{name}"[:_NAME_LENGTH_MAX]
    return name


def _grouped(space: Space, groups: Mapping[str, ParameterGroup]) -> Space:
    members = {member: name for name, group in groups.items() for member in group.names}
    texts = {member: text for name, group in groups.items() for member, text in _texts(name, group).items()}
    try:
        default = space.default()
    except SpaceError:  # which `Space.check` tells of; it is no matter of groups
        default = space.nearest({})
    parameters: dict[str, Parameter] = {}
    for parameter in space.parameters:
        name = members.get(parameter.name)
        if name is None:
            condition = parameter.condition
            told = condition if condition is None else _told_formula(condition, texts)
            parameters[parameter.name] = replace(parameter, condition=told)
        elif name not in parameters:
            parameters[name] = _parameter(space, name, groups[name], default)
    kept = {name for name in parameters if name not in groups}
    return replace(
        space,
        parameters=tuple(parameters.values()),
        constraints=tuple(_constraints(space, groups, members, texts)),
        pinned={name: value for name, value in space.pinned.items() if name in kept},
        allow_weaker=tuple(
            entry for entry in space.allow_weaker if "=" not in entry or entry.split("=")[0].strip() in kept
        ),
    )


def _parameter(space: Space, name: str, group: ParameterGroup, default: Mapping[str, Value]) -> Parameter:
    """What stands for a group; a change of it costs what the most expensive of its parameters costs."""
    own = [space[member] for member in group.names]
    domains = {member: space.domain(member) for member in group.names}
    cost = max((one.cost for one in own), key=lambda cost: cost.rank)
    if group.equal:
        return Parameter(name=name, domain=domains[name], default=default[name], cost=cost)
    codes = Choices(tuple(range(len(group.rows))), ordered=group.ordered(domains))
    row = tuple(default[member] for member in group.names)
    return Parameter(name=name, domain=codes, default=group.rows.index(row), cost=cost)


def _constraints(
    space: Space, groups: Mapping[str, ParameterGroup], members: Mapping[str, str], texts: Mapping[str, str]
) -> Iterator[Constraint]:
    """Those that say more than the groups do."""
    for constraint in space.constraints:
        concerned = {members.get(name) for name in constraint.names}
        if None not in concerned and len(concerned) == 1:
            (name,) = concerned
            if name is not None and (not groups[name].equal or tied_pair(constraint)):
                continue
        yield _told(constraint, texts)


def _told(constraint: Constraint, texts: Mapping[str, str]) -> Constraint:
    """A constraint in terms of the parameters that stand for groups."""
    if isinstance(constraint, Expression):
        return _told_formula(constraint, texts)
    concerned = frozenset(constraint.names) & texts.keys()
    if concerned:
        raise _Untold(concerned)
    return constraint


def _told_formula(formula: Expression, texts: Mapping[str, str]) -> Expression:
    concerned = frozenset(formula.names) & texts.keys()
    if not concerned:
        return formula
    try:
        return parse(_WORDS.sub(lambda word: texts.get(word[0], word[0]), str(formula)))
    except ExpressionError:
        raise _Untold(concerned) from None


def _texts(name: str, group: ParameterGroup) -> dict[str, str]:
    """What each member is, as a formula of the parameter that stands for the group."""
    if group.equal:
        return dict.fromkeys(group.names, name)
    texts: dict[str, str] = {}
    for place, member in enumerate(group.names):
        codes: dict[tuple[bool, Value], list[int]] = {}
        for code, row in enumerate(group.rows):
            codes.setdefault((isinstance(row[place], bool), row[place]), []).append(code)
        texts[member] = f"({_text(name, codes)})"
    return texts


def _text(name: str, codes: Mapping[tuple[bool, Value], list[int]]) -> str:
    if all(boolean for boolean, _ in codes):
        true = codes.get((True, True), [])
        return f"{name} in ({', '.join(map(str, true))})" if true and len(codes) == 2 else literal(bool(true))
    *first, (_, last) = codes
    text = literal(last)
    for key in reversed(first):
        text = f"if({name} in ({', '.join(map(str, codes[key]))}), {literal(key[1])}, {text})"
    return text
