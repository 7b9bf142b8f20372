"""What a session's load runs on, whatever the kind of the target."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest

from ascar.capes.session.environment import RequestedEnvironment, prepared
from ascar.capes.session.study import OnlineStudy
from ascar.errors import StageFailed, StudyError
from ascar.systems.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """
[study]
name = "online"
objective = "maximize throughput_ops_per_s"
[target]
kind = "sqlite"
directory = "HERE"
[workload]
kind = "sqlite-transactions"
rows = 100
[[capes.knob]]
name = "cache_bytes"
minimum = 1
maximum = 9
[[capes.program]]
command = ["./control"]
knobs = ["cache_bytes"]
"""


@pytest.fixture
def study(tmp_path: Path) -> OnlineStudy:
    return OnlineStudy.parse(STUDY.replace("HERE", str(tmp_path)))


def test_any_target_of_this_machine_is_made_filled_and_taken_away(study: OnlineStudy, tmp_path: Path) -> None:
    told: list[str] = []
    requested = RequestedEnvironment.of(study)
    with prepared(requested, told.append) as environment:
        assert environment.workspace is not None
        assert (environment.workspace.directory / "database.db").stat().st_size > 0
        assert environment.device is None
        assert not environment.is_of("vm.dirty_ratio")
    assert told == ["putting the target into its initial state", "filling it"]
    assert list(tmp_path.iterdir()) == []


def test_a_system_on_paper_is_refused(study: OnlineStudy) -> None:
    paper = msgspec.structs.replace(study, target={"kind": "simulated", "metrics": {"x": "1"}})
    with pytest.raises(StudyError, match="exists on paper only"):
        RequestedEnvironment.of(paper)


def test_a_target_that_lies_ends_the_session_before_it_begins(
    study: OnlineStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteDatabase, "read", lambda *_: {"synchronous": "OFF"})
    requested = RequestedEnvironment.of(study)
    with (
        pytest.raises(StageFailed, match="synchronous = 'FULL' was set, but the system reads back 'OFF'"),
        prepared(replace(requested), lambda _: None),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
