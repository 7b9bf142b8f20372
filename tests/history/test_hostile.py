"""A history from somebody else: it defines its own space, and what it says is exported to a shell."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascar.catalogues.ceph import ceph
from ascar.catalogues.mariadb import mariadb
from ascar.catalogues.postgresql import postgresql
from ascar.catalogues.redis import redis
from ascar.catalogues.rocksdb import rocksdb
from ascar.errors import InputError
from ascar.history import History
from ascar.history.record import run_record
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.space import Choices, Guarantee, Space, categorical, identifier, integer, preset
from ascar.study import Study
from ascar.systems import commands_of
from ascar.systems.catalogue import check_known
from ascar.systems.sqlite import sqlite_space

SPACES = {
    "localfs": lambda: preset("storage-v5"),
    "sqlite": lambda: sqlite_space(exclusive=True),
    "postgresql": lambda: all_of(one.parameter() for one in postgresql().values()),
    "mariadb": lambda: all_of(one.parameter() for one in mariadb().values()),
    "redis": lambda: all_of(one.parameter(one.default) for one in redis().values()),
    "ceph": lambda: all_of(one.parameter() for one in ceph().values()),
    "rocksdb": lambda: all_of(one.parameter() for one in rocksdb().values()),
}
TEXTS = st.one_of(
    st.sampled_from(
        ["none; touch /x", 'none", RUN+="/bin/sh -c id', "none\n", "none,exec", "${f:exec:id}", "no ne"]
    ),
    st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=12),
)


def all_of(parameters):
    """A space of all settings of a server, whether one is installed or not."""
    return Space(tuple(parameters), allow_weaker=tuple(Guarantee))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """An honest export of each kind, as its JSON."""
    found = {}
    for kind, space in SPACES.items():
        folder = tmp_path_factory.mktemp(kind)
        study = Study.parse(
            f'[study]\nname = "s"\nobjective = "maximize x"\nbudget = "1 min"\n[target]\nkind = "{kind}"\n'
        )
        with History(folder / "history.sqlite") as history:
            whole = space()
            with history.begin(study, whole, {}) as run:
                run.finish_trial(Trial(1, whole.default(), Purpose.DEFAULT, TrialState.COMPLETE, score=1.0))
            history.export([1], folder / "run.json")
        found[kind] = json.loads((folder / "run.json").read_text())["runs"][0]
    return found


@pytest.mark.parametrize("kind", ["localfs", "sqlite"])
def test_an_honest_history_comes_in_and_goes_out(exported, kind):
    run, space, trials = run_record(exported[kind], "x")
    configuration = trials[0].configuration
    forms = commands_of(Study.parse(run.text).target, space, configuration, space.names)
    assert forms["shell"]


@pytest.mark.parametrize("kind", sorted(SPACES))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_hostile_history_is_refused_or_says_only_what_the_system_has(exported, kind, data):
    """A value of the attacker's for any categorical parameter: listed, and in force in the trial."""
    record = json.loads(json.dumps(exported[kind]))
    honest = SPACES[kind]()
    named = [
        one for one in honest.parameters if isinstance(one.domain, Choices) and isinstance(one.default, str)
    ]
    victim, value = data.draw(st.sampled_from(named)), data.draw(TEXTS)
    (parameter,) = (one for one in record["space"]["parameters"] if one["name"] == victim.name)
    parameter["values"].append(value)
    if data.draw(st.booleans()):
        parameter["default"] = value
        parameter["native"] = f"vm.x={value}"
    record["trials"][0]["configuration"][victim.name] = value
    if value in victim.domain.values:
        return
    with pytest.raises(InputError) as refused:
        run_record(record, "file 'x'")
    assert "\n" not in refused.value.message
    # And if it was brought in by another way, it does not go out.
    with pytest.raises(InputError):
        commands_of({"kind": kind}, honest, {**honest.default(), victim.name: value}, [victim.name])


def test_parameters_that_no_system_has_are_refused(exported):
    record = json.loads(json.dumps(exported["localfs"]))
    record["space"]["parameters"].append({**record["space"]["parameters"][0], "name": "evil"})
    with pytest.raises(InputError, match="a target of kind 'localfs' has none of that name"):
        run_record(record, "file 'x'")


@pytest.mark.parametrize("value", ["none; touch /x", 'none", RUN+="x', "-n", "a b", "${f:exec:id}"])
def test_the_words_of_a_kernel_are_words(value):
    target = {"kind": "linux", "settings": ["block.DEV.scheduler", "vm.dirty_ratio"], "device": "sda"}
    names = [identifier(name) for name in target["settings"]]
    space = Space(
        (categorical(names[0], ("bfq", value), default="bfq"), integer(names[1], (1, 9), default=1))
    )
    with pytest.raises(InputError, match="a target of kind 'linux' takes"):
        check_known(target, space)
    check_known(target, space.only(names[0], ["bfq"]), {names[0]: "mq-deadline", names[1]: 37})
    with pytest.raises(InputError, match="a target of kind 'linux' takes"):
        check_known(target, space.only(names[0], ["bfq"]), {names[1]: "37"})
