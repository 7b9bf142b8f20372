"""A study of PostgreSQL by the commands: tuned, exported, killed; nothing is left."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks
from ascar.program.account import Account
from ascar.program.postgresql import Programs
from own_servers import end_at_a_moment, server_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLE = Path(__file__).parents[2] / "examples" / "postgresql.toml"
KILLS = 4
TEXT = """
[study]
name = "pg"
objective = "maximize throughput_ops_per_s"
budget = "60 s"
[target]
kind = "postgresql"
directory = "PLACE"
memory = "1 GiB"
[workload]
kind = "pgbench"
scale = 1
clients = 2
[measurement]
load_min = "1 s"
load_max = "2 s"
[stop]
trials = 4
[verify]
runs_min = 2
runs_max = 2
"""


@pytest.fixture
def place() -> Iterator[Path]:
    try:
        Programs.find()
        account = Account.of(None, "PostgreSQL", "postgres")
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
    with server_place(account, "ascar-pg-") as folder:
        yield Path(folder)


@pytest.mark.slow
def test_it_is_tuned_and_exported_and_nothing_is_left(
    ascar: Callable[..., Any], place: Path, tmp_path: Path
) -> None:
    study = tmp_path / "pg.toml"
    study.write_text(TEXT.replace("PLACE", str(place)).replace("trials = 4", "trials = 2"))
    tuned = ascar("tune", study, "--json")
    assert tuned.status in {0, 3}, tuned.err
    assert tuned.document["counts"]["complete"] >= 2
    assert list(place.iterdir()) == []
    best = tuned.document["best"]["configuration"]
    assert set(best) >= {"shared_buffers", "work_mem"}
    for form in ("postgresql.conf", "alter-system"):
        exported = ascar("export", "pg", "--as", form, "--json").document
        assert len(exported["lines"]) >= len(exported["chosen"])


@pytest.mark.slow
def test_interrupted_or_killed_at_any_moment_no_server_and_no_file_is_left(
    place: Path, tmp_path: Path, seed: int
) -> None:
    study = tmp_path / "pg.toml"
    study.write_text(TEXT.replace("PLACE", str(place)))
    chance = random.Random(seed)
    for turn in range(KILLS):
        end_at_a_moment(study, chance, 12.0, signal.SIGINT if turn == 0 else signal.SIGKILL)
        deadline_s = time.monotonic() + 120
        while list(place.iterdir()) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        assert list(place.iterdir()) == []


def test_the_example_is_a_study(ascar: Callable[..., Any]) -> None:
    shown = ascar("space", EXAMPLE, "--json")
    if "not installed" in shown.err or "no account" in shown.err:
        pytest.skip(shown.error)
    assert shown.status == 0, shown.err
    assert "shared_buffers" in str(shown.document)
