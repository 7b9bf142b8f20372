"""Random small spaces, and what is valid in them by trying everything."""

from functools import cache
from itertools import product

from hypothesis import strategies as st

from ascar.errors import SpaceError
from ascar.space import ChangeCost, Space, boolean, categorical, integer, ordinal

NAMES = ("a", "b", "c", "d", "e")


@st.composite
def spaces(draw, costs=tuple(ChangeCost)):
    """Spaces of up to five parameters, some conditional on earlier ones; constraints may be unsatisfiable."""
    parameters = []
    for name in NAMES[: draw(st.integers(1, 5))]:
        when = draw(st.one_of(st.just(""), conditions(len(parameters)))) if parameters else ""
        traits = {"cost": draw(st.sampled_from(costs)), "when": when}
        kind = draw(st.sampled_from(["boolean", "categorical", "ordinal", "integer"]))
        if kind == "boolean":
            parameters.append(boolean(name, default=draw(st.booleans()), **traits))
        elif kind == "integer":
            high = draw(st.integers(1, 4))
            log = draw(st.booleans())
            parameters.append(integer(name, (1, high), log=log, default=draw(st.integers(1, high)), **traits))
        else:
            values = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True))
            make = categorical if kind == "categorical" else ordinal
            values = sorted(values) if kind == "ordinal" else values
            parameters.append(make(name, values, default=draw(st.sampled_from(values)), **traits))
    rules = draw(st.lists(conditions(len(parameters)), max_size=3))
    return Space(tuple(parameters), tuple(rules))


@cache  # a strategy that is made again is checked again, which takes longer than all that it draws
def conditions(count):
    """Formulas over the first parameters, so many."""
    name = st.sampled_from(NAMES[:count])
    atom = st.one_of(
        st.builds("{} == {}".format, name, st.integers(1, 4)),
        st.builds("{} != {}".format, name, name),
        st.builds("{} == true".format, name),
        st.builds("{} in (1, 3, false)".format, name),
    )
    return st.recursive(
        atom,
        lambda inner: st.one_of(
            st.builds("({} or {})".format, inner, inner),
            st.builds("({} and {})".format, inner, inner),
            st.builds("not ({})".format, inner),
        ),
        max_leaves=3,
    )


def brute_force(space):
    """Every valid configuration as a dict: all assignments held against the definition of validity."""
    found = []
    options = [[None, *space.domain(name).each()] for name in space.names]
    for values in product(*options):
        known = dict(zip(space.names, values, strict=True))
        if all(_active(space[name], known) == (value is not None) for name, value in known.items()) and all(
            constraint.holds(known) is not False for constraint in space.constraints
        ):
            found.append({name: value for name, value in known.items() if value is not None})
    return found


def _active(parameter, known):
    return parameter.condition is None or parameter.condition.holds(known) is True


def satisfiable(space):
    try:
        space.count()
    except SpaceError:
        return False
    return True
