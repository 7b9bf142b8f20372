"""A study of Ceph through the commands: tuned, exported, interrupted, killed."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from own_servers import ceph_account, ceph_installed, end_at_a_moment, nothing_is_left, server_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLE = Path(__file__).parents[2] / "examples" / "ceph.toml"
KILLS = 3
TEXT = """
[study]
name = "objects"
objective = "maximize throughput_ops_per_s"
budget = "15 min"
[target]
kind = "ceph"
directory = "PLACE"
memory = "3 GiB"
replicas = 1
[space]
tuned = ["debug_osd", "debug_bluestore", "osd_op_num_shards", "objecter_inflight_ops"]
[workload]
kind = "rados-bench"
objects = 2000
[measurement]
load_min = "2 s"
load_max = "2 s"
[stop]
trials = 3
[verify]
runs_min = 2
runs_max = 2
"""

pytestmark = pytest.mark.skipif(not ceph_installed(), reason="Ceph is not installed, or has no account")


@pytest.fixture
def place() -> Iterator[Path]:
    with server_place(ceph_account(), "ascar-ceph-") as folder:
        yield Path(folder)


@pytest.fixture
def study(place: Path, tmp_path: Path) -> Path:
    path = tmp_path / "objects.toml"
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
    assert "failed" not in tuned.document["counts"], tuned.err
    assert nothing_is_left(place, "ceph")
    exported = ascar("export", "objects", "--as", "ceph-config", "--json").document
    assert len(exported["lines"]) == len(exported["chosen"])


@pytest.mark.slow
@pytest.mark.cluster
def test_interrupted_or_killed_at_any_moment_no_daemon_and_no_file_is_left(
    place: Path, study: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for turn in range(KILLS):
        number = signal.SIGINT if turn == 0 else signal.SIGKILL
        end_at_a_moment(study, chance, 30.0, number)
        assert nothing_is_left(place, "ceph"), turn


def test_init_writes_a_study(ascar: Callable[..., Any]) -> None:
    text = ascar("init", "ceph", "--out", "-").out
    assert 'kind = "ceph"' in text
    assert "#settings = {}" in text


def test_the_doctor_names_the_packages(ascar: Callable[..., Any]) -> None:
    assert "ceph-osd" in str(ascar("doctor", "--json").document)


def test_the_example_is_a_study(ascar: Callable[..., Any]) -> None:
    shown = ascar("space", EXAMPLE, "--json")
    assert shown.status == 0, shown.err
    assert "osd_op_num_shards" in str(shown.document)
