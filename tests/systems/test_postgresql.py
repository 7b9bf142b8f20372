"""PostgreSQL as a target: real servers, made and removed by the tests."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from msgspec.structs import replace
from scripts.catalogue import ToldSetting, asked, differences, entry

from ascar.catalogues.postgresql import postgresql, postgresql_of
from ascar.errors import EnvironmentLacks, SpaceError, StageFailed, StudyError
from ascar.program.postgresql import Programs
from ascar.program.running import Program, run_program
from ascar.space import ChangeCost, Guarantee
from ascar.space.study_table import space_from_table
from ascar.systems import open_target
from ascar.systems.postgresql import PostgreSQL
from ascar.systems.postgresql.reading import IN_FORCE, as_taken, read_back
from ascar.systems.postgresql.server import PostgresServer
from ascar.systems.postgresql.space import live_space, postgresql_space, settings_here
from ascar.testing import TargetContract
from ascar.workloads import LoadTiming, open_workload
from live_postgresql import live_server
from own_servers import (
    postgresql_account,
    postgresql_installed,
    running,
    see_it_end_with_its_study,
    server_place,
    small_volume,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

PACE = LoadTiming(1.0, 2.0, 1.0, lambda series: False)


pytestmark = pytest.mark.skipif(
    not postgresql_installed(), reason="PostgreSQL is not installed, or has no account"
)


@pytest.fixture
def place() -> Iterator[str]:
    with server_place(postgresql_account(), "ascar-pg-") as folder:
        yield folder


@pytest.fixture
def target(place: str) -> Iterator[PostgreSQL]:
    with PostgreSQL({"directory": place, "memory": "1 GiB"}) as entered:
        yield entered


def _wide(folder: str) -> dict[str, Any]:
    return {"directory": folder, "memory": "1 GiB", "parameters": "wide"}


@pytest.fixture(scope="class")
def kept() -> Iterator[PostgreSQL]:
    """A target for several tests, with whatever configuration the one before has left in force."""
    with server_place(postgresql_account(), "ascar-pg-") as folder, PostgreSQL(_wide(folder)) as entered:
        yield entered


def test_nothing_of_the_environment_leads_to_another_server(
    target: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"PGHOSTADDR": "127.0.0.1", "PGPORT": "1", "PGSERVICE": "of another server"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    target.apply(target.space.default())
    heard: list[bytes] = []
    asking = Program("load", ["psql", "-XAtqc", "SHOW data_directory"], 60)
    load = dataclasses.replace(target.workspace, directory=Path("/"))
    ended = run_program(asking, load, lambda chunk, _: heard.append(chunk))
    assert str(target.workspace.directory.parent) in b"".join(heard).decode(), ended.stderr


@pytest.mark.slow
class TestPostgreSQLContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _made(self, place: str, kept: PostgreSQL) -> None:
        self.place, self.kept = place, kept

    def options(self) -> dict[str, Any]:
        return _wide(self.place)

    def make(self) -> PostgreSQL:
        return PostgreSQL(self.options())

    def entered(self) -> AbstractContextManager[PostgreSQL]:
        return nullcontext(self.kept)


@pytest.fixture(scope="module")
def told() -> dict[str, ToldSetting]:
    """What the installed server says of its settings."""
    _, _, told = asked("postgresql")
    return told


def test_the_catalogue_is_what_the_server_says(told: dict[str, ToldSetting]) -> None:
    known = tuple(settings_here(Programs.find()))
    assert len(known) >= 100
    assert set(postgresql_of(Programs.find().major)) <= set(told)
    assert differences("postgresql", known, told) == []


@pytest.mark.parametrize(
    ("name", "altered", "line"),
    [
        ("work_mem", {"default": 8192}, "default = 8192: the server says 4096"),
        ("work_mem", {"search": (1, 1024)}, "search = 1: the server takes 64 to 2147483647"),
        ("bgwriter_delay", {"search": (10, 20_000)}, "search = 20000: the server takes 10 to 10000"),
        ("wal_buffers", {"special": {"-2": "none"}}, "special = -2: the server takes -1 to 2097144"),
        ("shared_buffers", {"step": 1}, "step = 1: the server takes multiples of 8"),
        ("shared_buffers", {"context": "user"}, "context = 'user': the server says postmaster"),
        ("checkpoint_timeout", {"unit": "min"}, "unit = 'min': the server says 's'"),
        ("fsync", {"kind": "integer"}, "kind = 'integer': the server says boolean"),
        ("work_mem", {"name": "work_memory"}, "the server has no such setting"),
    ],
)
def test_an_altered_entry_of_the_catalogue_is_told(
    told: dict[str, ToldSetting], name: str, altered: dict[str, Any], line: str
) -> None:
    one = replace(postgresql()[name], **altered)
    assert differences("postgresql", [one], told) == [f"{one.name}: {line}"]


def test_an_unknown_word_of_the_catalogue_is_told(told: dict[str, ToldSetting]) -> None:
    one = replace(postgresql()["synchronous_commit"], values=("on", "off", "maybe"))
    (line,) = differences("postgresql", [one], told)
    assert line.startswith("synchronous_commit: values = ['maybe']: the server takes ")


def test_what_the_catalogue_does_not_list_is_printed_as_an_entry_of_it(told: dict[str, ToldSetting]) -> None:
    written = tomllib.loads("\n".join(map(entry, told.values())))["setting"]
    assert [one["name"] for one in written] == list(told)
    work_mem = next(one for one in written if one["name"] == "work_mem")
    known = {"kind": "integer", "search": [64, 2147483647], "default": 4096, "unit": "kB", "context": "user"}
    assert known.items() <= work_mem.items()


def test_a_version_that_cannot_be_asked_is_one_line() -> None:
    script = Path(__file__).resolve().parents[2] / "scripts/catalogue.py"
    words = [sys.executable, str(script), "postgresql", "--version", "99"]
    said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert said.returncode == 2
    assert said.stderr.startswith("target.version = 99: must be one of the versions that are installed")
    assert (said.stdout, said.stderr.count("\n")) == ("", 1)


def test_newer_versions_have_more_settings_and_other_defaults() -> None:
    names = {version: set(postgresql_of(version)) for version in (15, 16, 17, 18, 19)}
    assert names[15] < names[16] < names[17] < names[18] == names[19]
    assert "io_method" in names[18] - names[17]
    assert [postgresql_of(version)["effective_io_concurrency"].default for version in (17, 18, 19)] == [
        1,
        16,
        16,
    ]
    assert postgresql_of(17)["autovacuum_max_workers"].cost is ChangeCost.APP_RESTART
    assert postgresql_of(18)["autovacuum_max_workers"].cost is ChangeCost.DYN_APP
    assert all(one.newer == {} for one in postgresql_of(18).values())


@pytest.mark.parametrize("version", [15, 16, 17, 18])
def test_every_setting_of_a_version_is_a_parameter_of_its_default(version: int) -> None:
    for setting in postgresql_of(version).values():
        parameter = setting.parameter()
        assert parameter.default == setting.default, setting.name
    space = postgresql_space("wide", postgresql_of(version).values(), 100, 4 << 30)
    space.validate(space.default())


def test_values_that_the_server_was_not_built_for_are_left_out(tmp_path: Path) -> None:
    server = tmp_path / "postgres"
    server.write_text(
        """#!/bin/sh
[ "$1" != --version ] || exec echo "postgres (PostgreSQL) 18.1"
[ "$1" != --describe-config ] || exec printf 'io_method\\t\\nwal_compression\\t\\nwal_sync_method\\t\\n'
echo "FATAL:  invalid value for parameter" >&2
[ "$2" = wal_sync_method ] || echo "HINT:  Available values: worker, sync, pglz, on, off." >&2
"""
    )
    server.chmod(0o755)
    found = {one.name: one.values for one in settings_here(Programs(tmp_path, "18.1"))}
    assert found == {"io_method": ("worker", "sync"), "wal_compression": ("off", "pglz")}


def test_numbers_that_the_server_does_not_take_are_refused_before_the_study(
    tmp_path: Path,
) -> None:
    names = ["work_mem", "shared_buffers", "bgwriter_delay", "random_page_cost"]
    names += ["maintenance_work_mem", "checkpoint_timeout", "min_wal_size", "max_wal_size"]
    lines = "".join(f"{one}\\t\\n" for one in names)
    (tmp_path / "postgres").write_text(
        f"""#!/bin/sh
[ "$1" != --version ] || exec echo "postgres (PostgreSQL) 18.1"
[ "$1" != --describe-config ] || exec printf '{lines}'
refuse() {{ echo "FATAL:  $1 is outside the valid range for parameter \\"$2\\" ($3)" >&2; exit 1; }}
case "$*" in
    *checkpoint_timeout=*) echo 'FATAL:  invalid value for parameter "checkpoint_timeout": "x"' >&2; exit 1 ;;
    *work_mem=1048576kB*) refuse "1048576 kB" work_mem "64 .. 65536" ;;
    *shared_buffers=16384kB*) refuse "2048 8kB" shared_buffers "2049 8kB .. 1073741823 8kB" ;;
    *bgwriter_delay=10ms*) refuse "10 ms" bgwriter_delay "300 ms .. 400 ms" ;;
    *random_page_cost=*) refuse 0.5 random_page_cost "1.5 .. 1.79769e+308" ;;
esac
"""
    )
    (tmp_path / "postgres").chmod(0o755)
    found = {one.name: one for one in settings_here(Programs(tmp_path, "18.1"))}
    assert found["work_mem"].search == (256, 65536)
    assert found["shared_buffers"].search == (16392, 33554432), "in the server's unit, and with its step"
    assert "bgwriter_delay" not in found, "its default is not taken"
    assert found["random_page_cost"].search[0] == 1.5
    assert found["checkpoint_timeout"] == postgresql()["checkpoint_timeout"], "no range was the reason"

    space = postgresql_space("wide", found.values(), 10, 4 << 30)
    with pytest.raises(SpaceError, match=r"space\.parameters\.work_mem.*1048576") as told:
        space_from_table({"parameters": {"work_mem": {"values": [4096, 1048576]}}}, space)
    assert "\n" not in told.value.message


def test_a_server_that_refuses_what_nobody_asked_about_is_asked_no_more(tmp_path: Path) -> None:
    (tmp_path / "postgres").write_text(
        """#!/bin/sh
[ "$1" != --describe-config ] || exec printf 'work_mem\\t\\n'
echo 'FATAL:  1 kB is outside the valid range for parameter "other" (2 .. 3)' >&2
"""
    )
    (tmp_path / "postgres").chmod(0o755)
    assert [one.name for one in settings_here(Programs(tmp_path, "18.1"))] == ["work_mem"]


def test_the_spaces_of_an_expert_and_of_everything() -> None:
    expert = PostgreSQL({"memory": "1 GiB"}).space
    wide = PostgreSQL({"memory": "1 GiB", "parameters": "wide"}).space
    assert 18 <= len(expert.parameters) <= 25
    assert len(wide.parameters) >= 90
    assert set(expert.names) < set(wide.names)
    assert expert["shared_buffers"].cost is ChangeCost.APP_RESTART
    assert expert["work_mem"].cost is ChangeCost.DYN_APP
    # Memory is summed up at max_connections.
    with pytest.raises(Exception, match="work_mem"):
        expert.validate({**expert.default(), "work_mem": 524_288})


@pytest.mark.parametrize(
    "changes",
    [
        {"temp_buffers": 1_048_576},
        {"work_mem": 16_384, "hash_mem_multiplier": 8.0},
        {"autovacuum_max_workers": 16, "maintenance_work_mem": 262_144},
        {"autovacuum_work_mem": 1_048_576},
        {"shared_buffers": 4_194_304},
    ],
)
def test_the_memory_that_all_connections_may_take_has_to_fit(changes: dict[str, Any]) -> None:
    small, large = (postgresql_space("wide", postgresql_of(15).values(), 100, gib << 30) for gib in (2, 200))
    wanted = {**small.default(), **changes}
    with pytest.raises(SpaceError, match="temp_buffers"):
        small.validate(wanted)
    large.validate(wanted)
    # A server that has such values is found as it is, and may not be given more.
    found = live_space("wide", {**small.default(), **changes}, 100, 2 << 30, restarts=True)
    found.validate(found.default())
    with pytest.raises(SpaceError, match="temp_buffers"):
        found.validate({**found.default(), "work_mem": wanted["work_mem"] * 8})


def test_what_weakens_a_guarantee_is_named_and_left_out() -> None:
    space = PostgreSQL({"parameters": "wide"}).space
    for name, value, guarantee in (
        ("fsync", False, Guarantee.DURABILITY),
        ("full_page_writes", False, Guarantee.INTEGRITY),
        ("synchronous_commit", "off", Guarantee.DURABILITY),
        ("autovacuum", False, Guarantee.AVAILABILITY),
        ("checkpoint_timeout", 3600, Guarantee.AVAILABILITY),
        ("max_wal_size", 65536, Guarantee.AVAILABILITY),
        # Prolonging checkpoints affects recovery time (manual, 30.5).
        ("checkpoint_completion_target", 1.0, Guarantee.AVAILABILITY),
        # Three times that may be lost of transactions that commit asynchronously (manual, 30.4).
        ("wal_writer_delay", 201, Guarantee.DURABILITY),
    ):
        assert guarantee in space[name].weakens(value), name
    searched = space_from_table({}, space)
    with pytest.raises(Exception, match="fsync"):
        searched.validate({**searched.default(), "fsync": False})


WEAKER_THAN_FOUND = [
    ("synchronous_commit", "remote_apply", "on", {Guarantee.CONSISTENCY}),
    ("synchronous_commit", "remote_apply", "local", {Guarantee.CONSISTENCY, Guarantee.AVAILABILITY}),
    ("synchronous_commit", "remote_apply", "off", {Guarantee.CONSISTENCY, Guarantee.DURABILITY}),
    ("synchronous_commit", "on", "remote_apply", set()),
    ("synchronous_commit", "on", "off", {Guarantee.DURABILITY}),
    ("synchronous_commit", "on", "local", {Guarantee.AVAILABILITY}),
    ("synchronous_commit", "local", "remote_write", set()),
    ("synchronous_commit", "local", "off", {Guarantee.DURABILITY}),
    ("synchronous_commit", "off", "local", set()),
    ("max_wal_size", 256, 1024, {Guarantee.AVAILABILITY}),
    ("max_wal_size", 4096, 1024, set()),
    ("max_wal_size", 100_000, 65_536, set()),
    ("checkpoint_timeout", 60, 300, {Guarantee.AVAILABILITY}),
    ("checkpoint_timeout", 7200, 3600, set()),
    ("fsync", True, False, {Guarantee.DURABILITY, Guarantee.CONSISTENCY, Guarantee.INTEGRITY}),
    ("fsync", False, True, set()),
]


@pytest.mark.parametrize(("name", "present", "value", "lost"), WEAKER_THAN_FOUND)
def test_what_promises_less_than_the_value_in_force_is_weaker(
    name: str, present: Any, value: Any, lost: set[Guarantee]
) -> None:
    parameter = postgresql()[name].found(present)
    assert parameter is not None
    assert parameter.default == present
    assert parameter.weakens(value) == lost
    assert parameter.weakens(present) == frozenset()


def test_a_bound_of_what_is_weaker_is_the_default() -> None:
    for version in (15, 16, 17, 18):
        for one in postgresql_of(version).values():
            if one.weaker and one.kind in ("integer", "real"):
                assert list(one.weaker) == [f">{one.default}"], one.name


def test_pages_of_transactions_are_kept_in_whole_banks() -> None:
    """A server refuses what is no multiple of 16 pages; pg_settings does not tell (check_slru_buffers)."""
    kept = [one for one in postgresql_of(18).values() if one.since == 17 and one.name.endswith("_buffers")]
    assert len(kept) == 7
    for one in kept:
        assert one.step == 16 * 8, one.name
        assert not [number for number in (*one.search, one.default) if number % one.step], one.name


TAKEN_ROWS = """work_mem|integer|user|kB|64|8192|
jit|bool|user||||
wal_compression|enum|superuser||||pglz,lz4,on,off
huge_pages|enum|postmaster||||off
autovacuum_max_workers|integer|sighup||1|262143|
bgwriter_delay|string|sighup|ms|10|10000|
checkpoint_timeout|integer|internal|s|30|86400|
shared_buffers|integer|postmaster|8kB|16|1073741823|
someone.else|bool|user||||
"""


def test_settings_are_as_the_server_that_runs_has_them() -> None:
    taken = as_taken(postgresql_of(15), TAKEN_ROWS)
    assert list(taken) == ["shared_buffers", "work_mem", "wal_compression", "jit", "autovacuum_max_workers"]
    assert taken["work_mem"].search == (256, 8192)
    assert taken["wal_compression"].values == ("off", "pglz", "lz4")
    assert taken["autovacuum_max_workers"].cost is ChangeCost.DYN_APP, "as it says, not as the version has it"
    space = live_space(
        "wide", {"work_mem": 4096, "jit": True, "shared_buffers": 8}, 1, 1 << 30, settings=taken
    )
    assert space.names == ("work_mem", "jit")


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("max_wal_size", "4GB", 4096),
        ("max_wal_size", "4096 MB", 4096),
        ("shared_buffers", "1GB", 1 << 20),
        ("wal_buffers", -1, -1),
        ("checkpoint_timeout", "15min", 900),
        ("wal_writer_delay", "1s", 1000),
        ("commit_delay", 1000, 1000),
        ("autovacuum_vacuum_cost_delay", "0.5ms", 0.5),
        ("random_page_cost", 1.1, 1.1),
        ("synchronous_commit", False, "off"),
        ("synchronous_commit", "remote_apply", "remote_apply"),
        ("jit", "off", False),
        ("fsync", True, True),
    ],
)
def test_a_setting_of_today_is_read_as_it_is_shown(name: str, written: object, value: object) -> None:
    found = postgresql()[name].given(written)
    assert (found, type(found)) == (value, type(value))


def test_a_study_begins_with_the_settings_of_today_and_promises_no_less() -> None:
    today = {"max_wal_size": "4GB", "checkpoint_timeout": "1min", "synchronous_commit": "off", "fsync": "off"}
    space = PostgreSQL({"settings": today, "parameters": "wide"}).space
    default = space.default()
    assert [default[name] for name in today] == [4096, 60, "off", False]
    assert space["max_wal_size"].weakens(2048) == frozenset()
    assert space["max_wal_size"].weakens(8192) == space["checkpoint_timeout"].weakens(61) == {"availability"}
    assert space["synchronous_commit"].weakens("local") == space["fsync"].weakens(True) == frozenset()
    space_from_table({}, space).validate(default)


def test_settings_of_today_that_are_not_searched_are_in_force_all_the_same(place: str) -> None:
    today = {"autovacuum_naptime": "2min", "work_mem": "8MB"}
    with PostgreSQL({"directory": place, "memory": "1 GiB", "settings": today}) as target:
        target.apply(target.space.default())
        server = target._server
        assert server is not None
        assert server.ask("SHOW autovacuum_naptime").strip() == "2min"
        assert server.ask("SHOW work_mem").strip() == "8MB"
        assert target.describe()["settings"] == {"autovacuum_naptime": "120", "work_mem": "8192"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"wal_level": "minimal"}, "target.settings.wal_level: must be a setting that bears on speed"),
        ({"work_men": "4MB"}, "did you mean 'work_mem'"),
        ({"work_mem": 4096}, "target.settings.work_mem = 4096: must have a unit, such as 4096kB"),
        (
            {"work_mem": "4 parsecs"},
            "target.settings.work_mem = '4 parsecs': must be a number with a unit of",
        ),
        ({"work_mem": "lots"}, "must be a number with a unit of TB, GB, MB, kB, B"),
        ({"work_mem": True}, "must be a number with a unit of"),
        ({"random_page_cost": "1kB"}, "must be a number"),
        ({"jit": "maybe"}, "target.settings.jit = 'maybe': must be on or off"),
        ({"synchronous_commit": "never"}, "must be one of remote_apply, on, remote_write, local, off"),
    ],
)
def test_a_wrong_setting_of_today_is_one_line(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        PostgreSQL({"settings": settings})
    assert words in told.value.message
    assert "\n" not in told.value.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"directory": "/proc/absent/x"}, "target.directory = '/proc/absent/x': is not a directory"),
        ({"parameters": "all"}, "target.parameters"),
        ({"memory": "much"}, "target.memory = 'much': is not a size"),
        ({"max_connections": 3}, "target.max_connections = 3: must be from 10"),
        ({"user": "no-such-user-here"}, "target.user = 'no-such-user-here': there is no such account"),
        ({"user": "root"}, "PostgreSQL must not run as root"),
        ({"memry": "1 GiB"}, "memry"),
    ],
)
def test_a_wrong_key_is_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        PostgreSQL(options)
    assert words in told.value.message
    assert "\n" not in told.value.message


def test_a_version_that_is_not_installed_is_one_line() -> None:
    with pytest.raises(EnvironmentLacks, match=r"target\.version = 99: must be one of the versions") as told:
        PostgreSQL({"version": 99})
    named = told.value.message.rpartition(": ")[2].split(", ")
    assert len(set(named)) == len(named), "a version that is found in two ways is named once"


def installed(folder: Path, version: str, settings: Iterable[str] = ()) -> None:
    """A server's program that says its version and the names of its settings, and nothing else."""
    lines = "".join(f"{name}\\t\\n" for name in settings)
    server = folder / "postgres"
    server.write_text(
        f"""#!/bin/sh
[ "$1" != --version ] || exec echo "{version}"
[ "$1" != --describe-config ] || exec printf '{lines}'
exit 1
"""
    )
    server.chmod(0o755)


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("postgres (PostgreSQL) 14.2", r"PostgreSQL 14\.2 is too old; ascar tunes versions from 15 on"),
        ("something else", "PostgreSQL is not installed; install the package postgresql"),
    ],
)
def test_a_server_of_a_wrong_version_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, words: str
) -> None:
    installed(tmp_path, says)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("ascar.program.postgresql.HOMES", (str(tmp_path), str(tmp_path)))
    with pytest.raises(EnvironmentLacks, match=words) as told:
        PostgreSQL({})
    assert "\n" not in told.value.message


GONE = {"commit_delay", "min_wal_size", "maintenance_work_mem", "io_max_combine_limit"}
"""Settings that a version to come may have no more; constraints name all but the first."""


def test_what_a_newer_server_removed_is_left_out_and_a_study_that_names_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "postgres (PostgreSQL) 99.1", set(postgresql_of(99)) - GONE)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("ascar.program.postgresql.HOMES", (str(tmp_path), str(tmp_path)))
    space = PostgreSQL({"memory": "1 GiB"}).space
    assert {"work_mem", "shared_buffers", "max_wal_size"} <= set(space.names), "what both know is searched"
    assert not GONE & set(space.names)
    with pytest.raises(SpaceError, match=r"space\.tuned: unknown parameter 'commit_delay'") as told:
        space_from_table({"tuned": ["commit_delay", "work_mem"]}, space)
    assert "\n" not in told.value.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": 0}, "workload.scale = 0: must be from 1"),
        ({"clients": 0}, "workload.clients = 0: must be from 1"),
        ({"script": "nothing"}, "workload.script = 'nothing': must be one of tpcb-like"),
        ({"rate_per_s": 0.0}, "workload.rate_per_s = 0.0: must be above 0"),
        ({"protocol": "udp"}, "workload.protocol"),
    ],
)
def test_a_wrong_key_of_the_load_is_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as told:
        open_workload({"kind": "pgbench", **options})
    assert words in told.value.message


def test_each_trial_starts_on_the_same_data_and_a_server_that_refuses_fails_its_trial_alone(
    target: PostgreSQL, place: str
) -> None:
    load = open_workload({"kind": "pgbench", "scale": 1, "clients": 2})
    default = target.space.default()
    assert not target.apply(default).filled
    load.prepare(target.workspace)
    target.settle()
    server = target._server
    assert isinstance(server, PostgresServer)
    rows = "SELECT count(*) FROM pgbench_history"
    assert server.ask(rows).strip() == "0"
    found = load.run(target.workspace, PACE)
    assert found.metrics["operations"] > 0
    assert (
        found.metrics["latency_ms_p50"] <= found.metrics["latency_ms_p99"] <= found.metrics["latency_ms_max"]
    )
    assert int(server.ask(rows)) >= found.metrics["operations"]
    before = target.sample()
    assert before.counters["pg_commits"] > 0
    target.drain(60)
    assert target.sample().deferred["wal_bytes"] <= before.deferred["wal_bytes"]

    server.stop()
    with pytest.raises(StageFailed, match="does not start") as told:
        server.begin(["shared_buffers = '900TB'"], 30)
    assert "shared_buffers" in told.value.message + told.value.stderr

    change = target.apply({**default, "work_mem": 8192})
    assert change.filled
    assert "work_mem" in change.parameters
    assert server.ask("SHOW work_mem").strip() == "8MB"
    assert server.ask(rows).strip() == "0"
    assert len(running(place, "postgres")) >= 1


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("mkfs.xfs") or not shutil.which("filefrag"), reason="no XFS here")
def test_trials_share_the_blocks_of_their_data_where_the_file_system_can() -> None:
    with server_place(postgresql_account(), "ascar-pg-") as folder:
        image, place = Path(folder, "image"), Path(folder, "xfs")
        with image.open("wb") as file:
            file.truncate(1 << 30)
        place.mkdir()
        subprocess.run(["mkfs.xfs", "-q", "-m", "reflink=1", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, place], check=True)
        try:
            place.chmod(0o777)
            with PostgreSQL({"directory": str(place), "memory": "1 GiB"}) as target:
                load = open_workload({"kind": "pgbench", "scale": 3, "clients": 2})
                target.apply(target.space.default())
                load.prepare(target.workspace)
                target.settle()
                server = target._server
                assert server is not None
                largest = max((server.data / "base").rglob("*"), key=lambda one: one.stat().st_size)
                assert largest.stat().st_size > 20 << 20
                told = subprocess.run(["filefrag", "-v", largest], capture_output=True, text=True, check=True)
                assert "shared" in told.stdout, told.stdout
                assert load.run(target.workspace, PACE).metrics["operations"] > 0
        finally:
            subprocess.run(["umount", place], check=True)


def test_a_server_that_dies_under_its_load_fails_the_trial_alone(target: PostgreSQL) -> None:
    load = open_workload({"kind": "pgbench", "scale": 1, "clients": 2})
    default = target.space.default()
    target.apply(default)
    load.prepare(target.workspace)
    target.settle()
    server = target._server
    assert server is not None
    pid = int((server.data / "postmaster.pid").read_text().split()[0])
    killer = threading.Timer(1.0, os.kill, (pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(StageFailed, match="pgbench: ") as told:
        load.run(target.workspace, LoadTiming(20.0, 20.0, 1.0, lambda series: False))
    killer.join()
    assert "\n" not in told.value.message
    assert "Run was aborted" not in told.value.message, "it says why"
    with pytest.raises(StageFailed, match="was killed by signal 9"):
        target.health(5.0)
    target.apply(default)
    target.health(10.0)
    assert load.run(target.workspace, PACE).metrics["operations"] > 0


SORT = """SELECT count(*) FROM (
 SELECT repeat('x', 500) || g AS t FROM generate_series(1, 100000) g ORDER BY t OFFSET 0) s;
"""
"""A sort of 50 MB: in memory where `work_mem` is larger, else in files beside the data."""


@pytest.mark.machine
@pytest.mark.root
@pytest.mark.slow
def test_a_configuration_that_fills_the_disk_fails_its_trial_in_one_line_and_the_next_goes_on(
    place: str,
) -> None:
    script = Path(place) / "sort.sql"
    script.write_text(SORT)
    with small_volume(Path(place), "300m") as small:
        options = {"directory": str(small), "memory": "8 GiB", "max_connections": 10}
        with PostgreSQL(options) as target:
            in_memory = target.space.validate({**target.space.default(), "work_mem": 262_144})
            target.apply(in_memory)
            target.settle()
            (small / "others").write_bytes(bytes(shutil.disk_usage(small).free - (24 << 20)))
            load = open_workload({"kind": "pgbench", "script": str(script), "clients": 1})
            target.apply(target.space.validate({**in_memory, "work_mem": 256}))
            with pytest.raises(StageFailed, match="No space left on device") as told:
                load.run(target.workspace, PACE)
            assert "\n" not in told.value.message
            target.apply(in_memory)
            assert load.run(target.workspace, PACE).metrics["operations"] > 0
        assert [one.name for one in small.iterdir()] == ["others"]


@pytest.mark.machine
@pytest.mark.root
def test_a_disk_without_room_for_a_server_is_one_line(place: str) -> None:
    with small_volume(Path(place), "8m") as small:
        with (
            PostgreSQL({"directory": str(small), "memory": "1 GiB"}) as target,
            pytest.raises(StageFailed, match="initdb: .*No space left on device") as told,
        ):
            target.apply(target.space.default())
        assert "\n" not in told.value.message
        assert list(small.iterdir()) == []


def test_only_the_fill_is_written_before_the_server_ends(target: PostgreSQL) -> None:
    target.apply(target.space.default())
    target.settle()
    server = target._server
    assert server is not None

    def state(data: Path) -> str:
        words = [target._programs.path("pg_controldata"), "-D", str(data)]
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return next(line.partition(":")[2].strip() for line in told.splitlines() if "cluster state" in line)

    server.stop()
    assert state(server.saved) == "shut down"
    assert state(server.data) == "in production", "its data is thrown away, so nothing is written"
    target.apply(target.space.default())
    target.health(10.0)


def test_it_ends_with_whoever_is_killed(place: str) -> None:
    see_it_end_with_its_study("postgresql", place, "postgres")


LOGGED = """log_destination = csvlog
logging_collector = on
log_filename = 'statements.log'
log_statement = all
log_connections = on
log_disconnections = on
log_min_messages = error
log_min_error_statement = log
"""
"""What pgreplay needs of the server whose clients are replayed (pgreplay(1))."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pgreplay") is None, reason="pgreplay is not installed")
def test_what_clients_of_another_server_did_is_a_load(target: PostgreSQL, place: str) -> None:
    replay, count = Path(place) / "clients.replay", 400
    with live_server(LOGGED, cluster="logged") as live:
        begun = live.ask("SELECT to_char(now(), 'YYYY-MM-DD HH24:MI:SS.MS')")
        clients = [live.programs.path("pgbench"), "-n", "-c", "2", "-t", str(count // 2), "-b", "select-only"]
        subprocess.run([*clients, "-h", str(live.place), "-U", "postgres", "postgres"], check=True)
        live.stop()
        log = live.data / "log" / "statements.csv"
        subprocess.run(["pgreplay", "-f", "-c", "-b", begun, "-o", replay, log], check=True)
    replay.chmod(0o644)
    load = open_workload(
        {
            "kind": "command",
            "prepare": [live.programs.path("pgbench"), "-i", "-q", "-s", "1"],
            "argv": ["pgreplay", "-r", "-j", "-s", "1000", str(replay)],
            "stop_early": False,
            "metrics": {
                "throughput_ops_per_s": r"regex:^\(([0-9.]+) calls per second\)",
                "errors": r"regex:^\(([0-9]+) or [0-9.]+% of these completed with error",
            },
        }
    )
    target.apply(target.space.default())
    load.prepare(target.workspace)
    target.settle()
    before = target.sample().counters["pg_commits"]
    found = load.run(target.workspace, LoadTiming(60.0, 60.0, 1.0, lambda series: False))
    assert found.metrics["throughput_ops_per_s"] > 0
    assert found.metrics["errors"] == 0
    target.drain(60)
    assert target.sample().counters["pg_commits"] - before >= count


def test_what_an_administrator_is_told(place: str) -> None:
    target = open_target({"kind": "postgresql", "directory": place, "memory": "1 GiB"})
    configuration = target.space.validate({**target.space.default(), "shared_buffers": 262_144, "jit": False})
    lines = target.commands(configuration, target.space.departures(configuration))
    assert lines["postgresql.conf"] == ["shared_buffers = '262144kB'", "jit = 'off'"]
    assert lines["alter-system"] == [
        "ALTER SYSTEM SET shared_buffers = '262144kB';",
        "ALTER SYSTEM SET jit = 'off';",
        "SELECT pg_reload_conf();",
        "-- Restart the server for: shared_buffers",
    ]


def test_an_administrator_of_standbys_is_told_their_order() -> None:
    wide = PostgreSQL({"memory": "1 GiB", "parameters": "wide"})
    configuration = wide.space.validate({**wide.space.default(), "max_worker_processes": 16})
    lines = wide.commands(configuration, ("max_worker_processes",))
    name = "max_worker_processes"
    told = f"Standbys take a larger {name} before their primary does, and a smaller one after it."
    assert lines["alter-system"][-1] == f"-- {told}"
    assert f"# {told}" in lines["ansible"]


WANTED = {
    "shared_buffers": 65_536,
    "work_mem": 5120,
    "random_page_cost": 1.5,
    "wal_compression": "pglz",
    "jit": False,
    "checkpoint_timeout": 600,
    "autovacuum_vacuum_cost_delay": 0.3,
}


@pytest.mark.parametrize("form", ["postgresql.conf", "alter-system", "patroni", "ansible"])
def test_what_is_exported_works_on_a_fresh_server_and_is_read_back_equal(place: str, form: str) -> None:
    with PostgreSQL({"directory": place, "memory": "1 GiB", "parameters": "wide"}) as target:
        target.apply(target.space.default())
        server = target._server
        assert server is not None
        configuration = target.space.validate({**target.space.default(), **WANTED})
        lines = target.commands(configuration, tuple(WANTED))[form]
        kept: list[str] = []
        if form == "postgresql.conf":
            kept = lines
        elif form == "patroni":
            kept = as_patroni_writes(lines)
        else:
            for statement in lines if form == "alter-system" else as_postgresql_set_states(lines):
                server.ask(statement)
        server.stop()
        server.begin(kept, 60)
        assert read_back(server.ask(IN_FORCE), configuration, WANTED) == WANTED
        if (
            form == "ansible"
        ):  # what is in force is what the playbook says, so that a second run changes nothing
            for name, value in settings_of_playbook(lines).items():
                assert server.ask(f"SHOW {name}").strip() == value


def as_patroni_writes(lines: list[str]) -> list[str]:
    """The lines of postgresql.conf that Patroni makes of its dynamic configuration (write_param)."""
    parameters = yaml.safe_load("\n".join(lines))["postgresql"]["parameters"]
    assert all(isinstance(value, str) for value in parameters.values())
    escaped = {name: re.sub(r"(['\\])", r"\1\1", value) for name, value in parameters.items()}
    return [f"{name} = '{value}'" for name, value in escaped.items()]


def settings_of_playbook(lines: list[str]) -> dict[str, str]:
    """The arguments of the tasks of postgresql_set."""
    (play,) = yaml.safe_load("\n".join(lines))
    tasks = [task["community.postgresql.postgresql_set"] for task in play["tasks"]]
    return {task["name"]: task["value"] for task in tasks}


def as_postgresql_set_states(lines: list[str]) -> list[str]:
    """The statements of Ansible's module (param_set), which puts values between quotes as they are."""
    return [f"ALTER SYSTEM SET {name} = '{value}'" for name, value in settings_of_playbook(lines).items()]
