"""A study of the online loop, and the files that are made from it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ascar.capes.process.learner_file import read_plan
from ascar.capes.session.files import agent_text, interface_text, learner_text, users
from ascar.capes.session.study import OnlineStudy
from ascar.errors import InputError, StudyError
from ascar.toml import toml_text

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "capes-localfs.toml"
SMALL = """
[study]
name = "small one.2"
objective = ["maximize ops_per_s", "minimize latency_ms"]
[[capes.knob]]
name = "vm.dirty_ratio"
minimum = 5
maximum = 60
""".replace("small one.2", "small.2")


def test_the_files_say_what_the_study_says():
    study = OnlineStudy.read(EXAMPLE)
    agent = tomllib.loads(agent_text(study, "loop7", Path("/tmp/x/load.jsonl")))
    assert [one["name"] for one in agent["knob"]][:2] == ["block.loop7.scheduler", "block.loop7.nr_requests"]
    assert agent["collector"][0] == {"kind": "block", "devices": ["loop7"]}
    assert agent["collector"][-1]["command"][-1] == "/tmp/x/load.jsonl"
    interface = tomllib.loads(interface_text(study, "loop7"))
    assert interface["metric"] == [
        {
            "name": "throughput_ops_per_s",
            "indicators": ["load.throughput_ops_per_s"],
            "aggregate": "mean",
        }
    ]
    assert interface["knob"][0]["choices"][0] == "none"
    assert interface["mode"] == "automatic"


def test_the_learner_reads_its_file(tmp_path):
    study = OnlineStudy.parse(SMALL)
    assert study.session == "small-2"
    (tmp_path / "learner.toml").write_text(learner_text(study, None))
    plan = read_plan(tmp_path / "learner.toml")
    assert plan.file.session == "small-2"
    assert plan.objective.text == study.objective.text


def test_each_part_may_do_no_more_than_it_needs():
    known = {one.name: one for one in users("s", "n")}
    assert known["agent"].publish == ("ascar.capes.s.agents.n.>",)
    assert known["viewer"].publish == ("ascar.capes.s.history",)
    assert not any("control" in one for one in known["agent"].publish + known["viewer"].publish)


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
        ("[[capes.knob]]", "[[capes.knobs]]", "capes.knobs: unknown key"),
        ("maximum = 60", "maximum = 5", "minimum = 5.0 must be below maximum = 5.0"),
        ("maximum = 60", "choices = ['a']", "give minimum and maximum, or choices"),
        ("maximum = 60", "maximum = 60\n[capes.proof]\nphase = '7 s'", "longer than settle"),
        ("maximum = 60", "maximum = 60\n[capes.proof]\nphase = '2 h'", "by 3 to 600 ticks"),
        ("maximum = 60", "maximum = 60\n[capes]\nmode = 'auto'", "capes"),
        ("vm.dirty_ratio", "block.*.scheduler", "named once, without *"),
        ("small.2", "small/2", "study.name"),
        ("maximize ops", "raise ops", "objective[0]"),
        ("[[capes.knob]]", "[workload]\nkind = 'fio'\n[[capes.knob]]", "workload: needs a [target]"),
        ("[[capes.knob]]\n", "[capes]\nsession = 'a b'\n[[capes.knob]]\n", "capes.session = 'a b'"),
        ("[[capes.knob]]\n", "[capes]\ncontact_s = 1\n[[capes.knob]]\n", "capes.contact_s = 1"),
        ("vm.dirty_ratio", "vm.dirty_ration", "`ascar space linux` lists them"),
        ("vm.dirty_ratio", "vm.dirty_ration", "did you mean 'vm.dirty_ratio'?"),
        ("vm.dirty_ratio", "kernel.panic", "is not a setting that the keeper may change"),
        ("maximum = 60", "maximum = 101", "maximum = 101: the keeper allows 0 to 100"),
    ],
)
def test_mistakes_are_named(old, new, words):
    text = SMALL.replace(old, new)
    assert text != SMALL
    with pytest.raises(InputError) as caught:
        OnlineStudy.parse(text)
    assert words in caught.value.message, caught.value.message


def test_a_study_for_the_other_loop_is_told_so():
    with pytest.raises(StudyError, match="capes: missing"):
        OnlineStudy.parse("[study]\nname = 'x'\nobjective = 'maximize y'\nbudget = '1 min'\n")


def test_what_is_no_file_is_told(tmp_path):
    for content in (b"\xff\xfe", b"x" * 2_000_000):
        (tmp_path / "study.toml").write_bytes(content)
        with pytest.raises(StudyError, match="study file"):
            OnlineStudy.read(tmp_path / "study.toml")
    with pytest.raises(StudyError, match="No such file"):
        OnlineStudy.read(tmp_path / "none.toml")
