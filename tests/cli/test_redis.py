"""A study of Redis by the commands: begun, tuned, exported, interrupted, killed; nothing is left."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks
from ascar.program.account import Account
from ascar.program.redis import RedisPrograms
from ascar.systems.redis import Redis
from ascar.workloads import LoadTiming, open_workload
from own_servers import end_at_a_moment, nothing_is_left, server_place, small_volume

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLE = Path(__file__).parents[2] / "examples" / "redis.toml"
KILLS = 5
TEXT = """
[study]
name = "cache"
objective = "maximize throughput_ops_per_s"
budget = "60 s"
[target]
kind = "redis"
directory = "PLACE"
memory = "512 MiB"
settings = { appendonly = "yes" }
[space]
tuned = ["hz", "hash_max_listpack_entries", "latency_tracking", "rdbcompression"]
[workload]
kind = "redis-benchmark"
keys = 2000
clients = 4
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
        RedisPrograms.find()
        account = Account.of(None, "Redis", "redis")
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
    with server_place(account, "ascar-redis-") as folder:
        yield Path(folder)


@pytest.fixture
def study(place: Path, tmp_path: Path) -> Path:
    path = tmp_path / "cache.toml"
    path.write_text(TEXT.replace("PLACE", str(place)))
    return path


@pytest.mark.slow
def test_it_is_tuned_and_exported_and_nothing_is_left(
    ascar: Callable[..., Any], place: Path, study: Path
) -> None:
    study.write_text(study.read_text().replace("trials = 4", "trials = 2"))
    tuned = ascar("tune", study, "--json")
    assert tuned.status in {0, 3}, tuned.err
    assert tuned.document["counts"]["complete"] >= 2
    assert nothing_is_left(place, "redis-server")
    assert set(tuned.document["best"]["configuration"]) >= {"hz", "appendonly"}
    for form in ("redis.conf", "config-set"):
        exported = ascar("export", "cache", "--as", form, "--json").document
        assert len(exported["lines"]) >= len(exported["chosen"])


@pytest.mark.slow
@pytest.mark.root
def test_a_configuration_that_fills_the_disk_fails_its_trial_and_the_next_goes_on(
    ascar: Callable[..., Any], place: Path, tmp_path: Path
) -> None:
    with small_volume(place, "2m") as small:
        text = TEXT.replace("PLACE", str(small)).replace('appendonly = "yes"', 'save = ""')
        text = text.replace('tuned = ["hz"', 'tuned = ["appendonly", "hz"').replace(
            "trials = 4", "trials = 6"
        )
        # Large values, eight at a time, fill the disk also where few operations can be done.
        text = text.replace("keys = 2000", "keys = 2000\nmix = 'writes'\nvalue_bytes = 1000\npipeline = 8")
        study = tmp_path / "cache.toml"
        study.write_text(f"{text}[start]\nconfigurations = [{{ appendonly = true }}]\n")
        tuned = ascar("tune", study, "--json")
        assert tuned.status in {0, 3}, tuned.err
        assert tuned.document["counts"]["failed"] >= 1, tuned.err
        assert tuned.document["counts"]["complete"] >= 3, tuned.err
        assert "No space left on device" in tuned.err
        assert nothing_is_left(small, "redis-server")


@pytest.mark.slow
def test_interrupted_or_killed_at_any_moment_no_server_and_no_file_is_left(
    place: Path, study: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for turn in range(KILLS):
        number = signal.SIGINT if turn == 0 else signal.SIGKILL
        end_at_a_moment(study, chance, 12.0, number)
        assert nothing_is_left(place, "redis-server"), turn


@pytest.mark.slow
@pytest.mark.paced
def test_most_of_what_a_mis_set_server_loses_is_won_back(
    ascar: Callable[..., Any], place: Path, tmp_path: Path
) -> None:
    """Hashes of five hundred fields as lists, each searched from its beginning.

    In seconds: that a gain is proven, and how much of the loss comes back, is for `benchmarks.mis_set`.
    """
    load = {"kind": "redis-benchmark", "mix": "hashes", "keys": 250_000, "value_bytes": 20, "pipeline": 8}
    table = "\n".join(f"{key} = {value!r}" for key, value in load.items())
    study = tmp_path / "lists.toml"
    study.write_text(
        f"""
[study]
name = "lists"
objective = "maximize throughput_ops_per_s"
budget = "40 s"
[target]
kind = "redis"
directory = "{place}"
memory = "1 GiB"
settings = {{ hash-max-listpack-entries = 65536, save = "" }}
[space]
tuned = ["hash_max_listpack_entries", "latency_tracking"]
[workload]
{table}
[measurement]
load_min = "0.5 s"
load_max = "1 s"
[stop]
trials = 15
[recommend]
margin = 0
"""
    )
    tuned = ascar("tune", study, "--json")
    assert tuned.status in {0, 3}, tuned.err
    assert tuned.document["verdict"]["kind"] in {"improved", "undecided"}
    found = tuned.document["best"]["configuration"]["hash_max_listpack_entries"]
    pace = LoadTiming(1.0, 1.0, 0.5, lambda series: False)
    rates = {128: 0.0, 65536: 0.0, found: 0.0}
    with Redis({"directory": str(place), "memory": "1 GiB", "settings": {"save": ""}}) as target:
        stock = target.space.default()
        run = open_workload(load)
        target.apply(stock)
        run.prepare(target.workspace)
        target.settle()
        for turn in range(12):
            for value in rates:
                target.apply(target.space.nearest({**stock, "hash_max_listpack_entries": value}))
                rates[value] += run.run(target.workspace, pace).metrics["throughput_ops_per_s"]
            lost, won = rates[128] - rates[65536], rates[found] - rates[65536]
            if turn >= 2 and lost > 0.1 * rates[128] and won >= 0.5 * lost:
                return
    raise AssertionError(rates)


def test_init_writes_a_study_for_both_loops(ascar: Callable[..., Any]) -> None:
    for words in ((), ("--online",)):
        text = ascar("init", "redis", *words, "--out", "-").out
        assert 'kind = "redis"' in text
        assert ("#settings = {}" in text) == (not words)  # those of a server of the study's own
        assert ("[online]" in text) == bool(words)


def test_the_doctor_names_the_packages(ascar: Callable[..., Any]) -> None:
    text = str(ascar("doctor", "--json").document)
    assert "redis-server" in text
    assert "redis-benchmark" in text


def test_the_example_is_a_study(ascar: Callable[..., Any]) -> None:
    shown = ascar("space", EXAMPLE, "--json")
    if "not installed" in shown.err or "no account" in shown.err:
        pytest.skip(shown.error)
    assert shown.status == 0, shown.err
    assert "hash_max_listpack_entries" in str(shown.document)
