"""A study of RocksDB through the commands: tuned, exported, interrupted, killed, on a full disk."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from own_servers import (
    end_at_a_moment,
    nothing_is_left,
    rocksdb_account,
    rocksdb_installed,
    server_place,
    small_volume,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLE = Path(__file__).parents[2] / "examples" / "rocksdb.toml"
KILLS = 3
TEXT = """
[study]
name = "keys"
objective = "maximize throughput_ops_per_s"
budget = "45 s"
[target]
kind = "rocksdb"
directory = "PLACE"
memory = "1 GiB"
settings = { write_buffer_size = "1M" }
[space]
tuned = ["write_buffer_size", "max_background_jobs", "compression", "level0_file_num_compaction_trigger"]
[workload]
kind = "db_bench"
benchmark = "overwrite"
keys = 20000
threads = 2
[measurement]
load_min = "1 s"
load_max = "1 s"
[stop]
trials = 3
[verify]
runs_min = 2
runs_max = 2
"""

pytestmark = pytest.mark.skipif(not rocksdb_installed(), reason="db_bench is not installed")


@pytest.fixture
def place() -> Iterator[Path]:
    with server_place(rocksdb_account(), "ascar-rocks-") as folder:
        yield Path(folder)


@pytest.fixture
def study(place: Path, tmp_path: Path) -> Path:
    path = tmp_path / "keys.toml"
    path.write_text(TEXT.replace("PLACE", str(place)))
    return path


@pytest.mark.slow
def test_it_is_tuned_and_exported_and_nothing_is_left(
    ascar: Callable[..., Any], place: Path, study: Path
) -> None:
    study.write_text(study.read_text().replace("trials = 3", "trials = 2"))
    tuned = ascar("tune", study, "--json")
    assert tuned.status in {0, 3}, tuned.err
    assert tuned.document["counts"]["complete"] >= 2, tuned.err
    assert nothing_is_left(place, "db_bench")
    exported = ascar("export", "keys", "--as", "rocksdb-options", "--json").document
    assert len(exported["lines"]) >= len(exported["chosen"])


@pytest.mark.slow
@pytest.mark.root
def test_a_configuration_that_fills_the_disk_fails_its_trial_and_the_next_goes_on(
    ascar: Callable[..., Any], place: Path, tmp_path: Path
) -> None:
    with small_volume(place, "120m") as small:
        text = TEXT.replace("PLACE", str(small)).replace("trials = 3", "trials = 4")
        text = text.replace(
            "tuned = [", 'tuned = ["disable_auto_compactions", "level0_stop_writes_trigger", '
        )
        text = text.replace('memory = "1 GiB"', 'memory = "1 GiB"\nparameters = "wide"')
        never = "disable_auto_compactions = true, level0_stop_writes_trigger = 1024, "
        never += "level0_slowdown_writes_trigger = 512"
        study = tmp_path / "keys.toml"
        study.write_text(
            text.replace('"level0_stop', '"level0_slowdown_writes_trigger", "level0_stop')
            .replace('load_max = "1 s"', 'load_max = "6 s"')
            .replace('load_min = "1 s"', 'load_min = "6 s"')
            # Large values fill the disk also where few operations can be done.
            .replace("keys = 20000", "keys = 1000\nvalue_bytes = 8000\ncompression_ratio = 1.0")
            + f"[start]\nconfigurations = [{{ {never} }}]\n"
        )
        tuned = ascar("tune", study, "--json")
        assert tuned.status in {0, 3}, tuned.err
        assert tuned.document["counts"]["failed"] >= 1, tuned.err
        # RocksDB tells of a full disk, or an assertion that did not expect one ends it.
        assert "failed in load: load: db_bench" in tuned.err
        assert "trial 4 (search)" in tuned.err
        assert nothing_is_left(small, "db_bench")


@pytest.mark.slow
def test_interrupted_or_killed_at_any_moment_no_program_and_no_file_is_left(
    place: Path, study: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for turn in range(KILLS):
        number = signal.SIGINT if turn == 0 else signal.SIGKILL
        end_at_a_moment(study, chance, 10.0, number)
        assert nothing_is_left(place, "db_bench"), turn


def test_init_writes_a_study(ascar: Callable[..., Any]) -> None:
    text = ascar("init", "rocksdb", "--out", "-").out
    assert 'kind = "rocksdb"' in text
    assert "#settings = {}" in text


def test_the_doctor_names_the_package(ascar: Callable[..., Any]) -> None:
    assert "rocksdb-tools" in str(ascar("doctor", "--json").document)


def test_the_example_is_a_study(ascar: Callable[..., Any]) -> None:
    shown = ascar("space", EXAMPLE, "--json")
    assert shown.status == 0, shown.err
    assert "write_buffer_size" in str(shown.document)
