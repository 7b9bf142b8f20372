"""A study of PostgreSQL by the commands: tuned, exported, killed; nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.program.postgresql import Programs
from own_server_study import OwnServerStudy
from own_servers import postgresql_account

if TYPE_CHECKING:
    from ascar.program.account import Account

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


class TestPostgreSQLStudy(OwnServerStudy):
    kind, text, program = "postgresql", TEXT, "postgres"
    searched = ("shared_buffers", "work_mem")
    forms = ("postgresql.conf", "alter-system")
    packages = ("postgresql",)
    of_example, ends_within_s = "shared_buffers", 12.0
    ends = 3

    @staticmethod
    def account() -> Account:
        Programs.find()
        return postgresql_account()
