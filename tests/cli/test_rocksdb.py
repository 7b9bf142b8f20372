"""A study of RocksDB through the commands: tuned, exported, interrupted, killed, on a full disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from own_server_study import OwnServerStudy
from own_servers import nothing_is_left, rocksdb_account, rocksdb_installed, small_volume

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


class TestRocksDBStudy(OwnServerStudy):
    kind, text, program = "rocksdb", TEXT, "db_bench"
    smaller: ClassVar = {"#keys = 1000000": "keys = 50000"}
    searched = ("write_buffer_size",)
    forms = ("rocksdb-options",)
    packages = ("rocksdb-tools",)
    of_example, ends_within_s = "write_buffer_size", 10.0
    account = staticmethod(rocksdb_account)

    @pytest.mark.slow
    @pytest.mark.root
    def test_a_configuration_that_fills_the_disk_fails_its_trial_and_the_next_goes_on(
        self, ascar: Callable[..., Any], place: Path, tmp_path: Path
    ) -> None:
        with small_volume(place, "120m") as small:
            text = self.text.replace("PLACE", str(small)).replace("trials = 3", "trials = 4")
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


def test_init_writes_a_study(ascar: Callable[..., Any]) -> None:
    text = ascar("init", "rocksdb", "--out", "-").out
    assert 'kind = "rocksdb"' in text
    assert 'kind = "db_bench"' in text
    assert '#settings = { write_buffer_size = "128M"' in text
