"""Encoding: configurations as vectors in the unit cube, for models that want numbers.

Columns, parameter by parameter in the space's order:

- a parameter with a condition: first a column that is 1 where it is active, else 0;
- categorical with three or more values: one column a value, 1 for the value taken (one-hot);
- categorical with two values, boolean: one column, 0 for the first value, 1 for the second (false, true);
- ordinal: one column, the value's rank over the highest rank;
- integer, float: one column, the position in the range on its own (linear or logarithmic) scale; then one
  column a special value, 1 where it is taken (the position is then the default's, or 0);
- a parameter with a single value: no column of its own.

The value columns of an inactive parameter are those of its default, so that two configurations in which it
is inactive are no distance apart in it. The layout depends on the parameters alone, not on pins or
permissions: vectors of a study and of its restrictions can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.errors import SpaceError
from ascar.space.diagram import Free
from ascar.space.domain import Range
from ascar.space.solver import nearest_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ascar.space.configuration import Configuration
    from ascar.space.diagram import DiagramLevel, DiagramNode, Key
    from ascar.space.domain import Value
    from ascar.space.parameter import Parameter
    from ascar.space.solver import Solver

Vector = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Column:
    """One coordinate.

    Attributes:
        parameter: the parameter that the coordinate encodes.
        meaning: "active", "choice" (one-hot), "special" (one-hot) or "position".
        value: the value that a "choice" or "special" column stands for; None for the others.
    """

    parameter: str
    meaning: str
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Encoding:
    """The layout of a space's vectors, and the way there and back.

    Attributes:
        columns: the meaning of each coordinate.
        starts: the first column of each parameter's values, by name.
        flags: the column that says whether a parameter is active, by name; only of those with a condition.
    """

    columns: tuple[Column, ...]
    starts: Mapping[str, int]
    flags: Mapping[str, int]
    _solver: Solver
    _blank: tuple[float, ...]
    _codes: Mapping[str, Mapping[Value, tuple[float, ...]]]

    @classmethod
    def of(cls, solver: Solver) -> Encoding:
        """The encoding of a space."""
        columns: list[Column] = []
        starts: dict[str, int] = {}
        flags: dict[str, int] = {}
        blank: list[float] = []
        for parameter in solver.parameters:
            if parameter.condition is not None:
                flags[parameter.name] = len(columns)
                columns.append(Column(parameter.name, "active"))
                blank.append(0.0)
            starts[parameter.name] = len(columns)
            columns += _columns(parameter)
            blank += _code(parameter, parameter.default)
        codes = {
            parameter.name: {value: _code(parameter, value) for value in parameter.domain.each()}
            for parameter in solver.parameters
            if not isinstance(parameter.domain, Range)
        }
        return cls(tuple(columns), starts, flags, solver, tuple(blank), codes)

    def encode(self, configuration: Mapping[str, Value]) -> Vector:
        """The vector of a configuration, one coordinate a column, each in [0, 1]."""
        vector = list(self._blank)
        for name, value in configuration.items():
            if name in self.flags:
                vector[self.flags[name]] = 1.0
            code = (
                self._codes[name][value]
                if name in self._codes
                else _code(self._solver.parameter(name), value)
            )
            start = self.starts[name]
            vector[start : start + len(code)] = code
        return np.array(vector)

    def encode_many(self, configurations: Iterable[Mapping[str, Value]]) -> Vector:
        """The vectors of several configurations, one a row."""
        rows = [self.encode(configuration) for configuration in configurations]
        return np.array(rows).reshape(len(rows), len(self.columns))

    def decode(self, vector: Vector) -> Configuration:
        """The valid configuration nearest to a vector, decided parameter by parameter in order of decision.

        The "active" columns are not read: conditions follow from the values.

        Raises:
            SpaceError: the vector has another length or is not finite, or no configuration is valid.
        """
        if vector.shape != (len(self.columns),) or not bool(np.isfinite(vector).all()):
            raise SpaceError(
                f"a vector of {len(self.columns)} finite numbers is needed, not of shape {vector.shape}"
            )
        numbers = vector.tolist()
        return self._solver.walk(
            lambda level, node: self._choice(level, node, numbers), lambda level: self._value(level, numbers)
        )

    def _choice(self, level: DiagramLevel, node: DiagramNode, numbers: Sequence[float]) -> Key:
        """The choice whose code is nearest to the vector."""
        keys = node.keys
        if len(keys) == 1:
            return keys[0]
        parameter = self._solver.parameter(level.name)
        if isinstance(parameter.domain, Range):
            return nearest_key(level, node, self._value(level, numbers), parameter.default)
        start, codes = self.starts[level.name], self._codes[level.name]

        def distance(key: Key) -> float:
            assert key is not None
            assert not isinstance(key, Free)
            return sum((numbers[start + index] - wanted) ** 2 for index, wanted in enumerate(codes[key]))

        return min(keys, key=distance)

    def _value(self, level: DiagramLevel, numbers: Sequence[float]) -> Value:
        """The value of a range nearest to the vector."""
        domain = self._solver.parameter(level.name).domain
        assert isinstance(domain, Range)
        start = self.starts[level.name]
        taken = numbers[start + 1 : start + 1 + len(domain.special)]
        if taken and max(taken) >= 0.5:
            return domain.special[taken.index(max(taken))]
        return domain.nearest(numbers[start])


def _columns(parameter: Parameter) -> list[Column]:
    name, domain = parameter.name, parameter.domain
    if isinstance(domain, Range):
        return [Column(name, "position"), *(Column(name, "special", value) for value in domain.special)]
    if domain.size == 1:
        return []
    if domain.ordered or domain.size == 2:
        return [Column(name, "position")]
    return [Column(name, "choice", value) for value in domain.values]


def _code(parameter: Parameter, value: Value) -> tuple[float, ...]:
    """The value columns of one parameter."""
    domain = parameter.domain
    if isinstance(domain, Range):
        assert not isinstance(value, (bool, str))
        ordinary = parameter.default if value in domain.special else value
        assert not isinstance(ordinary, (bool, str))
        place = 0.0 if ordinary in domain.special else domain.position(ordinary)
        return (place, *(float(value == special) for special in domain.special))
    if domain.size == 1:
        return ()
    index = domain.values.index(value)
    if domain.ordered or domain.size == 2:
        return (index / (domain.size - 1),)
    return tuple(float(index == other) for other in range(domain.size))
