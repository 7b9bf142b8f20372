from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ascar.capes.session.environment import RequestedEnvironment
from ascar.capes.session.files import agent_text, interface_text
from ascar.capes.session.study import GuardSection, OnlineSection, OnlineStudy, ProofSection
from ascar.extension import kinds, load
from ascar.starter.keys import keys_of, options_of
from ascar.study import (
    MeasurementSection,
    RecommendSection,
    StartSection,
    StopSection,
    Study,
    StudySection,
    VerifySection,
)
from studies import environment_of

TARGETS = kinds("ascar.systems")
SECTIONS = {
    "study": StudySection,
    "measurement": MeasurementSection,
    "start": StartSection,
    "stop": StopSection,
    "verify": VerifySection,
    "recommend": RecommendSection,
}


@pytest.fixture
def text(ascar):
    def make(target):
        return ascar("init", target, "--out", "-", "--json").document["text"]

    return make


@pytest.mark.parametrize("target", TARGETS)
def test_what_it_writes_is_a_study(target, text):
    study = Study.parse(text(target))
    assert study.target["kind"] == target


@pytest.mark.parametrize("target", TARGETS)
def test_every_key_is_there_with_its_meaning(target, text):
    lines = text(target).splitlines()
    structs = {**SECTIONS, "target": options_of(load("ascar.systems", target, ""))}
    for section, struct in structs.items():
        begin = lines.index(f"[{section}]")
        end = next((i for i in range(begin + 1, len(lines)) if lines[i].startswith("[")), len(lines))
        part = lines[begin:end]
        for key in keys_of(struct):
            assert key.meaning, f"{section}.{key.name} is explained in its docstring"
            place = next(i for i, line in enumerate(part) if re.match(rf"#?{key.name} = ", line))
            assert part[place - 1].startswith("# "), "an explanation stands above each"


@pytest.mark.parametrize("target", TARGETS)
def test_every_key_that_is_left_out_can_be_put_in(target, text):
    """Each "#key = value", without its "#", is TOML of the right type."""
    written = text(target)
    put_in = re.sub(r"^#(\w+ = )", r"\1", written, flags=re.MULTILINE)
    table = tomllib.loads(put_in)
    for section, struct in SECTIONS.items():
        assert set(table[section]) == {key.name for key in keys_of(struct)}
    # One at a time: some exclude each other.
    for key in re.findall(r"^#(\w+) = ", written.partition("[optimizer]")[2], flags=re.MULTILINE):
        Study.parse(re.sub(rf"^#({key} = )", r"\1", written, flags=re.MULTILINE))


@pytest.mark.parametrize("target", TARGETS)
def test_a_preset_is_shown_where_there_is_one(target, text):
    table = text(target).partition("\n[space]\n")[2].partition("\n[")[0]
    assert bool(re.search(r"^#?preset = ", table, flags=re.MULTILINE)) == (target == "localfs")


def test_it_writes_a_file_of_the_target_s_name_and_never_over_another(ascar, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = ascar("init", "simulated")
    assert "ascar tune simulated.toml" in done.out
    file = Path("simulated.toml")
    file.write_text("mine")
    done = ascar("init", "simulated")
    assert done.status == 2
    assert "--force" in done.error
    assert file.read_text() == "mine"
    assert ascar("init", "simulated", "--force").status == 0
    assert Study.read(file).name == "simulated"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["simulated.toml"]


def test_it_prints_where_that_is_wanted(ascar, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Study.parse(ascar("init", "sqlite", "--out", "-").out).name == "sqlite"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["localsf"], "'localfs'"),
        (["simulated", "--out", "/nosuch/study.toml"], "/nosuch/study.toml"),
        (["simulated", "--out", "/proc/study.toml", "--force"], "/proc/study.toml"),
    ],
)
def test_what_cannot_be_written_is_named(ascar, arguments, named):
    done = ascar("init", *arguments)
    assert done.status == 2
    assert named in done.error


def test_the_simulated_one_can_be_tuned_as_it_is(ascar, tmp_path):
    file = tmp_path / "study.toml"
    assert ascar("init", "simulated", "--out", file).status == 0
    # As it is, but for its end: its budget of the simulated clock's time is hundreds of trials.
    file.write_text(re.sub(r"^#trials = \d+$", "trials = 25", file.read_text(), flags=re.MULTILINE))
    document = ascar("tune", file, "--quiet", "--json").document
    assert document["verdict"]["kind"] == "improved"


def test_a_file_system_is_tuned_for_filebench_s_mail_server_where_that_can_be_run(text, monkeypatch):
    from ascar.program import node_binary

    monkeypatch.setattr(node_binary.sys, "executable", "/nowhere/python")
    monkeypatch.setattr(node_binary.shutil, "which", lambda _: "/usr/bin/ascard")
    assert Study.parse(text("localfs")).workload == {"kind": "filebench", "personality": "mailserver"}
    monkeypatch.setattr(node_binary.shutil, "which", lambda _: None)
    assert Study.parse(text("localfs")).workload == {"kind": "fio", "preset": "small-files-fsync"}


@pytest.mark.parametrize("target", ["localfs", "sqlite"])
def test_the_real_ones_can_be_looked_at_as_they_are(ascar, tmp_path, target):
    file = tmp_path / "study.toml"
    ascar("init", target, "--out", file)
    assert ascar("space", file, "--json").document["valid_configurations"] > 1000


ONLINE_SECTIONS = {"[guard]": GuardSection, "[online]": OnlineSection, "[online.proof]": ProofSection}
SHOWN_AS_TABLES = {"metric", "proof", "pace"}


@pytest.mark.parametrize("target", ["linux", "localfs", "program"])
def test_a_study_for_both_loops_watches_and_changes_nothing_yet(ascar, tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    assert f"ascar capes up {target}.toml" in ascar("init", target, "--online").out
    path = Path(f"{target}.toml")
    study = OnlineStudy.read(path)
    assert (study.name, study.online.mode, study.target["kind"]) == (target, "observe", target)
    assert Study.read(path).name == target
    RequestedEnvironment.of(study)
    lines = path.read_text().splitlines()
    for header, struct in ONLINE_SECTIONS.items():
        begin = lines.index(header)
        end = next((i for i in range(begin + 1, len(lines)) if lines[i].startswith("[")), len(lines))
        part = lines[begin:end]
        for key in keys_of(struct):
            assert key.meaning, f"{header} {key.name} is explained in its docstring"
            if key.name in SHOWN_AS_TABLES:
                continue
            place = next(i for i, line in enumerate(part) if re.match(rf"#?{key.name} = ", line))
            assert part[place - 1].startswith("# "), "an explanation stands above each"


def test_every_key_of_a_session_that_is_left_out_can_be_put_in(ascar):
    written = ascar("init", "linux", "--online", "--out", "-").out
    head, guard, rest = written.partition("[guard]")
    keys = re.findall(r"^#(\w+) = ", rest, flags=re.MULTILINE)
    assert len(keys) >= 20
    for key in keys:
        text = re.sub(rf"^#({key} = )", r"\1", rest, count=1, flags=re.MULTILINE)
        OnlineStudy.parse(head + guard + text)


def test_the_daemons_take_the_files_that_are_made_of_it(ascar, tmp_path):
    ascard = Path(sys.executable).parent / "ascard"
    if subprocess.run([ascard, "interface", "--help"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ascard was built without agent and interface: run `make online`")
    # With every example put in.
    text = re.sub(
        r"^#((collector|average|floor|window|retention|agent|interface) = )",
        r"\1",
        ascar("init", "linux", "--online", "--out", "-").out,
        flags=re.MULTILINE,
    )
    study = OnlineStudy.parse(text)
    assert study.guard.floor and study.guard.window and study.online.agent
    environment = environment_of(study)
    (tmp_path / "messages").mkdir()
    for part, written in (
        ("agent", agent_text(study, environment, None)),
        ("interface", interface_text(study, environment)),
    ):
        (tmp_path / f"{part}.toml").write_text(written)
        connection = tmp_path / "messages" / f"{part}.toml"
        connection.touch(mode=0o600)
        connection.write_text("url = 'nats://127.0.0.1:4222'\n")
        command = [ascard, part, "--config", tmp_path / f"{part}.toml", "--check"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("target", "load", "concurrent"),
    [
        ("postgresql", "pgbench", "clients = 8"),
        ("redis", "redis-benchmark", "clients = 50"),
        ("mariadb", "sysbench", "clients = 8"),
        ("rocksdb", "db_bench", "threads = 4"),
    ],
)
def test_a_server_s_study_shows_its_load_and_examples_of_its_own(
    ascar, tmp_path, text, target, load, concurrent
):
    written = text(target)
    assert Study.parse(written).workload == {"kind": load}
    assert f"\n#{concurrent}\n" in written
    assert not re.search(r"^#version = 1$", written, flags=re.MULTILINE)
    # Examples of [space] are of parameters that the system has.
    begin, _, rest = written.partition("\n[space]\n")
    space, _, end = rest.partition("\n[workload]\n")
    put_in = re.sub(r"^#(allow_cost|pinned|constraints|forbidden)( = )", r"\1\2", space, flags=re.MULTILINE)
    study = tmp_path / "study.toml"
    study.write_text(f"{begin}\n[space]\n{put_in}\n[workload]\n{end}")
    told = ascar("space", study, "--json")
    assert told.status == 0, told.err
    assert told.document["parameters"]
