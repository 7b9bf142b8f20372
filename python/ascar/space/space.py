"""Space: parameters, conditions and constraints; which configurations are valid, and how to get at them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ascar.errors import SpaceError
from ascar.space.configuration import Configuration
from ascar.space.cost import costs_named
from ascar.space.diagram import holds
from ascar.space.difference import Difference, difference, same
from ascar.space.domain import Choices, Domain, Value
from ascar.space.formulas import check_constraint, check_holds, check_names, constraint_of, forbidding
from ascar.space.parameter import Parameter, value_text
from ascar.space.policy import canonical_permission, permits, permitted, too_weak
from ascar.space.relation import Relation
from ascar.space.suggestion import names_near

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy as np

    from ascar.space.encoding import Encoding
    from ascar.space.grouping import Grouping
    from ascar.space.guarantee import Guarantee
    from ascar.space.relation import Constraint
    from ascar.space.solver import Solver

_PARAMETERS_MAX = 2000
_CONSTRAINTS_MAX = 1000


@dataclass(frozen=True)
class Space:
    """A set of configurations.

    A configuration is valid when every parameter is present exactly if it is active, every value is one that
    its parameter allows (pins and guarantees heeded), and no constraint is false.

    Attributes:
        parameters: the knobs, in the order in which tables and vectors list them.
        constraints: formulas over parameters, and relations; one that is n/a (it depends on an inactive
            parameter) holds.
        pinned: parameters fixed at a value by policy.
        allow_weaker: the weaker values that may be used, as guarantees ("durability") or values
            ("btrfs_data_mode=nodatacow"). Without entries, or with None, no weaker value may be used;
            `tuple(Guarantee)` allows every value.
        name: the name of the preset or target that the space comes from.
    """

    parameters: tuple[Parameter, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    pinned: Mapping[str, Value] = field(default_factory=dict[str, "Value"])
    allow_weaker: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(self.parameters))
        object.__setattr__(self, "constraints", tuple(constraint_of(one) for one in self.constraints))
        if len(self.parameters) > _PARAMETERS_MAX or len(self.constraints) > _CONSTRAINTS_MAX:
            raise SpaceError(
                f"{len(self.parameters)} parameters, {len(self.constraints)} constraints; at most "
                f"{_PARAMETERS_MAX} and {_CONSTRAINTS_MAX}"
            )
        seen: set[str] = set()
        for parameter in self.parameters:
            if parameter.name in seen:
                raise SpaceError(f"parameter {parameter.name} appears twice; give each its own name")
            seen.add(parameter.name)
        for parameter in self.parameters:
            if parameter.condition is not None:
                check_names(f"parameter {parameter.name}: when", parameter.condition, self.names)
        for constraint in self.constraints:
            check_constraint(constraint, self.names)
            if isinstance(constraint, Relation):
                self._check_relation(constraint)
        self._check_policy()

    # Looking things up.

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, in their order."""
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters}

    def __getitem__(self, name: str) -> Parameter:
        """The parameter of that name.

        Raises:
            SpaceError: there is none.
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise SpaceError(f"unknown parameter {name!r}; known: {names_near(name, self.names)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __len__(self) -> int:
        return len(self.parameters)

    def domain(self, name: str) -> Domain:
        """The values that a parameter may take here: without the too weak ones, the pinned one alone.

        Raises:
            SpaceError: no such parameter.
        """
        self[name]
        return self._domains[name]

    @cached_property
    def _domains(self) -> dict[str, Domain]:
        return {
            parameter.name: Choices((self.pinned[parameter.name],))
            if parameter.name in self.pinned
            else permitted(parameter, self.allow_weaker)
            for parameter in self.parameters
        }

    # Which configurations are valid.

    def validate(self, values: Mapping[str, Any]) -> Configuration:
        """The configuration that these values are.

        Raises:
            SpaceError: one line naming the parameter, its value and what is allowed, or the constraint.
        """
        for name in values:
            self[name]
        known: dict[str, Value | None] = {}
        for level in self._solver.order:
            name = level.name
            active = self._active(name, known)
            if active and name not in values:
                raise SpaceError(f"parameter {name}: missing; give it a value, e.g. {self._suggested(name)}")
            if not active and name in values:
                raise SpaceError(
                    f"parameter {name} = {value_text(values[name])}: not active here, its condition is "
                    f"{str(self[name].condition)!r}; leave it out"
                )
            known[name] = self._checked(self[name], values[name]) if active else None
        check_holds(self.constraints, known)
        return self._configuration(known)

    def is_valid(self, values: Mapping[str, Any]) -> bool:
        """Whether these values are a configuration of this space."""
        try:
            self.validate(values)
        except SpaceError:
            return False
        return True

    def check(self) -> Space:
        """The space itself, once it is known that a configuration is valid, the default among them.

        Raises:
            SpaceError: the constraints cannot be satisfied (naming a minimal set that cannot), a formula
                cannot be evaluated, or the default breaks a constraint.
        """
        self.default()
        return self

    def count(self) -> int | None:
        """How many configurations are valid, exactly.

        None where a parameter is continuous, or where constraints on wide ranges forbid counting.

        Raises:
            SpaceError: none is.
        """
        return self._solver.count()

    def default(self) -> Configuration:
        """The default of every active parameter.

        Where pins forbid one, the value nearest to it that leads to a valid configuration.

        Raises:
            SpaceError: no configuration is valid, or the defaults break a constraint where nothing is pinned.
        """
        return self._default

    @cached_property
    def _default(self) -> Configuration:
        known = self._active_defaults()
        broken = [rule for rule in self.constraints if holds(rule, known) is False]
        # Only what a pin touches may move: else the baseline would not be what is in force by default.
        check_holds(
            [rule for rule in broken if not set(rule.names) & set(self.pinned)], known, "the defaults: "
        )
        return self._solver.nearest({}) if broken else self._configuration(known)

    def enumerate(self) -> Iterator[Configuration]:
        """Every valid configuration, lazily, in lexicographic order of the parameters and their values.

        Raises:
            SpaceError: a continuous parameter is among them, or none is valid.
        """
        return self._solver.enumerate()

    def sample(self, rng: np.random.Generator, n: int) -> list[Configuration]:
        """`n` independent draws, each uniform over the valid configurations.

        On a logarithmic parameter uniform on its logarithmic scale. A continuous parameter counts as one
        value against discrete alternatives (its absence, other branches). No rejections, but for constraints
        on wide ranges (see docs/algorithms/sampling.md).

        Raises:
            SpaceError: no configuration is valid, or none was found in 10,000 tries.
        """
        return [self._solver.draw(rng) for _ in range(n)]

    def latin_hypercube(self, rng: np.random.Generator, n: int) -> list[Configuration]:
        """`n` configurations in which the values of each parameter occur as evenly as validity allows.

        See `ascar.space.latin_hypercube`.

        Raises:
            SpaceError: as `sample`.
        """
        from ascar.space.latin_hypercube import latin_hypercube

        return latin_hypercube(self._solver, rng, n)

    def sequence(self, rng: np.random.Generator, n: int, kind: str = "sobol") -> list[Configuration]:
        """`n` configurations of a low-discrepancy sequence over the valid ones.

        See `ascar.space.sequence`.

        Raises:
            SpaceError: as `sample`.
        """
        from ascar.space.sequence import sequence

        return sequence(self._solver, rng, n, kind)

    def nearest(self, wanted: Mapping[str, Any]) -> Configuration:
        """The configuration that keeps the wanted values as far as it can, in the space's order.

        A value that leads to nothing valid gives way to the nearest that does; missing ones are defaults;
        those of inactive or unknown parameters are dropped. For crossovers and interpolations.

        Raises:
            SpaceError: no configuration is valid.
        """
        return self._solver.nearest(wanted)

    def neighbours(self, configuration: Configuration) -> list[Configuration]:
        """Valid configurations that differ in one choice.

        See `ascar.space.neighbourhood`.

        Raises:
            SpaceError: `configuration` is not valid here.
        """
        from ascar.space.neighbourhood import neighbours

        grouping, valid = self.grouping, self.validate(configuration)
        if not grouping.groups:
            return neighbours(self._solver, valid)
        return [grouping.decode(one) for one in grouping.space.neighbours(grouping.encode(valid))]

    @cached_property
    def grouping(self) -> Grouping:
        """The parameters that only change together, and the space in which each group of them is one."""
        from ascar.space.grouping import Grouping

        return Grouping.of(self)

    @cached_property
    def encoding(self) -> Encoding:
        """The layout of this space's vectors."""
        from ascar.space.encoding import Encoding

        return Encoding.of(self._solver)

    def encode(self, configuration: Configuration) -> np.ndarray[Any, np.dtype[np.float64]]:
        """A configuration as a vector in the unit cube; `encoding` has the layout."""
        return self.encoding.encode(configuration)

    def decode(self, vector: np.ndarray[Any, np.dtype[np.float64]]) -> Configuration:
        """The valid configuration nearest to a vector, parameter by parameter; the inverse of `encode`."""
        return self.encoding.decode(vector)

    def change(self, before: Mapping[str, Value], after: Mapping[str, Value]) -> Difference:
        """Which parameters differ, and the highest cost among them (Cao 9.4)."""
        return difference(self.parameters, before, after)

    def departures(self, configuration: Mapping[str, Value]) -> tuple[str, ...]:
        """The active parameters whose value is not their own default: what somebody chose.

        Values that a study pins are among them; parameters that only became active are not.
        """
        return tuple(
            parameter.name
            for parameter in self.parameters
            if parameter.name in configuration and not same(parameter.default, configuration[parameter.name])
        )

    def with_default_of(self, configuration: Mapping[str, Value], names: Iterable[str]) -> Configuration:
        """The configuration with these parameters at their defaults, or pins; what no longer applies is gone.

        It may break a constraint: `is_valid` tells.
        """
        back, known = frozenset(names), dict[str, "Value | None"]()
        for level in self._solver.order:
            name = level.name
            own = self.pinned.get(name, self[name].default)
            value = own if name in back else configuration.get(name, own)
            known[name] = value if self._active(name, known) else None
        return self._configuration(known)

    def weakened(self, configuration: Mapping[str, Value]) -> dict[str, frozenset[Guarantee]]:
        """What a configuration promises less of than the default, by parameter; empty where nothing."""
        labels = {name: self[name].weakens(value) for name, value in configuration.items()}
        return {name: guarantees for name, guarantees in labels.items() if guarantees}

    # Other spaces made from this one.

    def pin(self, values: Mapping[str, Any]) -> Space:
        """With parameters fixed at values, by policy.

        Raises:
            SpaceError: an unknown parameter, a value it does not allow, or nothing valid is left.
        """
        return replace(self, pinned={**self.pinned, **values})._satisfiable()

    def restrict(self, allow_cost: Iterable[str | int], current: Mapping[str, Any] | None = None) -> Space:
        """With every parameter pinned whose change cost is not allowed (Cao 9.4's infinite weight).

        Args:
            allow_cost: names of Table 9.1, or numbers for whole categories.
            current: the values in force, at which they are pinned; else at their defaults.

        Raises:
            SpaceError: an unknown cost, a current value that is not allowed, or nothing valid is left.
        """
        allowed = costs_named(allow_cost)
        current = {} if current is None else current
        fixed = {p.name: current.get(p.name, p.default) for p in self.parameters if p.cost not in allowed}
        return replace(self, pinned={**fixed, **self.pinned})._satisfiable()

    def permit_weaker(self, allow_weaker: Iterable[str]) -> Space:
        """Permit exactly these values that promise less than the default, instead of those permitted before.

        Args:
            allow_weaker: "parameter=value", or a guarantee for every value that weakens no other;
                `Guarantee` itself permits every value, an empty list none.

        Raises:
            SpaceError: a name that is neither, or nothing valid is left.
        """
        return replace(self, allow_weaker=tuple(allow_weaker))._satisfiable()

    def constrain(self, *formulas: str | Constraint) -> Space:
        """With further constraints.

        Raises:
            SpaceError: a formula cannot be read, names an unknown parameter, or nothing valid is left.
        """
        return replace(self, constraints=(*self.constraints, *formulas))._satisfiable()  # type: ignore[arg-type]

    def forbid(self, *combinations: Mapping[str, Any]) -> Space:
        """With combinations of values excluded, e.g. {"fs": "btrfs", "scheduler": "bfq"}.

        Raises:
            SpaceError: an unknown parameter or value, or nothing valid is left.
        """
        return self.constrain(*(forbidding(self, combination) for combination in combinations))

    def only(self, name: str, values: Iterable[Any]) -> Space:
        """With fewer values of one parameter, as where a machine lacks an I/O scheduler.

        Raises:
            SpaceError: a value is not allowed, none is given, or the default is not among them.
        """
        parameter = self[name]
        kept = [parameter.canonical(value) for value in values]
        ordered = not isinstance(parameter.domain, Choices) or parameter.domain.ordered
        if isinstance(parameter.domain, Choices):
            kept = [value for value in parameter.domain.values if value in kept]
        try:
            domain = Choices(tuple(dict.fromkeys(kept)), ordered)
        except SpaceError as error:
            raise SpaceError(f"parameter {name}: {error.message}") from None
        return self._with(parameter.with_domain(domain))._satisfiable()

    def with_defaults(self, values: Mapping[str, Any]) -> Space:
        """With the values in force on a machine as the defaults; see `Parameter.with_default`.

        Raises:
            SpaceError: an unknown parameter, a value it cannot take, or defaults that break a constraint.
        """
        space = self
        for name, value in values.items():
            space = space._with(self[name].with_default(value))
        return space.check()

    # Private parts.

    @cached_property
    def _solver(self) -> Solver:
        from ascar.space.solver import Solver  # with NumPy, which reading a study does without

        return Solver.of(self.parameters, self._domains, self.constraints)

    def _satisfiable(self) -> Space:
        self._solver.ensure_some()
        return self

    def _with(self, parameter: Parameter) -> Space:
        return replace(
            self, parameters=tuple(parameter if p.name == parameter.name else p for p in self.parameters)
        )

    def _active(self, name: str, known: Mapping[str, Value | None]) -> bool:
        condition = self._by_name[name].condition
        return condition is None or holds(condition, known) is True

    def _active_defaults(self) -> dict[str, Value | None]:
        """The default of every active parameter, or its pin; None for those that are not active."""
        self._solver.ensure_some()
        known: dict[str, Value | None] = {}
        for level in self._solver.order:
            value = self.pinned.get(level.name, self[level.name].default)
            known[level.name] = value if self._active(level.name, known) else None
        return known

    def _configuration(self, known: Mapping[str, Value | None]) -> Configuration:
        return Configuration({name: value for name in self.names if (value := known[name]) is not None})

    def _suggested(self, name: str) -> str:
        return value_text(self.pinned.get(name, self[name].default))

    def _checked(self, parameter: Parameter, value: object) -> Value:
        """The value as the parameter holds it, if policy allows it too."""
        canonical = parameter.canonical(value)
        if parameter.name in self.pinned and not same(self.pinned[parameter.name], canonical):
            fixed = value_text(self.pinned[parameter.name])
            raise SpaceError(
                f"parameter {parameter.name} = {value_text(canonical)}: pinned at {fixed}; leave it there"
            )
        if not permits(parameter, canonical, self.allow_weaker):
            raise too_weak(parameter, canonical)
        return canonical

    def _check_relation(self, relation: Relation) -> None:
        for name, *column in zip(relation.names, *relation.rows, strict=True):
            parameter = self[name]
            if parameter.condition is not None:
                raise SpaceError(f"{relation}: {name} has a condition; name parameters that always apply")
            for value in set(column):
                parameter.canonical(value)

    def _check_policy(self) -> None:
        # A caller without type checks may pass None, which permits nothing either.
        permissions = tuple(canonical_permission(self, entry) for entry in self.allow_weaker or ())
        object.__setattr__(self, "allow_weaker", permissions)
        pinned: dict[str, Value] = {}
        for name, value in self.pinned.items():
            try:
                pinned[name] = self[name].canonical(value)
                if not permits(self[name], pinned[name], self.allow_weaker):
                    raise too_weak(self[name], pinned[name])
            except SpaceError as error:
                raise SpaceError(f"pinned: {error.message}") from None
        object.__setattr__(self, "pinned", pinned)
