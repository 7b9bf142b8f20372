"""The parts of benchmarks/server_rivals.py: advice, codes, others' processes, turns; and a short run."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.harness import Benchmark
from benchmarks.server_rivals_mariadb import RivalMariaDB, advice_of, lines_of
from benchmarks.server_rivals_postgresql import RivalPostgreSQL, pgtune
from benchmarks.server_rivals_reach import within
from benchmarks.server_rivals_testbed import Bench, Scale, bed_of

from ascar.evaluation import Evaluator
from ascar.events import ignore
from ascar.prepared_study import PreparedStudy
from ascar.space import ChangeCost, Guarantee, Space, boolean, categorical, floating, integer, ordinal
from ascar.study import Study
from ascar.systems.asking import entering
from benchmarks import server_rivals as rivals
from benchmarks import server_rivals_peers as peers
from benchmarks import server_rivals_turns as turns
from own_servers import mariadb_installed, postgresql_installed

THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device")
COST = {"cost": ChangeCost.DYN_APP}
needs_postgresql = pytest.mark.skipif(not postgresql_installed(), reason="needs PostgreSQL 15 or newer")
needs_mariadb = pytest.mark.skipif(not mariadb_installed(), reason="needs MariaDB")

# Draws at random; with an argument, ends after so many answers.
RANDOM_PEER = """
import random, sys
sys.path.insert(0, {peers!r})
from asking import serve
class Drawn:
    def __init__(self, parameters, trials, seed):
        self.parameters, self.random, self.known_ones, self.told = parameters, random.Random(seed), [], []
    def known(self, values, cost):
        self.known_ones.append((cost, values))
    def ask(self):
        if len(self.told) >= {answers}:
            raise RuntimeError("no more of it")
        self.asked = {{}}
        for one in self.parameters:
            draw = self.random.uniform if one["kind"] == "real" else self.random.randint
            self.asked[one["name"]] = draw(one["low"], one["high"])
        return self.asked
    def tell(self, how, cost):
        self.told.append(how)
        if how == "measured":
            self.known_ones.append((cost, self.asked))
    def best(self):
        return min(self.known_ones, key=lambda one: one[0])[1]
print("noise")
serve(Drawn)
"""


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """A peer that draws at random, in a process of its own; the function says when it ends."""

    def make(answers=10**6):
        script = tmp_path / "drawn.py"
        script.write_text(RANDOM_PEER.format(peers=str(peers.HERE / "peers"), answers=answers))
        monkeypatch.setitem(peers.PEERS, "drawn", peers.Peer(str(script), ()))
        monkeypatch.setattr(peers.Peer, "python", lambda *_: Path(sys.executable))

    return make


def mixed():
    """A space of every kind of parameter, with special values and a constraint."""
    return Space(
        (
            integer("buffers", (16, 4096), default=128, log=True, step=8, **COST),
            integer("log", (64, 1024), default=-1, special={"-1": "by itself"}, **COST),
            floating("cost", (1.0, 10.0), default=4.0, **COST),
            ordinal("depth", (1, 8, 64), default=8, **COST),
            categorical("method", ("plain", "packed"), default="plain", **COST),
            boolean("jit", default=True, **COST),
        ),
        ("buffers + 100 * depth <= 1000",),
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"memory_kib": 384 * 1024, "connections": 20, "processors": 2, "warehouse": False},
            {
                "shared_buffers": 98304,
                "effective_cache_size": 294912,
                "maintenance_work_mem": 24576,
                "wal_buffers": 2949,
                "work_mem": 4096,
                "huge_pages": "off",
                "random_page_cost": 1.1,
                "max_wal_size": 8192,
                "jit": False,
            },
        ),
        (
            {"memory_kib": 16 * 2**20, "connections": 40, "processors": 8, "warehouse": True},
            {
                "shared_buffers": 4 * 2**20,
                "maintenance_work_mem": 2 * 2**20,
                "wal_buffers": 16384,
                "work_mem": 39321,
                "huge_pages": "try",
                "default_statistics_target": 500,
                "random_page_cost": 4.0,
                "max_parallel_workers_per_gather": 4,
            },
        ),
    ],
)
def test_pgtune(given, expected):
    found = pgtune(**given)
    assert {name: found.get(name) for name in expected} == expected
    assert ("jit" in found) is not given["warehouse"]
    assert ("max_worker_processes" in found) is (given["processors"] >= 4)


def test_advice_is_kept_within_the_guarantees():
    space = Space(
        (
            integer("log_size", (256, 65536), default=1024, weaker={">1024": Guarantee.AVAILABILITY}, **COST),
            integer("buffers", (16, 4096), default=128, step=16, **COST),
        )
    )
    found, kept = within(space, {"log_size": 8192, "buffers": 1000, "elsewhere": "off"})
    assert dict(found) == {"log_size": 1024, "buffers": 1008}
    assert kept == {"log_size": 8192, "elsewhere": "off"}


@needs_postgresql
def test_the_advice_of_pgtune_is_a_configuration_of_the_server():
    scale = Scale(memory_mib=384, data_mib=900)
    space = RivalPostgreSQL().space(scale)
    given = pgtune(scale.memory_mib * 1024, 20, 2, warehouse=False)
    found, kept = within(space, given)
    assert (found["max_wal_size"], found["shared_buffers"]) == (1024, 98304)
    assert set(kept) == {"max_wal_size", "min_wal_size", "huge_pages"}
    codes = peers.Codes(space)
    assert codes.decoded(codes.encoded(found)) == found


def test_codes_are_of_every_valid_configuration():
    space = mixed()
    codes = peers.Codes(space)
    by_name = {one["name"]: one for one in codes.parameters}
    assert by_name["log__special"] == {
        "name": "log__special",
        "kind": "category",
        "low": 0,
        "high": 1,
        "log": False,
    }
    assert by_name["buffers"]["high"] == 896, "with the least depth of 1 no more is valid"
    assert by_name["depth"]["kind"] == "integer"
    assert by_name["method"]["kind"] == "category"
    for one in [space.default(), *space.sample(np.random.default_rng(3), 200)]:
        values = codes.encoded(one)
        assert values.keys() == by_name.keys()
        assert all(by_name[name]["low"] <= value <= by_name[name]["high"] for name, value in values.items())
        assert codes.decoded(values) == one
    assert codes.decoded({**codes.encoded(space.default()), "depth": 2}) is None


@pytest.fixture
def bench():
    """A simulated system under the evaluator; a deep queue fails."""
    study = Study.of(
        {
            "study": {"name": "rivals", "objective": "maximize score", "budget": "1 h"},
            "target": {
                "kind": "simulated",
                "metrics": {"score": "100 + depth"},
                "noise_relative_sd": 0.01,
            },
            "space": {
                "parameters": {
                    "depth": {"kind": "integer", "low": 1, "high": 64, "default": 8, "cost": "dyn-kernel"},
                    "width": {"kind": "integer", "low": 1, "high": 64, "default": 8, "cost": "dyn-kernel"},
                },
                "constraints": ["depth + width <= 64"],
            },
            "measurement": {"load_min": "2 s", "load_max": "2 s"},
        }
    )
    prepared = PreparedStudy.open(study)
    with entering(prepared.target):
        prepared = prepared.entered()
        yield Bench(prepared, Evaluator(study, prepared.target, prepared.workload, ignore, prepared.clock))


def test_a_peer_has_so_many_trials_of_which_the_default_is_the_first(bench, drawn):
    drawn()
    found = peers.searched(bench, "drawn", 3, 1)
    assert len(found["scores"]) == 3
    assert found["scores"][0] == pytest.approx(108, rel=0.05)
    assert found["rejected"] > 0 or found["failed"] == 0
    best = bench.prepared.space.validate(found["recommended"])
    assert 1 + found["reported"] == pytest.approx(max(found["scores"]) / found["scores"][0])
    assert 100 + best["depth"] == pytest.approx(max(found["scores"]), rel=0.05)


def test_what_is_not_valid_takes_no_trial(bench, drawn):
    drawn()
    space = bench.prepared.space
    with peers.asking("drawn", peers.Codes(space), 100.0, 50, 1) as peer:
        for _ in range(50):
            assert space.is_valid(peer.ask())
            peer.tell(50.0)
        assert peer.rejected > 0
        assert peer.worst == 2.0


def test_a_peer_that_ends_is_named_with_its_last_words(bench, drawn):
    drawn(answers=1)
    with pytest.raises(RuntimeError, match=r"(?s)^drawn: its process ended: .*no more of it"):
        peers.searched(bench, "drawn", 5, 1)


def contender(name, space, **values):
    return turns.Contender(name, space.validate({**space.default(), **values}))


def test_two_that_recommend_the_same_run_once():
    space = mixed()
    listed = [contender("default", space), contender("ascar", space, jit=False), contender("smac", space)]
    tuned = turns.Contender("TuneD", space.default(), is_tuned=True)
    assert turns.distinct([*listed, tuned]) == {
        "default": "default",
        "ascar": "ascar",
        "smac": "default",
        "TuneD": "TuneD",
    }


def made(count, seconds=4.0, **ratios):
    rng = np.random.default_rng(1)
    blocks = []
    for _ in range(count):
        drift = rng.normal(1, 0.2) + 2
        scores = {name: 100 * drift * ratio * rng.normal(1, 0.01) for name, ratio in ratios.items()}
        blocks.append({"scores": scores, "seconds": dict.fromkeys(ratios, seconds)})
    return blocks


def test_a_contender_runs_until_it_is_known_well_or_had_its_time():
    blocks = made(8, default=1.0, ascar=1.2, optuna=1.21)
    assert [turns.settled(blocks[:at], "optuna", 1000.0) for at in (1, 3, 8)] == [False, False, True]
    assert turns.settled(blocks[:1], "optuna", 4.0)
    held = [{"scores": {"default": 1.0}, "seconds": {"default": 4.0}, "held": ["TuneD"]}] * 3
    assert [turns.settled(held[:at], "TuneD", 1000.0) for at in (2, 3)] == [False, True]
    failing = [{**one, "scores": {**one["scores"], "optuna": None}} for one in blocks]
    assert not turns.settled(failing, "optuna", 1000.0)


def test_how_ours_stands():
    scores = [one["scores"] for one in made(10, default=1.0, ascar=1.2, level=1.19, behind=1.1, ahead=1.4)]
    found = {
        name: turns.standing(turns.gain(scores, name, "ascar"))
        for name in ("default", "level", "behind", "ahead", "gone")
    }
    expected = {"default": "ahead", "level": "level", "behind": "ahead", "ahead": "behind", "gone": "open"}
    assert found == expected


def test_the_table_has_what_was_reported_over_what_is_true():
    space = mixed()
    listed = [
        contender("default", space),
        turns.Contender("ascar", space.validate({**space.default(), "jit": False}), 0.2, 300.0),
        turns.Contender("optuna", space.default(), 0.1, 300.0),
    ]
    lines = rivals.rows(listed, made(8, default=1.0, ascar=1.2))
    assert all(len(line) == len(rivals.HEADS) for line in lines)
    default, ours, optuna = lines
    assert ours[3].startswith(("+19", "+20"))
    assert ours[5].startswith(("0.99", "1 ", "1.0"))
    assert optuna[3] == "the default"
    assert optuna[5] == "1.100"
    assert default[6].endswith("ahead")


def test_too_little_data_is_refused():
    with pytest.raises(ValueError, match="data_mib = 10: must be at least twice 512 MiB"):
        Scale(data_mib=10)


MYSQLTUNER_SAID = """\
-------- Recommendations ---------------------------------------------------------------------------
General recommendations:
    MySQL was started within the last 24 hours: recommendations may be inaccurate
Variables to adjust:
  *** MySQL's maximum memory usage is dangerously high ***
    skip-name-resolve=1
    join_buffer_size (> 256.0K, or always use indexes with JOINs)
    table_definition_cache(400) > 522 or -1 (autosizing if supported)
    performance_schema=ON
    innodb_buffer_pool_size (>= 900.2M) if possible.
    innodb_log_file_size should be (=32M) if possible, so InnoDB total log files size equals 25%
    key_buffer_size=0
    tmp_table_size (> 16M)
    thread_cache_size (> 20)
    innodb_stats_on_metadata (=garbage)
"""


def test_mysqltuners_advice_is_read_line_by_line():
    lines = lines_of(MYSQLTUNER_SAID)
    assert lines[0] == "skip-name-resolve=1"
    assert len(lines) == 10
    assert advice_of(lines, {"performance_schema": False}) == {
        "join_buffer_size": 512 * 1024,
        "performance_schema": True,
        "innodb_buffer_pool_size": int(900.2 * 2**20),
        "innodb_log_file_size": 32 * 2**20,
        "key_buffer_size": 0,
        "tmp_table_size": 32 * 2**20,
        "thread_cache_size": 40,
    }
    assert lines_of("nothing to adjust") == []


@needs_mariadb
def test_mysqltuners_advice_is_followed_as_far_as_the_memory_reaches():
    server, scale = RivalMariaDB(), Scale()
    space = server.space(scale)
    (found,) = server.advised(space, scale, "mixed", {"lines": lines_of(MYSQLTUNER_SAID)})
    assert found.name == "MySQLTuner"
    pool = found.configuration["innodb_buffer_pool_size"]
    assert space.default()["innodb_buffer_pool_size"] < pool < scale.memory_mib * 2**20
    assert "innodb_buffer_pool_size = " in found.note
    assert server.advised(space, scale, "mixed", None) == []


needs_volume = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a volume, a control group"),
    pytest.mark.skipif(not THROTTLE.exists(), reason="needs the control group blkio, version 1"),
]


def marked(*marks):
    def with_all(test):
        for mark in marks:
            test = mark(test)
        return test

    return with_all


@pytest.mark.machine
@marked(*needs_volume, needs_postgresql)
def test_a_short_run_on_postgresql(drawn):
    drawn()
    scale = Scale(memory_mib=256, data_mib=525, load_s=2, trials=3)
    swappiness = Path("/proc/sys/vm/swappiness")
    before = swappiness.read_text()
    with bed_of(RivalPostgreSQL(), scale) as bed:
        with bed.bench("tpcb") as bench:
            assert bench.prepared.target.describe()["memory_limit_bytes"] == scale.memory_mib * 2**20
            found = peers.searched(bench, "drawn", scale.trials, 1)
            space = bench.prepared.space
        assert len(found["scores"]) == 3
        processes = []

        def attempted(one, trial):
            processes.append((one.name, trial.failure))
            assert swappiness.read_text() == ("3\n" if one.is_tuned else before)
            assert (bed.volume._entered().knob("block.DEV.read_ahead_kb") == 4096) is one.is_tuned

        listed = [
            turns.Contender("default", space.default()),
            turns.Contender("TuneD", space.default(), is_tuned=True),
        ]
        block = turns.block(bed, "sort", listed, 1, attempted)
        assert dict(processes) == {"default": None, "TuneD": None}
        assert all(score > 0 for score in block["scores"].values())
    assert not bed.directory.exists()
    assert swappiness.read_text() == before


@pytest.mark.machine
@marked(*needs_volume, needs_mariadb)
@pytest.mark.skipif(shutil.which("mysqltuner") is None, reason="needs mysqltuner")
def test_a_short_run_on_mariadb(drawn):
    drawn()
    server, scale = RivalMariaDB(), Scale(memory_mib=400, data_mib=800, load_s=2, trials=2)
    with bed_of(server, scale) as bed:
        told = server.ask(bed, "mixed")
        assert told is not None
        assert told["lines"]
        with bed.bench("mixed") as bench:
            space = bench.prepared.space
            found = peers.searched(bench, "drawn", scale.trials, 1)
        assert len(found["scores"]) == 2
        (advised,) = server.advised(space, scale, "mixed", {"lines": lines_of(MYSQLTUNER_SAID)})
        block = turns.block(bed, "writes", [turns.Contender("default", space.default()), advised], 1)
        assert all(score is not None and score > 0 for score in block["scores"].values())
    assert not bed.directory.exists()


def test_a_run_without_a_result_shows_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["server_rivals"])
    benchmark = Benchmark(0.0, tmp_path / "results.jsonl", build="one")
    rivals.Rivalry(RivalPostgreSQL(), benchmark, Scale(), 1.0).run()
    assert "the budget is over" in capsys.readouterr().err
