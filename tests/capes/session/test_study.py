"""A study of the online loop, and the files that are made from it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from ascar.capes.process.learner_file import read_plan
from ascar.capes.session.environment import RequestedEnvironment
from ascar.capes.session.files import agent_text, interface_text, learner_text, users
from ascar.capes.session.study import OnlineStudy
from ascar.errors import InputError, StudyError
from ascar.toml import toml_text
from studies import environment_of

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "capes-localfs.toml"
SMALL = """
[study]
name = "small one.2"
objective = ["maximize ops_per_s", "minimize latency_ms"]
[target]
kind = "linux"
settings = ["vm.dirty_ratio"]
[space.parameters.vm_dirty_ratio]
low = 5
high = 60
[online]
""".replace("small one.2", "small.2")


def test_the_files_say_what_the_study_says():
    study = OnlineStudy.read(EXAMPLE)
    environment = environment_of(study, "loop7", has_load=True)
    agent = tomllib.loads(agent_text(study, environment, Path("/tmp/x/load.jsonl")))
    assert agent["knob"][:2] == [
        {"name": "block.loop7.scheduler"},
        {"name": "block.loop7.nr_requests", "minimum": 16, "maximum": 128},
    ]
    assert agent["program"] == []
    assert agent["collector"][0] == {"kind": "block", "devices": ["loop7"]}
    assert agent["collector"][-1]["command"][-1] == "/tmp/x/load.jsonl"
    interface = tomllib.loads(interface_text(study, environment))
    assert interface["metric"] == [
        {
            "name": "throughput_ops_per_s",
            "indicators": ["load.throughput_ops_per_s"],
            "aggregate": "mean",
        }
    ]
    assert interface["knob"][0]["choices"][0] == "none"
    assert interface["knob"][2] == {
        "name": "block.loop7.read_ahead_kb",
        "scope": "all",
        "minimum": 64,
        "maximum": 2560,
        "step": 32,
    }
    assert interface["mode"] == "automatic"
    assert tomllib.loads(learner_text(study, environment))["ratios"] == ["block.loop7.read_ahead_kb"]


def test_constraints_of_the_space_are_rules_in_the_names_of_the_session():
    study = OnlineStudy.read(EXAMPLE)
    rules = tomllib.loads(interface_text(study, environment_of(study, "loop7")))["rule"]
    assert [one["forbid"] for one in rules] == [
        "not (vm_dirty_background_ratio < vm_dirty_ratio)",
        'not (block_loop7_scheduler != "none" or block_loop7_nr_requests <= 128)',
    ]
    without = msgspec.structs.replace(study, space={**study.space, "tuned": ["vm_dirty_ratio"]})
    without.space["parameters"] = {}
    (rule,) = tomllib.loads(interface_text(without, environment_of(without, "loop7")))["rule"]
    assert re.fullmatch(r"not \(\d+ < vm_dirty_ratio\)", rule["forbid"])


def test_pace_and_guard_go_to_the_interface():
    text = SMALL + "[guard.pace.vm_dirty_ratio]\nchange_max = 5\ninterval_ticks = 3\n"
    text += "[[guard.floor]]\nmetric = 'ops_per_s'\nminimum = 10\n"
    study = OnlineStudy.parse(text)
    interface = tomllib.loads(interface_text(study, environment_of(study)))
    assert (interface["knob"][0]["change_max"], interface["knob"][0]["interval_ticks"]) == (5, 3)
    assert interface["floor"] == [{"metric": "ops_per_s", "minimum": 10}]
    wrong = OnlineStudy.parse(text.replace("pace.vm_dirty_ratio", "pace.dirty"))
    with pytest.raises(StudyError, match="guard.pace.dirty: no such parameter; there are vm_dirty_ratio"):
        RequestedEnvironment.of(wrong)


def test_a_target_whose_parameters_need_a_pause_is_refused():
    study = msgspec.structs.replace(OnlineStudy.parse(SMALL), target={"kind": "sqlite"}, space={})
    with pytest.raises(StudyError, match="none of its 10 parameters can change while the system works"):
        environment_of(study)


def test_the_learner_reads_its_file(tmp_path):
    study = OnlineStudy.parse(SMALL)
    assert study.session == "small-2"
    (tmp_path / "learner.toml").write_text(learner_text(study, environment_of(study)))
    plan = read_plan(tmp_path / "learner.toml")
    assert plan.file.session == "small-2"
    assert plan.objective.text == study.objective.text


def test_each_part_may_do_no_more_than_it_needs():
    known = {one.name: one for one in users("s", "n")}
    assert known["agent"].publish == ("ascar.capes.s.agents.n.*",)
    assert known["viewer"].publish == ("ascar.capes.s.history.viewer",)
    asks = [(one.name, subject) for one in users("s", "n") for subject in one.publish if "control" in subject]
    assert ("operator", "ascar.capes.s.control.operator.*") in asks
    assert [subject for name, subject in asks if name == "learner"] == [
        "ascar.capes.s.control.learner.status"
    ]
    for name, one in known.items():
        for subject in (*one.publish, *one.subscribe):
            assert name == "interface" or not subject.startswith("_INBOX") or subject == f"_INBOX.{name}.>"


def test_toml_is_read_as_it_was_written():
    table = {
        "text": 'a "quoted" \\ word\n\x7f',
        "number": 1e-7,
        "flag": True,
        "list": ["a", 2],
        "none": None,
        "one": {"b.c": {"d": [1, 2]}},
        "many": [{"x": 1}, {"y": {"z": "ä"}}],
        "empty": [],
    }
    expected = {key: value for key, value in table.items() if value is not None}
    assert tomllib.loads(toml_text(table)) == expected


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[online]", "[onlin]", "online: missing"),
        ("[online]", "[online]\nmood = 1", "online.mood: unknown key"),
        ("[online]", "[capes]", "capes: is now [online]"),
        ("[target]", "[tarket]", "target: missing"),
        ("high = 60", "high = 5", "leaves out the default"),
        ("high = 60", "values = ['a']", "space.parameters.vm_dirty_ratio"),
        ("high = 60", "high = 101", "must lie within"),
        ("[online]", "[online]\n[online.proof]\nphase = '7 s'", "longer than settle"),
        ("[online]", "[online]\n[online.proof]\nphase = '2 h'", "by 3 to 600 ticks"),
        ("[online]", "[online]\nmode = 'auto'", "online.mode = 'auto'"),
        ("vm.dirty_ratio", "vm.*", "is not a setting of the kernel"),
        ("small.2", "small/2", "study.name"),
        ("maximize ops", "raise ops", "objective[0]"),
        ("[online]", "[online]\nsession = 'a b'", "online.session = 'a b'"),
        ("[online]", "[online]\ncontact_s = 1", "online.contact_s = 1"),
        ("[online]", "[online]\n[guard.pace.x]\nchange_max = 0", "guard.pace.x.change_max"),
        ("[online]", "[online]\n[[guard.floor]]\nsince = 2020-01-01", "guard.floor[0].since"),
        ("vm.dirty_ratio", "vm.dirty_ration", "`ascar space linux` lists them"),
        ("vm.dirty_ratio", "vm.dirty_ration", "did you mean 'vm.dirty_ratio'?"),
        ("vm.dirty_ratio", "kernel.panic", "is not a setting of the kernel"),
        ('"vm.dirty_ratio"', '"block.DEV.scheduler"', "target.device: missing"),
    ],
)
def test_mistakes_are_named(old, new, words):
    text = SMALL.replace(old, new)
    assert text != SMALL
    with pytest.raises(InputError) as caught:
        RequestedEnvironment.of(OnlineStudy.parse(text))
    assert words in caught.value.message, caught.value.message


def test_a_study_for_the_other_loop_is_told_so():
    with pytest.raises(StudyError, match="online: missing"):
        OnlineStudy.parse("[study]\nname = 'x'\nobjective = 'maximize y'\nbudget = '1 min'\n")


def test_what_is_no_file_is_told(tmp_path):
    for content in (b"\xff\xfe", b"x" * 2_000_000):
        (tmp_path / "study.toml").write_bytes(content)
        with pytest.raises(StudyError, match="study file"):
            OnlineStudy.read(tmp_path / "study.toml")
    with pytest.raises(StudyError, match="No such file"):
        OnlineStudy.read(tmp_path / "none.toml")
