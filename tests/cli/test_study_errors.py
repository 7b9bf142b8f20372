"""Every mistake in a study file is one line that names key, value and what is allowed; nothing is touched."""

from __future__ import annotations

import codecs
import os
import tempfile
from pathlib import Path

import pytest

from ascar.study import Study

GOOD = """
[study]
name = "s"
objective = "maximize throughput_ops_per_s"
budget = "1 min"
[target]
kind = "simulated"
metrics = { throughput_ops_per_s = "1000 - depth" }
[space.parameters.depth]
kind = "integer"
low = 1
high = 100
default = 50
cost = "dyn-kernel"
[stop]
trials = 3
"""


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


MISTAKES = {
    "constraints that exclude each other": (
        changed(
            "[target]",
            'constraints = ["throughput_ops_per_s < 3", "5 < throughput_ops_per_s"]\n[target]',
        ),
        [
            "'5 < throughput_ops_per_s'",
            "'throughput_ops_per_s < 3'",
            "no throughput_ops_per_s satisfies both",
        ],
    ),
    "a floor above a constraint": (
        changed("[target]", 'constraints = ["throughput_ops_per_s <= 10"]\n[target]')
        + '[[guard.floor]]\nmetric = "throughput_ops_per_s"\nminimum = 11\n',
        ["throughput_ops_per_s >= 11", "throughput_ops_per_s <= 10", "change one of them"],
    ),
    "most and least of one metric": (
        changed(
            '"maximize throughput_ops_per_s"',
            '["maximize throughput_ops_per_s", "minimize throughput_ops_per_s"]',
        ),
        ["study.objective[1] = 'minimize throughput_ops_per_s'", "study.objective[0]", "once"],
    ),
    "a load that really runs beside virtual time": (
        GOOD + '[workload]\nkind = "command"\nargv = ["sleep", "1"]\n',
        ["workload.kind = 'command'", "target.kind = 'simulated'", "leave [workload] out"],
    ),
    "unknown key": (
        changed("[stop]", "[stop]\ntrails = 4"),
        ["stop.trails", "trials_without_gain", "'trials'"],
    ),
    "unknown table": (GOOD + "[stopp]\nx = 1\n", ["stopp", "stop"]),
    "unknown key of a target": (
        changed("[space", "noise = 1\n[space"),
        ["target.noise", "noise_relative_sd"],
    ),
    "missing key": (changed('budget = "1 min"\n', ""), ["study.budget", "missing"]),
    "missing table": (changed('[target]\nkind = "simulated"', "[other]"), ["other"]),
    "wrong type": (changed("trials = 3", 'trials = "3"'), ["stop.trials", "'3'", "a whole number"]),
    "wrong type in a list": (
        changed("[target]", "constraints = [1]\n[target]"),
        ["study.constraints", "a list, each text"],
    ),
    "number for a duration": (changed('"1 min"', "10"), ["study.budget = 10: must be text such as '10 min'"]),
    "unknown unit": (changed("1 min", "10 parsecs"), ["study.budget = '10 parsecs': unknown unit"]),
    "one text for a list": (
        changed('kind = "simulated"', 'kind = "localfs"\nfile_systems = "ext4"'),
        ["target.file_systems = 'ext4': must be a list such as ['ext4', 'xfs']"],
    ),
    "a word that is none of a few": (
        changed('kind = "simulated"', 'kind = "localfs"\nstate = "frsh"'),
        ["target.state = 'frsh': must be one of 'auto', 'fresh', 'restored', 'reuse'"],
    ),
    "a number for yes or no": (
        changed('kind = "simulated"', 'kind = "localfs"\ndirect_io = 3'),
        ["target.direct_io = 3: must be true or false"],
    ),
    "number out of range": (changed("trials = 3", "trials = 0"), ["stop.trials", "0", "from 1"]),
    "duration without a unit": (changed('"1 min"', '"60"'), ["study.budget", "'60'", "'60 s'"]),
    "no time": (changed('"1 min"', '"0 s"'), ["study.budget", "'0 s'", "longer than zero"]),
    "impossible range": (
        changed("high = 100", "high = 0"),
        ["space.parameters.depth", "low = 1", "high = 0"],
    ),
    "default out of range": (changed("default = 50", "default = 500"), ["depth", "500", "100"]),
    "unknown cost": (changed("dyn-kernel", "cheap"), ["depth", "'cheap'", "dyn-kernel"]),
    "unknown parameter": (GOOD + "[space]\npinned = { deph = 3 }\n", ["space.pinned", "'deph'", "'depth'"]),
    "value that is not allowed": (GOOD + "[space]\npinned = { depth = 3.5 }\n", ["depth", "3.5"]),
    "unknown preset": (
        GOOD + '[space]\npreset = "storage-v9"\n',
        ["space.preset", "storage-v9", "storage-v5"],
    ),
    "unsatisfiable constraints": (
        GOOD + '[space]\nconstraints = ["depth < 10", "depth > 20"]\n',
        ["space.constraints", "depth < 10", "depth > 20"],
    ),
    "bad formula": (GOOD + '[space]\nconstraints = ["depth <"]\n', ["space.constraints", "'depth <'"]),
    "formula that is code": (
        GOOD + "[space]\nconstraints = [\"__import__('os').system('id')\"]\n",
        ["space.constraints", "__import__"],
    ),
    "bad objective": (changed("maximize", "increase"), ["study.objective", "increase", "maximize FORMULA"]),
    "bad formula in the objective": (
        changed("maximize throughput_ops_per_s", "maximize 1 +"),
        ["study.objective"],
    ),
    "a metric that nobody reports": (
        changed("maximize throughput_ops_per_s", "maximize throughput_mb_per_s"),
        ["study.objective", "'throughput_mb_per_s'", "did you mean 'throughput_ops_per_s'?"],
    ),
    "a metric that nobody reports, in a constraint": (
        changed("[target]", 'constraints = ["latency_ms_p99 < 1"]\n[target]'),
        ["study.constraints[0] = 'latency_ms_p99 < 1'", "change_s, deferred_s, load_s, throughput_ops_per_s"],
    ),
    "a floor of a metric that nobody reports": (
        GOOD + '[[guard.floor]]\nmetric = "iops"\nminimum = 11\n',
        ["guard", "'iops >= 11'", "throughput_ops_per_s"],
    ),
    "a rule over a metric that nobody reports": (
        GOOD + '[[guard.rule]]\nforbid = "depth > 3 and iops > 1"\nwhy = "slow"\n',
        ["guard.rule[0].forbid", "'iops'", "throughput_ops_per_s"],
    ),
    "a target of a metric that nobody reports": (
        changed("trials = 3", '[[stop.any]]\ntarget = "iops > 3"'),
        ["stop.any[0].target = 'iops > 3'", "throughput_ops_per_s"],
    ),
    "bad stop target": (GOOD + 'target = "throughput >"\n', ["stop.target", "'throughput >'"]),
    "unknown target": (changed('"simulated"', '"simulatd"'), ["target.kind", "'simulatd'", "simulated"]),
    "unknown workload": (GOOD + '[workload]\nkind = "foi"\n', ["workload.kind", "'foi'", "fio"]),
    "unknown optimizer": (GOOD + '[optimizer]\nkind = "genetik"\n', ["optimizer.kind", "genetik", "genetic"]),
    "unknown option of an optimizer": (
        GOOD + '[optimizer]\nkind = "genetic"\npopulatoin = 3\n',
        ["optimizer.populatoin", "population"],
    ),
    "bad name": (changed('"s"', '"../s"'), ["study.name", "'../s'", "letters"]),
    "no TOML": ("[study\nname", ["TOML", "line"]),
    "empty": ("", ["study", "missing"]),
}


@pytest.mark.parametrize("command", ["tune", "sweep"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_nothing_is_touched(ascar, tmp_path, untouched, mistake, command):
    text, named = MISTAKES[mistake]
    file = tmp_path / "study.toml"
    file.write_text(text)
    done = ascar(command, file)
    assert done.status == 2
    assert done.out == ""
    for name in named:
        assert name in done.error, done.error
    assert len(done.error) < 600


def test_the_good_study_really_is_good(ascar, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(GOOD)
    assert ascar("tune", file).status in (0, 3)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (None, ["No such file", "ascar init"]),
        (b"\xff\xfe[study]", ["UTF-8"]),
        (b"# " + b"x" * 2_000_000, ["1000000 bytes"]),
        (b"a = " + b"[" * 100_000, ["TOML"]),
        (b"\0", ["TOML"]),
        (b"[study]\na = = 1\n", ["study.toml", "line 2"]),
        (b"\xef\xbb\xbf[study]\n", ["study.name", "missing"]),
        ("[study]\n".encode("utf-16"), ["study.toml", "UTF-16", "save it as UTF-8"]),
    ],
)
def test_a_file_that_is_no_study(ascar, tmp_path, untouched, content, named):
    file = tmp_path / "study.toml"
    if content is not None:
        file.write_bytes(content)
    done = ascar("tune", file)
    assert done.status == 2
    for name in named:
        assert name in done.error


def test_a_study_that_begins_with_a_byte_order_mark_is_the_same_study(ascar, tmp_path):
    digests = []
    for name, mark in (("plain.toml", b""), ("marked.toml", codecs.BOM_UTF8)):
        file = tmp_path / name
        file.write_bytes(mark + GOOD.encode())
        digests.append(Study.read(file).digest)
        assert ascar("space", file).status == 0
    assert digests[0] == digests[1]


def test_a_directory_is_no_study(ascar, tmp_path, untouched):
    assert "directory" in ascar("tune", tmp_path).error.lower()


@pytest.mark.parametrize("command", [("tune",), ("space",), ("check",), ("capes", "up")])
def test_a_pipe_that_nobody_writes_to_is_no_study(ascar, tmp_path, command):
    pipe = tmp_path / "study.toml"
    os.mkfifo(pipe)
    done = ascar(*command, pipe)
    assert done.status == 2
    assert str(pipe) in done.error and "FIFO" in done.error


def test_a_pipe_in_the_memory_of_the_machine_is_no_study_either(ascar, untouched):
    """/dev/shm is no folder of devices; what a shell hands over by its number, in /dev/fd, is read."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        pipe = Path(folder) / "study.toml"
        os.mkfifo(pipe)
        assert "FIFO" in ascar("tune", pipe).error


def test_a_pipe_that_never_ends_is_no_study(ascar, untouched):
    assert ascar("tune", "/dev/zero").status == 2


@pytest.mark.parametrize("budget", ["soon", "10", "0 s", "-1 min"])
def test_a_wrong_budget_on_the_command_line(ascar, tmp_path, untouched, budget):
    file = tmp_path / "study.toml"
    file.write_text(GOOD)
    done = ascar("tune", file, f"--budget={budget}")
    assert done.status == 2
    assert "--budget" in done.error
    assert repr(budget) in done.error


def test_errors_are_json_too(ascar, tmp_path, untouched):
    file = tmp_path / "study.toml"
    file.write_text(changed("trials = 3", "trials = 0"))
    done = ascar("tune", file, "--json")
    assert done.status == 2
    assert done.document["error"] == {"kind": "StudyError", "message": done.error, "exit_status": 2}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["history", "purge", "x"], "'RUN...': 'x' is not a valid int"),
        (["export", "1", "--as", "xx"], "'--as': 'xx' is not one of"),
        (["sweep", "study.toml", "--replicates", "0"], "--replicates = 0: nothing would be measured"),
        (["sweep", "study.toml", "--replicates", "1001"], "1001 is not in the range 0<=x<=1000"),
        (["sweep", "study.toml", "--subset", "5"], "--subset-replicates = 0: say both"),
    ],
)
def test_the_command_lines_mistakes_are_said_alike(ascar, arguments, said):
    done = ascar(*arguments)
    assert done.status == 2
    assert said in done.error
    assert "Value error" not in done.error
    assert "Input should" not in done.error
