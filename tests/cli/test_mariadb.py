"""A study of MariaDB by the commands: begun, tuned, exported, interrupted, killed; nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from own_server_study import OwnServerStudy
from own_servers import mariadb_account, mariadb_installed, small_volume

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


class TestMariaDBStudy(OwnServerStudy):
    kind, text, program = "mariadb", TEXT, "mariadb"
    smaller: ClassVar = {"#rows = 100000": "rows = 10000"}
    searched = ("innodb_io_capacity", "sort_buffer_size")
    forms = ("my.cnf", "set-global")
    packages = ("mariadb-server", "sysbench")
    of_example, ends_within_s = "innodb_buffer_pool_size", 15.0
    account = staticmethod(mariadb_account)

    @pytest.mark.slow
    @pytest.mark.root
    def test_a_configuration_that_fills_the_disk_fails_its_trial_and_the_next_goes_on(
        self, ascar: Callable[..., Any], place: Path, tmp_path: Path
    ) -> None:
        with small_volume(place, "330m") as small:
            text = self.text.replace("PLACE", str(small)).replace("trials = 3", "trials = 4")
            text = text.replace(
                "tuned = [", 'allow_weaker = ["availability"]\ntuned = ["innodb_log_file_size", '
            )
            study = tmp_path / "shop.toml"
            study.write_text(f"{text}[start]\nconfigurations = [{{ innodb_log_file_size = 1073741824 }}]\n")
            self.fails_one_that_fills_the_disk(ascar, small, study, 2, "does not start")


def test_init_writes_a_study_for_both_loops(ascar: Callable[..., Any]) -> None:
    for words in ((), ("--online",)):
        text = ascar("init", "mariadb", *words, "--out", "-").out
        assert 'kind = "mariadb"' in text
        assert ("#settings = { innodb_buffer_pool_size" in text) != bool(words)
        assert ('kind = "sysbench"' in text) != bool(words)
        assert ('#password_file = "/etc/ascar' in text) == bool(words)
        assert ('server = "existing"' in text) == ("[online]" in text) == bool(words)
