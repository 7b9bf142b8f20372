import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from space_strategies import satisfiable, spaces

from ascar.errors import SpaceError
from ascar.space import (
    PRESETS,
    ChangeCost,
    Guarantee,
    Parameter,
    Range,
    Space,
    boolean,
    floating,
    preset,
    space_from_json,
    space_key,
    space_to_json,
)
from ascar.space.relation import Relation

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_json(name):
    space = preset(name)
    again = space_from_json(space_to_json(space))
    assert again == space
    assert again.count() == space.count()
    assert again.default() == space.default()
    assert space_to_json(again) == space_to_json(space)


@given(spaces())
@settings(max_examples=40, deadline=None)
def test_any_space_survives_json(space):
    try:
        space.check()
    except SpaceError:
        return
    again = space_from_json(space_to_json(space))
    assert again == space
    assert list(again.enumerate()) == list(space.enumerate())


def test_restrictions_survive_json():
    space = preset("storage-v5").permit_weaker(["durability"]).pin({"fs": "ext3"})
    again = space_from_json(space_to_json(space))
    assert again.allow_weaker == ("durability",)
    assert again.pinned == {"fs": "ext3"}
    assert again.count() == space.count()


def test_the_key_stands_for_what_is_valid():
    space = preset("storage-v5").permit_weaker(Guarantee)
    assert space_key(space) == space_key(space_from_json(space_to_json(space)))
    assert space_key(space.pin({"fs": "xfs"})) != space_key(space)
    assert space_key(space.permit_weaker([])) != space_key(space)
    assert space_key(space.constrain("block_nr_requests < 500")) != space_key(space)
    assert len({space_key(preset(name)) for name in PRESETS}) == len(PRESETS)


def test_special_values_without_a_meaning_survive_json():
    domain = Range(1, 9, integer=True, special=(0,))
    space = Space((Parameter(name="x", domain=domain, default=0, cost=ChangeCost.DYN_APP),))
    assert space_from_json(space_to_json(space)) == space


def test_version_1_without_restrictions_permits_every_value():
    document = json.loads(space_to_json(preset("storage-v5"))) | {"version": 1, "allow_weaker": None}
    again = space_from_json(json.dumps(document))
    assert again == preset("storage-v5").permit_weaker(Guarantee)
    assert json.loads(space_to_json(again))["version"] == 2


@pytest.mark.parametrize("version", [1, 2])
def test_a_document_that_does_not_speak_of_weaker_values_permits_none(version):
    document = json.loads(space_to_json(preset("storage-v5").permit_weaker(Guarantee)))
    del document["allow_weaker"]
    assert space_from_json(json.dumps(document | {"version": version})) == preset("storage-v5")


def test_newer_versions_are_refused():
    document = json.loads(space_to_json(preset("storage-v3"))) | {"version": 4, "something": "new"}
    with pytest.raises(SpaceError, match=r"space\.version = 4: is newer than 3, .*; update ascar"):
        space_from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "space.format = 'other': must be 'ascar-space'"),
        ({"version": 0}, "space.version = 0: must be from 1 to 3"),
        ({"version": True}, "space.version = True: must be from 1 to 3"),
        ({"version": "1"}, "space.version = '1': must be from 1 to 3"),
        ({"parameter": []}, "space.parameter: unknown key"),
        ({"parameters": {}}, "space.parameters = {}: must be a list of tables"),
        ({"parameters": [3]}, "space.parameters = [3]: must be a list of tables"),
        ({"parameters": [{}]}, "space.parameters[0].name: missing"),
        ({"parameters": [{"name": "x"}]}, "space.parameters[0].kind: missing; write e.g."),
        ({"constraints": "fs"}, "space.constraints = 'fs': must be a list of formulas or tables"),
        ({"constraints": ["nothing < 1"]}, "unknown parameter 'nothing'"),
        ({"pinned": {"fs": "xfs"}}, "pinned: parameter fs: 'xfs' is not allowed"),
        ({"pinned": []}, "space.pinned = []: must be a table"),
        ({"allow_weaker": ["speed"]}, "allow_weaker: 'speed'"),
        ({"allow_weaker": None}, "space.allow_weaker = None: must be a list of strings"),
        ({"allow_weaker": "durability"}, "space.allow_weaker = 'durability': must be a list"),
        ({"name": 3}, "space.name = 3: must be a string"),
    ],
)
def test_wrong_documents_are_refused(change, message):
    document = json.loads(space_to_json(preset("storage-v3"))) | change
    with pytest.raises(SpaceError) as caught:
        space_from_json(json.dumps(document))
    assert message in caught.value.message


@pytest.mark.parametrize(
    "text",
    ["", "{", "nul", "[]", "3", "\x00", "[" * 100_000, '{"version": 1e999}', b"\xff\xfe", " " * 5_000_000],
    ids=["empty", "open", "null", "list", "number", "zero", "deep", "huge", "bytes", "long"],
)
def test_what_is_no_document_is_refused(text):
    with pytest.raises(SpaceError):
        space_from_json(text)


@given(json_values)
@settings(deadline=None)
def test_any_json_is_read_or_refused(value):
    try:
        space_from_json(json.dumps(value))
    except SpaceError as error:
        message = error.message
    assert "\n" not in message


def test_damaged_documents_are_read_or_refused():
    rng = random.Random(3)
    original = json.loads(space_to_json(preset("storage-v5")))
    junk = [
        None,
        True,
        -1,
        0,
        3,
        1e300,
        "",
        "x",
        "a < b",
        [],
        [1],
        {},
        {"a": 1},
        ["durability"],
        {"x": ["y"]},
    ]
    refused = 0
    for _ in range(400):
        document = json.loads(json.dumps(original))
        place = document if rng.random() < 0.2 else rng.choice(document["parameters"])
        place[rng.choice([*place, "low", "high", "step", "log", "special", "weaker", "when"])] = rng.choice(
            junk
        )
        try:
            space_from_json(json.dumps(document))
        except SpaceError as error:
            refused += "\n" not in error.message
    assert refused > 300


def test_continuous_spaces_survive_json():
    space = Space(
        (
            floating(
                "x",
                (0.1, 10),
                log=True,
                default=0.3,
                cost=ChangeCost.BIOS,
                special={0: "off"},
                weaker={">5": "integrity"},
            ),
            floating("y", (0, 1), step=0.1, default=0.3, cost=ChangeCost.REBOOT, weaker={}, unit="s"),
        ),
        ("x + y < 9",),
    )
    assert space_from_json(space_to_json(space)) == space
    assert not satisfiable(space) or space.count() is None


def test_relations_are_kept_in_version_3_and_their_mistakes_are_told():
    parameters = tuple(boolean(name, default=True, cost=ChangeCost.DYN_APP) for name in "ab")
    space = Space(parameters, (Relation(("a", "b"), ((True, True), (False, False))), "a or not b"))
    document = json.loads(space_to_json(space))
    assert document["version"] == 3
    assert space_from_json(json.dumps(document)) == space
    for wrong, message in (
        (
            {"together": ["a", "b"], "rows": [[True]]},
            "space.constraints[0]: joint values of a, b: a row of 1",
        ),
        (
            {"together": ["a", "b"], "rows": [True]},
            "space.constraints[0].rows = [True]: must be a list of lists",
        ),
        ({"rows": [[True]]}, "space.constraints[0].together: missing; write e.g."),
        ({"together": ["a", "z"], "rows": [[True, True]]}, "unknown parameter 'z'"),
        ({"together": ["a", "b"], "rows": [[True, [1]]]}, "must be a string, a number, true or false"),
    ):
        with pytest.raises(SpaceError) as caught:
            space_from_json(json.dumps(document | {"constraints": [wrong]}))
        assert message in caught.value.message
        assert "\n" not in caught.value.message
