"""Where a search begins by what is known: good configurations, preferred values, a similar study's best."""

from __future__ import annotations

import pytest

from ascar.errors import StudyError
from ascar.optimizers.proposals import Proposal
from ascar.optimizers.starting import start_proposals
from ascar.results.trial import Origin
from ascar.space import Configuration, Space, categorical, integer, ordinal
from ascar.study import StartSection


def space() -> Space:
    return Space(
        (
            categorical("fs", ("ext4", "xfs", "btrfs"), default="ext4", cost="reformat-restore"),
            ordinal("inode", (128, 256, 512), default=256, cost="reformat-restore", when='fs == "xfs"'),
            integer("depth", (1, 64), default=8, cost="dyn-kernel"),
        )
    ).constrain('fs != "btrfs" or depth <= 32')


def proposed(similar=(), advised=None, **keys):
    theirs = [Proposal(Configuration(one), Origin.SIMILAR, "run 7") for one in similar]
    return start_proposals(StartSection(**keys), space(), 1, theirs, advised)


def began(similar=(), **keys):
    return tuple(one.configuration for one in proposed(similar, **keys))


def test_nothing_known_begins_nowhere():
    assert began() == ()


def test_a_known_configuration_is_the_default_with_its_values():
    (found,) = began(configurations=({"fs": "xfs", "inode": 512},))
    assert dict(found) == {"fs": "xfs", "inode": 512, "depth": 8}


def test_a_similar_studys_best_are_adapted_to_this_space():
    theirs = ({"fs": "xfs", "inode": 512, "depth": 64, "gone": 1}, {"fs": "btrfs", "depth": 64})
    found = began(similar=theirs)
    assert dict(found[0]) == {"fs": "xfs", "inode": 512, "depth": 64}
    assert all(space().is_valid(one) for one in found)


def test_preferred_values_alone_are_drawn_and_evenly():
    found = began(preferred={"fs": ["xfs", "ext4"], "depth": [16, 32, 64]}, preferred_trials=12)
    drawn = [(one["fs"], one["depth"]) for one in found]
    assert {depth for _, depth in drawn} == {16, 32, 64}
    assert {fs for fs, _ in drawn} == {"xfs", "ext4"}
    assert len({one["inode"] for one in found if one["fs"] == "xfs"}) > 1, "the others are drawn at random"


def test_preferred_values_that_clash_give_way_to_what_is_valid():
    found = began(preferred={"fs": ["btrfs"], "depth": [64]}, preferred_trials=2)
    assert found
    assert all(space().is_valid(one) for one in found)


def test_known_ones_come_first_then_similar_ones_and_none_twice():
    known, similar = {"fs": "xfs"}, {"fs": "btrfs", "depth": 4}
    found = began(similar=({"fs": "xfs"}, similar), configurations=(known, known), preferred={"depth": [1]})
    assert len(set(found)) == len(found)
    assert [one["fs"] for one in found[:2]] == ["xfs", "btrfs"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"configurations": ({"fs": "zfs"},)}, "start.configurations[0]: parameter fs"),
        ({"configurations": ({}, {"deepness": 1})}, "start.configurations[1]: unknown parameter 'deepness'"),
        ({"configurations": ({"inode": 512},)}, "start.configurations[0].inode = 512: does not apply"),
        ({"configurations": ({"fs": "btrfs", "depth": 64},)}, "start.configurations[0]"),
        ({"preferred": {"fs": ["zfs"]}}, "start.preferred.fs: parameter fs"),
        ({"preferred": {"nodes": [1]}}, "start.preferred.nodes: unknown parameter"),
    ],
)
def test_what_the_space_does_not_have_is_refused_by_its_key(keys, said):
    with pytest.raises(StudyError) as caught:
        began(**keys)
    assert said in caught.value.message


def test_each_says_where_it_comes_from():
    found = proposed(
        similar=({"fs": "btrfs", "depth": 4},), configurations=({"fs": "xfs"},), preferred={"depth": [1]}
    )
    assert [(one.origin, one.reason) for one in found[:3]] == [
        (Origin.KNOWN, "start.configurations[0]"),
        (Origin.SIMILAR, "run 7"),
        (Origin.PREFERRED, "start.preferred"),
    ]


def test_what_a_manual_advises_is_the_default_with_its_values():
    (found,) = proposed(advised={"fs": "xfs", "inode": 512, "elsewhere": 1})
    assert (dict(found.configuration), found.origin) == (
        {"fs": "xfs", "inode": 512, "depth": 8},
        Origin.ADVISED,
    )


def test_advice_that_is_not_possible_here_gives_way():
    assert proposed(advised={"fs": "zfs", "depth": 8}) == (), "an unknown value leaves the default"
    (found,) = proposed(advised={"fs": "btrfs", "depth": 64})
    assert space().is_valid(found.configuration)
    assert proposed(advised={"fs": "xfs"}, advice=False) == ()
