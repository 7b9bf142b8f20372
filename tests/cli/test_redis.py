"""A study of Redis by the commands: begun, tuned, exported, interrupted, killed; nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ascar.program.account import Account
from ascar.program.redis import RedisPrograms
from ascar.systems.redis import Redis
from ascar.workloads import LoadTiming, open_workload
from own_server_study import OwnServerStudy
from own_servers import small_volume

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


class TestRedisStudy(OwnServerStudy):
    kind, text, program = "redis", TEXT, "redis-server"
    searched = ("hz", "appendonly")
    forms = ("redis.conf", "config-set")
    packages = ("redis-server", "redis-benchmark")
    of_example, ends_within_s = "hash_max_listpack_entries", 12.0
    ends = 3

    @staticmethod
    def account() -> Account:
        RedisPrograms.find()
        return Account.of(None, "Redis", "redis")

    @pytest.mark.slow
    @pytest.mark.root
    def test_a_configuration_that_fills_the_disk_fails_its_trial_and_the_next_goes_on(
        self, ascar: Callable[..., Any], place: Path, tmp_path: Path
    ) -> None:
        with small_volume(place, "2m") as small:
            text = self.text.replace("PLACE", str(small)).replace('appendonly = "yes"', 'save = ""')
            text = text.replace('tuned = ["hz"', 'tuned = ["appendonly", "hz"').replace(
                "trials = 4", "trials = 6"
            )
            # Large values, eight at a time, fill the disk also where few operations can be done.
            text = text.replace(
                "keys = 2000", "keys = 2000\nmix = 'writes'\nvalue_bytes = 1000\npipeline = 8"
            )
            study = tmp_path / "cache.toml"
            study.write_text(f"{text}[start]\nconfigurations = [{{ appendonly = true }}]\n")
            self.fails_one_that_fills_the_disk(ascar, small, study, 3, "No space left on device")

    @pytest.mark.slow
    @pytest.mark.paced
    def test_most_of_what_a_mis_set_server_loses_is_won_back(
        self, ascar: Callable[..., Any], place: Path, tmp_path: Path
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
