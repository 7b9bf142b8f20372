import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from space_strategies import satisfiable, spaces

from ascar.errors import SpaceError
from ascar.space import (
    ChangeCost,
    Configuration,
    Guarantee,
    Space,
    boolean,
    categorical,
    floating,
    integer,
    ordinal,
    preset,
)
from ascar.space.encoding import Column

COST = ChangeCost.DYN_KERNEL
MIXED = Space(
    (
        categorical("fs", ("a", "b", "c"), default="b", cost=COST),
        categorical("atime", ("on", "off"), default="on", cost=COST),
        boolean("barrier", default=True, cost=COST),
        ordinal("block", (1, 2, 4, 8, 16), default=4, cost=COST, when='fs != "a"'),
        integer("cache", (1, 64), log=True, default=8, cost=COST, special={0: "automatic"}),
        floating("ratio", (0, 10), default=2.5, cost=COST, when="barrier"),
        ordinal("single", (7,), default=7, cost=COST),
    )
)


def test_layout():
    assert MIXED.encoding.columns == (
        Column("fs", "choice", "a"),
        Column("fs", "choice", "b"),
        Column("fs", "choice", "c"),
        Column("atime", "position"),
        Column("barrier", "position"),
        Column("block", "active"),
        Column("block", "position"),
        Column("cache", "position"),
        Column("cache", "special", 0),
        Column("ratio", "active"),
        Column("ratio", "position"),
    )


def test_values():
    vector = MIXED.encode(MIXED.default())
    assert vector.tolist() == [0, 1, 0, 0, 1, 1, 0.5, 0.5, 0, 1, 0.25]
    other = Configuration({"fs": "a", "atime": "off", "barrier": False, "cache": 0, "single": 7})
    # What is inactive keeps its default's position; a special value its range's.
    assert MIXED.encode(other).tolist() == [1, 0, 0, 1, 0, 0, 0.5, 0.5, 1, 0, 0.25]


@given(spaces())
@settings(max_examples=40, deadline=None)
def test_decoding_inverts_encoding(space):
    if not satisfiable(space):
        return
    vectors = set()
    configurations = list(space.enumerate())[:100]
    for configuration in configurations:
        vector = space.encode(configuration)
        assert vector.shape == (len(space.encoding.columns),)
        assert vector.min(initial=0) >= 0
        assert vector.max(initial=0) <= 1
        assert space.decode(vector) == configuration
        vectors.add(tuple(vector))
    assert len(vectors) == len(configurations)


@given(st.lists(st.floats(-2, 3), min_size=11, max_size=11))
@settings(deadline=None)
def test_any_vector_decodes_to_a_valid_configuration(numbers):
    assert MIXED.is_valid(MIXED.decode(np.array(numbers)))


@given(spaces(), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_any_vector_of_any_space_decodes(space, seed):
    if not satisfiable(space):
        return
    vector = np.random.default_rng(seed).uniform(-0.5, 1.5, len(space.encoding.columns))
    assert space.is_valid(space.decode(vector))


def test_continuous_values_come_back():
    rng = np.random.default_rng(2)
    for configuration in MIXED.sample(rng, 200):
        again = MIXED.decode(MIXED.encode(configuration))
        assert {**again, "ratio": 0} == {**configuration, "ratio": 0}
        if "ratio" in configuration:
            assert again["ratio"] == pytest.approx(configuration["ratio"])


def test_one_hot_decodes_to_the_nearest():
    vector = MIXED.encode(MIXED.default())
    vector[:3] = [0.3, 0.4, 0.6]
    assert MIXED.decode(vector)["fs"] == "c"
    assert MIXED.pin({"fs": "a"}).decode(vector)["fs"] == "a"


def test_restrictions_keep_the_layout():
    space = preset("storage-v5").permit_weaker(Guarantee)
    restricted = space.permit_weaker([]).pin({"fs": "ext4"})
    assert restricted.encoding.columns == space.encoding.columns
    assert (restricted.encode(restricted.default()) == space.encode(space.default())).all()


def test_many_rows():
    configurations = MIXED.sample(np.random.default_rng(1), 5)
    rows = MIXED.encoding.encode_many(configurations)
    assert rows.shape == (5, 11)
    assert (rows[3] == MIXED.encode(configurations[3])).all()
    assert MIXED.encoding.encode_many([]).shape == (0, 11)


@pytest.mark.parametrize("vector", [np.zeros(3), np.zeros((11, 1)), np.full(11, np.nan)])
def test_wrong_vectors_are_refused(vector):
    with pytest.raises(SpaceError, match="a vector of 11 finite numbers"):
        MIXED.decode(vector)
