"""A history from somebody else: it defines its own space, and what it says is exported to a shell."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascar.application import drift_of, found_in_force, planned
from ascar.catalogues.ceph import ceph
from ascar.catalogues.mariadb import mariadb
from ascar.catalogues.nfs import nfs
from ascar.catalogues.postgresql import postgresql
from ascar.catalogues.redis import redis
from ascar.catalogues.rocksdb import rocksdb
from ascar.cli.studies import Confirmed, study_of_run
from ascar.errors import InputError, Refused
from ascar.history import History
from ascar.history.record import run_record
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.space import Choices, Guarantee, Space, categorical, identifier, integer, preset
from ascar.space.study_table import study_space
from ascar.study import Study
from ascar.systems import commands_of, open_target, options_of, system_of
from ascar.systems.catalogue import check_known
from ascar.systems.lustre.client import LustreClient
from ascar.systems.nfs import nfs_space
from ascar.systems.place import Place
from ascar.systems.sqlite import sqlite_space
from ascar.toml import toml_text

SPACES = {
    "localfs": lambda: preset("storage-v5"),
    "sqlite": lambda: sqlite_space(exclusive=True),
    "postgresql": lambda: all_of(one.parameter() for one in postgresql().values()),
    "mariadb": lambda: all_of(one.parameter() for one in mariadb().values()),
    "redis": lambda: all_of(one.parameter(one.default) for one in redis().values()),
    "ceph": lambda: all_of(one.parameter() for one in ceph().values()),
    "nfs": lambda: nfs_space(nfs().values(), {}),
    "rocksdb": lambda: all_of(one.parameter() for one in rocksdb().values()),
    "lustre": lambda: LustreClient(options_of(TARGETS["lustre"])).space,
}
TARGETS = {
    **{kind: {"kind": kind} for kind in SPACES},
    "lustre": {"kind": "lustre", "file_system": "scratch", "path": "/scratch/a b", "osts": 4},
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
        tables = {
            "study": {"name": "s", "objective": "maximize x", "budget": "1 min"},
            "target": TARGETS[kind],
        }
        study = Study.parse(toml_text(tables))
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
        commands_of(TARGETS[kind], honest, {**honest.default(), victim.name: value}, [victim.name])


@pytest.mark.parametrize("number", ["7; touch /x", "$(id)", True, [7], float("nan")])
def test_a_number_of_lustre_is_no_text(exported, number):
    record = json.loads(json.dumps(exported["lustre"]))
    record["trials"][0]["configuration"]["osc_max_dirty_mb"] = number
    with pytest.raises(InputError):
        run_record(record, "file 'x'")
    honest = SPACES["lustre"]()
    with pytest.raises(InputError):
        values = {**honest.default(), "osc_max_dirty_mb": number}
        commands_of(TARGETS["lustre"], honest, values, ["osc_max_dirty_mb"])


def test_what_a_target_of_lustre_says_is_quoted():
    target = {"kind": "lustre", "file_system": "scratch", "path": "/scratch/$(touch x); y", "osts": 4}
    space = LustreClient(options_of(target)).space
    values = {**space.default(), "layout": "plain", "stripe_count": 2, "stripe_size": 1 << 20}
    (line,) = (one for one in commands_of(target, space, values, ["layout"])["shell"] if one[0] != "#")
    assert shlex.split(line)[-1] == target["path"]


PROGRAM = """
[study]
name = "theirs"
objective = "maximize x"
budget = "1 min"
[target]
kind = "program"
apply = ["touch", "MARK", "{name}", "{value}"]
check = ["touch", "MARK"]
restart = { dyn-app = ["touch", "MARK"] }
[space.parameters.depth]
kind = "integer"
low = 1
high = 9
default = 1
cost = "dyn-app"
[workload]
kind = "command"
argv = ["touch", "MARK"]
metrics = { x = "regex:([0-9]+)" }
"""


def test_no_command_of_an_imported_run_is_run_and_its_export_says_whose_they_are(tmp_path):
    mark = tmp_path / "mark"
    study = Study.parse(PROGRAM.replace("MARK", str(mark)))
    space = study_space(study, open_target(study.target).space)
    best = {**space.default(), "depth": 5}
    with History(tmp_path / "theirs.sqlite") as history:
        with history.begin(study, space, {}) as run:
            run.finish_trial(Trial(1, space.validate(best), Purpose.DEFAULT, TrialState.COMPLETE, score=1.0))
        assert (run.imported, run.origin_notes) == (None, [])
        history.export([1], tmp_path / "run.json")
    with History(tmp_path / "ours.sqlite") as history:
        (number,) = history.import_runs(tmp_path / "run.json")
        run = history.run(number)
        assert run.imported == str(tmp_path / "run.json")
        for look in (found_in_force, planned, drift_of):
            with pytest.raises(Refused, match=r"run 1 was imported from .*none of it is run"):
                look(run, run.study.target, run.trials()[0].configuration, Place())
        with pytest.raises(Refused, match=r"run 1 was imported from .*none of it is run"):
            study_of_run(run, None, Confirmed())
        forms = commands_of(
            run.study.target, run.space, space.validate(best), ["depth"], notes=run.origin_notes
        )
        assert forms["shell"][0].startswith("# run 1 was imported from")
        assert any(line.startswith("touch ") for line in forms["shell"][1:])
    assert not mark.exists()


@pytest.mark.parametrize("kind", sorted(SPACES))
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_text_where_a_number_belongs_is_refused(exported, kind, data):
    """A value of the attacker's for any parameter of numbers, in force in the trial, or by another way."""
    honest = SPACES[kind]()
    known = system_of(TARGETS[kind]).catalogue(options_of(TARGETS[kind]))
    numbers = [name for name in honest.names if known[name].numbers and not known[name].words]
    victim = data.draw(st.sampled_from(numbers))
    value = data.draw(TEXTS.filter(lambda text: text not in known[victim].choices))
    record = json.loads(json.dumps(exported[kind]))
    record["trials"][0]["configuration"][victim] = value
    with pytest.raises(InputError):
        run_record(record, "file 'x'")
    with pytest.raises(InputError):
        commands_of(TARGETS[kind], honest, {**honest.default(), victim: value}, [victim])


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
