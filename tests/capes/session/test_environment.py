"""What a session tunes and what runs on it, whatever the kind of the target."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ascar.capes.session.environment import ADAPTER, RequestedEnvironment, prepared
from ascar.capes.session.study import OnlineStudy
from ascar.errors import InputError, StageFailed, StudyError
from ascar.systems.adapter import relay

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import json, sys
values = dict(START)
for line in sys.stdin:
    order = json.loads(line)
    if "sample" in order:
        print(json.dumps({"ok": {"counters": {"hits": 7}, "gauges": {"depth": 2.5}}}), flush=True)
        continue
    values = dict(START) if "restore" in order else values | order.get("set", {})
    print(json.dumps({"ok": TOLD}), flush=True)
open(sys.argv[1], "w").write("ended")
"""
STUDY = """
[study]
name = "online"
objective = "maximize throughput_ops_per_s"
[target]
kind = "program"
command = ["PYTHON", "./settings.py", "./ended"]
[space.parameters.cache_bytes]
kind = "ordinal"
values = [1, 9]
default = 1
cost = "dyn-app"
[space.parameters.table_size]
kind = "integer"
low = 1
high = 9
default = 2
cost = "app-restart"
[workload]
kind = "command"
argv = ["true"]
prepare = ["touch", "{directory}/filled"]
[online]
"""


@pytest.fixture
def study(tmp_path: Path) -> OnlineStudy:
    return written(tmp_path, "values")


def written(folder: Path, told: str) -> OnlineStudy:
    start = '{"cache_bytes": 1, "table_size": 2}'
    (folder / "settings.py").write_text(PROGRAM.replace("START", start).replace("TOLD", told))
    (folder / "study.toml").write_text(STUDY.replace("PYTHON", sys.executable))
    return OnlineStudy.read(folder / "study.toml")


def asked(folder: Path, *requests: str) -> list[Any]:
    """The answers that an agent gets."""
    (folder / "requests").write_text("\n".join(requests) + "\n")
    with (folder / "requests").open("rb") as ours, (folder / "answers").open("wb") as theirs:
        relay(folder / ADAPTER, ours, theirs)
    return [json.loads(line) for line in (folder / "answers").read_text().splitlines()]


def test_a_target_of_this_machine_is_started_filled_and_ended(study: OnlineStudy, tmp_path: Path) -> None:
    told: list[str] = []
    with prepared(RequestedEnvironment.of(study), tmp_path, told.append) as environment:
        assert environment.workspace is not None
        assert (environment.workspace.directory / "filled").exists()
        assert environment.device is None and environment.has_adapter and environment.tells
        assert not environment.is_of("vm.dirty_ratio")
        assert [one.key for one in environment.parameters] == ["cache_bytes"], "the other needs a restart"
        values = {"cache_bytes": 1, "table_size": 2}
        assert asked(tmp_path, '{"get": true}', '{"set": {"cache_bytes": 9}}', '{"sample": true}') == [
            {"ok": values},
            {"ok": {"cache_bytes": 9}},
            {"ok": {"counters": {"hits": 7}, "gauges": {"depth": 2.5}}},
        ]
        assert asked(tmp_path, '{"get": true}') == [{"ok": values}], "a client's settings end with it"
    assert told == ["putting the target into its initial state", "filling it"]
    assert (tmp_path / "ended").read_text() == "ended"
    assert not environment.workspace.directory.exists()
    assert not (tmp_path / ADAPTER).exists()


def test_a_system_that_works_keeps_its_values(study: OnlineStudy, tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(
        PROGRAM.replace("START", '{"cache_bytes": 9, "table_size": 2}').replace("TOLD", "values")
    )
    told: list[str] = []
    alone = msgspec.structs.replace(study, workload=None)
    with prepared(RequestedEnvironment.of(alone), tmp_path, told.append) as environment:
        assert environment.workspace is None
        assert asked(tmp_path, '{"get": true}')[0]["ok"]["cache_bytes"] == 9
    assert told == []


@pytest.mark.parametrize(
    ("request_line", "words"),
    [
        ('{"set": {"cache_bytes": 5}}', "cache_bytes"),
        ('{"set": {"cache": 1}}', "cache"),
        ('{"set": {"cache_bytes": {}}}', "cache_bytes"),
        ('{"set": []}', "must be get, set with a table"),
        ('{"fetch": true}', "must be get, set with a table"),
        ('{"get": true, "set": {}}', "one key"),
        ("[1]", "one key"),
        ("{", "is not JSON"),
        ("[" * 5000, "is not JSON"),
        ("\x00\x7f", "is not JSON"),
    ],
)
def test_what_is_no_request_is_refused_and_the_next_one_answered(
    study: OnlineStudy, tmp_path: Path, request_line: str, words: str
) -> None:
    with prepared(RequestedEnvironment.of(study), tmp_path, lambda _: None):
        refused, answered = asked(tmp_path, request_line, '{"get": true}')
    assert words in refused["error"]
    assert answered == {"ok": {"cache_bytes": 1, "table_size": 2}}


def test_a_line_without_end_hangs_up(study: OnlineStudy, tmp_path: Path) -> None:
    with prepared(RequestedEnvironment.of(study), tmp_path, lambda _: None):
        assert asked(tmp_path, "x" * 200_000) == []
        assert asked(tmp_path, '{"get": true}') == [{"ok": {"cache_bytes": 1, "table_size": 2}}]


def test_nobody_listens_where_no_session_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.sock: No such file"):
        relay(tmp_path / "none.sock", sys.stdin.buffer, sys.stdout.buffer)


def test_a_system_on_paper_is_refused(study: OnlineStudy) -> None:
    paper = msgspec.structs.replace(study, target={"kind": "simulated", "metrics": {"x": "1"}})
    with pytest.raises(StudyError, match="exists on paper only"):
        RequestedEnvironment.of(paper)


def test_a_target_that_lies_ends_the_session_before_it_begins(tmp_path: Path) -> None:
    lying = written(tmp_path, '{"cache_bytes": 9, "table_size": 2}')
    with (
        pytest.raises(StageFailed, match="cache_bytes = 1 was set, but the system reads back 9"),
        prepared(RequestedEnvironment.of(lying), tmp_path, lambda _: None),
    ):
        pass
    assert (tmp_path / "ended").exists()
    assert not (tmp_path / ADAPTER).exists()
