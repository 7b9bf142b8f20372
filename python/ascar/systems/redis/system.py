"""The target of kind "redis".

[target]
kind = "redis"
directory = "/data"        # default: the home of the account that runs the server, or /var/tmp
parameters = "expert"      # or "wide": every setting that bears on speed
memory = "1 GiB"           # default: three quarters of the machine's
settings = { appendonly = "yes" }      # how your server runs today: what the study starts from

Each trial starts a server of its own on the data as the load's fill left it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from ascar.catalogues.redis import redis
from ascar.errors import EnvironmentLacks
from ascar.program.redis import RedisPrograms
from ascar.results.machine import Need
from ascar.study import convert
from ascar.systems import Sample, Starter
from ascar.systems.own_server import ConfiguredKeys, ConfiguredTarget
from ascar.systems.redis.counters import COUNTERS, GAUGES, counters_of, gauges_of, number
from ascar.systems.redis.persistence import CHANGES, LOG_BYTES, LogRule, cycle_s, deferred_of
from ascar.systems.redis.server import SOCKET, RedisServer
from ascar.systems.redis.space import redis_space
from ascar.systems.redis.statements import forms_of, named, settings_of
from ascar.systems.starter import PLAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from ascar.space import Configuration
    from ascar.systems import System
    from ascar.systems.keeper import Keeper

_VERSION_MIN = (7, 0)
_WRITE_S = 600.0


class RedisOptions(ConfiguredKeys, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "redis".

    Attributes:
        directory: the directory in which one is made for the server. None: the home of its account, or
            /var/tmp where it has none.
        parameters: "expert", about twenty settings, or "wide", all that bear on speed.
        memory: the memory that the server may come to use: half of it for data (maxmemory), the rest for
            what a fork copies. None: memory_limit, or three quarters of the machine's.
        memory_limit: the memory and page cache that the server has once it is filled, as in a container of
            that size: a control group, which takes root. None: the machine's.
        user: the account that runs the server. None: the caller's, or "redis" where root calls.
        version: the major version to run. None: the one that is installed.
        settings: settings as the server of today has them, by its own names: the default of the study.
        flavour: "redis" or "valkey". None: Redis, or Valkey where only that is installed.
        data: whether each trial starts on the data that the fill left ("same"), or on what the trial before
            left ("kept"), where CONFIG SET does without a new start.
    """

    flavour: Literal["redis", "valkey"] | None = None


class Redis(ConfiguredTarget[RedisServer]):
    """A Redis or Valkey server of the study's own.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: neither is installed, or too old a version.
    """

    name, kind, account, socket = "Redis", "redis", "redis", SOCKET
    listed = staticmethod(redis)
    told = COUNTERS | GAUGES
    default_workload: str | None = "redis-benchmark"
    starter = Starter(
        target={"parameters": '"expert"', "memory": '"1 GiB"'},
        shown={
            "memory_limit": '"2 GiB"',
            "user": '"redis"',
            "version": "7",
            "flavour": '"valkey"',
        },
        space={
            **PLAIN,
            "allow_cost": '#allow_cost = ["dyn-app"]',
            "pinned": "activerehashing = true",
            "constraint": "hz <= 100",
            "forbidden": "hz = 500, dynamic_hz = false",
        },
        workload=lambda: {"kind": '"redis-benchmark"'},
        online={"server": "existing"},
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, RedisOptions, "target")
        self._programs = RedisPrograms.find(self.options.version, self.options.flavour)
        self._programs.check_from("Redis", _VERSION_MIN)
        super().__init__(self.options, self._programs.settings().values())
        self.space = redis_space(self.options.parameters, self._programs, self._given, self._memory_bytes)
        percent = float(self._before("auto-aof-rewrite-percentage"))
        self._rule = LogRule(percent, float(self._before("auto-aof-rewrite-min-size")))

    @classmethod
    def variant(cls, options: Mapping[str, Any]) -> type[System]:
        """A server that people use is tuned in another way."""
        if "server" not in options:
            return cls
        from ascar.systems.redis.existing import ExistingRedis

        return ExistingRedis

    def _start_again(self, configuration: Configuration) -> None:
        """Start the server again on the data that it has, which it writes first."""
        server = self._entered()
        server.snapshot()
        server.stop()
        server.begin_log()
        server.begin(self._lines(configuration), _WRITE_S)

    def _end_fill(self) -> None:
        self._entered().snapshot()

    def _told(self) -> Sample:
        """INFO's totals and memory, and the work that persistence has put off."""
        fields = self._entered().info()
        return Sample(counters_of(fields), gauges_of(fields), deferred=deferred_of(fields, self._save()))

    def drain(self, limit_s: float) -> None:
        """Write a snapshot, and rewrite the log as often as the rule of the server of today comes to.

        Raises:
            StageFailed: it takes longer.
        """
        server, deadline_s = self._entered(), time.monotonic() + limit_s
        server.wait_until_written(deadline_s)
        fields = server.info()
        put_off = deferred_of(fields, self._save())
        for _ in range(self._rule.owed(put_off[LOG_BYTES], number(fields, "aof_base_size"))):
            server.write("BGREWRITEAOF", deadline_s)
        if put_off[CHANGES]:
            server.write("BGSAVE", deadline_s)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The longer of the times between snapshots and between rewrites of the log."""
        load_s = metrics.get("load_s", 0.0)
        if load_s <= 0:
            return 0.0
        names = ("save", "appendonly", "auto-aof-rewrite-percentage", "auto-aof-rewrite-min-size")
        in_force = {
            redis()[name].parameter_name: configuration.get(redis()[name].parameter_name, self._before(name))
            for name in names
        }
        changes_per_s = metrics.get(f"deferred_{CHANGES}", 0.0) / load_s
        return cycle_s(in_force, self._rule, metrics, changes_per_s)

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        return {**super().describe(), self._programs.flavour: self._programs.version}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The lines of redis.conf, CONFIG SET, and the commands that give these."""
        return forms_of(configuration, chosen)

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """The server, and its own benchmark."""
        server, benchmark = None, None
        try:
            programs = RedisPrograms.find()
            server = f"{programs.flavour.capitalize()} {programs.version}"
            benchmark = programs.path("benchmark")
        except EnvironmentLacks:
            pass
        return (
            Need("redis", "the server that is tuned", server, ("redis",), "redis-server", "redis"),
            Need("redis-benchmark", "the load", benchmark, ("redis",), "redis-tools", "redis"),
        )

    def _made(self, place: Path, keeper: Keeper) -> RedisServer:
        fixed = [f"maxmemory {max(1 << 20, self._memory_bytes // 2)}"]
        return RedisServer(self._programs, self._account, place, keeper, fixed)

    def _lines(self, configuration: Configuration) -> Sequence[str]:
        return settings_of(self._whole(configuration))

    def _settings(self) -> Mapping[str, str]:
        return self._entered().settings()

    def _set(self, before: Configuration, after: Configuration) -> None:
        """Change what differs by one CONFIG SET, which takes all or nothing."""
        words = [word for one, text in named(self._changed(before, after)) for word in (one.name, text)]
        server = self._entered()
        if words:
            server.ask("CONFIG", "SET", *words)
            # A log that was switched on begins with a copy of all data.
            server.wait_until_written(time.monotonic() + _WRITE_S)

    def _save(self) -> str:
        default = self._before("save")
        return str(default if self._current is None else self._current.get("save", default))
