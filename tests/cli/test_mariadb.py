"""A study of MariaDB by the commands: begun, tuned, exported, interrupted, killed; nothing is left."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from own_servers import (
    end_at_a_moment,
    mariadb_account,
    mariadb_installed,
    nothing_is_left,
    server_place,
    small_volume,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLE = Path(__file__).parents[2] / "examples" / "mariadb.toml"
KILLS = 3
TEXT = """
[study]
name = "shop"
objective = "maximize throughput_ops_per_s"
budget = "60 s"
[target]
kind = "mariadb"
directory = "PLACE"
memory = "1 GiB"
settings = { innodb_buffer_pool_size = "32M", innodb_log_file_size = "16M" }
[space]
tuned = ["innodb_buffer_pool_size", "innodb_io_capacity", "innodb_flush_neighbors", "sort_buffer_size"]
[workload]
kind = "sysbench"
tables = 1
rows = 5000
clients = 4
[measurement]
load_min = "1 s"
load_max = "1 s"
[stop]
trials = 3
[verify]
runs_min = 2
runs_max = 2
"""

pytestmark = pytest.mark.skipif(
    not mariadb_installed(), reason="MariaDB or sysbench is not installed, or has no account"
)


@pytest.fixture
def place() -> Iterator[Path]:
    with server_place(mariadb_account(), "ascar-maria-") as folder:
        yield Path(folder)


@pytest.fixture
def study(place: Path, tmp_path: Path) -> Path:
    path = tmp_path / "shop.toml"
    path.write_text(TEXT.replace("PLACE", str(place)))
    return path


@pytest.mark.slow
def test_it_is_tuned_and_exported_and_nothing_is_left(
    ascar: Callable[..., Any], place: Path, study: Path
) -> None:
    study.write_text(study.read_text().replace("trials = 3", "trials = 2"))
    tuned = ascar("tune", study, "--json")
    assert tuned.status in {0, 3}, tuned.err
    assert tuned.document["counts"]["complete"] >= 2
    assert nothing_is_left(place, "mariadb")
    assert set(tuned.document["best"]["configuration"]) >= {"innodb_io_capacity", "sort_buffer_size"}
    for form in ("my.cnf", "set-global"):
        exported = ascar("export", "shop", "--as", form, "--json").document
        assert len(exported["lines"]) >= len(exported["chosen"])


@pytest.mark.slow
@pytest.mark.root
def test_a_configuration_that_fills_the_disk_fails_its_trial_and_the_next_goes_on(
    ascar: Callable[..., Any], place: Path, tmp_path: Path
) -> None:
    with small_volume(place, "330m") as small:
        text = TEXT.replace("PLACE", str(small)).replace("trials = 3", "trials = 4")
        text = text.replace("tuned = [", 'allow_weaker = ["availability"]\ntuned = ["innodb_log_file_size", ')
        study = tmp_path / "shop.toml"
        study.write_text(f"{text}[start]\nconfigurations = [{{ innodb_log_file_size = 1073741824 }}]\n")
        tuned = ascar("tune", study, "--json")
        assert tuned.status in {0, 3}, tuned.err
        assert tuned.document["counts"]["failed"] >= 1, tuned.err
        assert tuned.document["counts"]["complete"] >= 2, tuned.err
        assert "does not start" in tuned.err
        assert nothing_is_left(small, "mariadb")


@pytest.mark.slow
def test_interrupted_or_killed_at_any_moment_no_server_and_no_file_is_left(
    place: Path, study: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for turn in range(KILLS):
        number = signal.SIGINT if turn == 0 else signal.SIGKILL
        end_at_a_moment(study, chance, 15.0, number)
        assert nothing_is_left(place, "mariadb"), turn


def test_init_writes_a_study_for_both_loops(ascar: Callable[..., Any]) -> None:
    for words in ((), ("--online",)):
        text = ascar("init", "mariadb", *words, "--out", "-").out
        assert 'kind = "mariadb"' in text
        assert ("#settings = {}" in text) != bool(words)
        assert ('server = "existing"' in text) == ("[online]" in text) == bool(words)


def test_the_doctor_names_the_packages(ascar: Callable[..., Any]) -> None:
    text = str(ascar("doctor", "--json").document)
    assert "mariadb-server" in text
    assert "sysbench" in text


def test_the_example_is_a_study(ascar: Callable[..., Any]) -> None:
    shown = ascar("space", EXAMPLE, "--json")
    assert shown.status == 0, shown.err
    assert "innodb_buffer_pool_size" in str(shown.document)
