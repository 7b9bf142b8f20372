"""The target of kind "redis".

[target]
kind = "redis"
directory = "/data"        # default: the home of the account that runs the server
parameters = "expert"      # or "wide": every setting that bears on speed
memory = "1 GiB"           # default: three quarters of the machine's
settings = { appendonly = "yes" }      # how your server runs today: what the study starts from

Each trial starts a server of its own on the data as the load's fill left it.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.catalogues.redis import redis
from ascar.errors import EnvironmentLacks
from ascar.program.redis import RedisPrograms
from ascar.results.machine import Need
from ascar.results.trial import Change
from ascar.space import ChangeCost
from ascar.study import convert
from ascar.systems import Sample, Starter
from ascar.systems.catalogue import KnownParameter, catalogue_of
from ascar.systems.counters import counter_names
from ascar.systems.own_server import OwnServerTarget, ServerKeys
from ascar.systems.redis.counters import COUNTERS, GAUGES, counters_of, gauges_of, number
from ascar.systems.redis.persistence import CHANGES, LOG_BYTES, LogRule, cycle_s, deferred_of
from ascar.systems.redis.server import SOCKET, RedisServer
from ascar.systems.redis.space import Given, checked, redis_space
from ascar.systems.redis.statements import forms_of, named, settings_of
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from ascar.space import Configuration, Value
    from ascar.systems import System
    from ascar.systems.keeper import Keeper

_VERSION_MIN = "7.0"
_WRITE_S = 600.0


class RedisOptions(ServerKeys, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "redis".

    Attributes:
        directory: the directory in which one is made for the server. None: the home of its account.
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

    settings: dict[str, Given] = msgspec.field(default_factory=dict[str, Given])
    flavour: Literal["redis", "valkey"] | None = None
    data: Literal["same", "kept"] = "same"


class Redis(OwnServerTarget[RedisServer]):
    """A Redis or Valkey server of the study's own.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: neither is installed, or too old a version.
    """

    name, kind, account, socket = "Redis", "redis", "redis", SOCKET
    default_workload: str | None = "redis-benchmark"
    starter = Starter(target={"parameters": '"expert"', "memory": '"1 GiB"'}, online={"server": "existing"})

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, RedisOptions, "target")
        super().__init__(self.options)
        self._programs = RedisPrograms.find(self.options.version, self.options.flavour)
        if not self._programs.has(_VERSION_MIN):
            raise EnvironmentLacks(
                f"Redis {self._programs.version} is too old; ascar tunes versions from {_VERSION_MIN} on"
            )
        self._given = checked(self.options.settings, self._programs)
        self.space = redis_space(self.options.parameters, self._programs, self._given, self._memory_bytes)
        percent = float(self._before("auto-aof-rewrite-percentage"))
        self._rule = LogRule(percent, float(self._before("auto-aof-rewrite-min-size")))
        self._afresh = False

    @classmethod
    def variant(cls, options: Mapping[str, Any]) -> type[System]:
        """A server that people use is tuned in another way."""
        if "server" not in options:
            return cls
        from ascar.systems.redis.existing import ExistingRedis

        return ExistingRedis

    @classmethod
    def for_session(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """A session changes a server that works: by CONFIG SET, on the data that is there."""
        return {"data": "kept", **options}

    @property
    def reuses_state(self) -> bool:
        """Whether a trial starts on the data that the one before left."""
        return self.options.data == "kept"

    def start_afresh(self) -> None:
        """Start the next trial on the data that the fill left all the same."""
        self._afresh = True

    def apply(self, configuration: Configuration) -> Change:
        """Put a configuration in force: by a new start on the same data, or by CONFIG SET where data is kept.

        Raises:
            StageFailed: the server refuses it.
        """
        server, before = self._entered(), self._current
        afresh, self._afresh = self._afresh, False
        if not self.reuses_state or afresh or before is None:
            return super().apply(configuration)
        start_s = time.monotonic()
        self._current = None
        if self.space.change(before, configuration).cost is ChangeCost.APP_RESTART:
            server.snapshot()
            server.stop()
            server.begin_log()
            server.begin(self._lines(configuration), _WRITE_S)
        else:
            self._set(before, configuration)
        self._current = configuration
        steps = {"change": time.monotonic() - start_s}
        return Change.of(self.space.change(before or {}, configuration), steps, filled=True)

    def settle(self) -> Mapping[str, float]:
        """After the fill, keep the data, and start on a copy of it as all later trials do.

        Raises:
            StageFailed: the data cannot be saved or copied, or the server does not start again.
        """
        server = self._entered()
        if self._current is not None and not server.saved.exists():
            server.snapshot()
        return super().settle()

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What CONFIG GET says is in force.

        Raises:
            StageFailed: the server does not answer.
        """
        if self._current is None:
            return {}
        told = self._entered().settings()
        wanted = {one.parameter_name: one for one in redis().values() if one.name in told}
        return {
            name: wanted[name].value(told[wanted[name].name])
            for name in names
            if name in wanted and name in self._current
        }

    def sample(self) -> Sample:
        """INFO's totals and memory, the traffic of the disk, and the work that persistence has put off.

        Raises:
            StageFailed: the server does not answer.
        """
        assert self._counters is not None, "counters are those of the disk that entering finds"
        fields = self._entered().info()
        counters = {**self._counters.read(), **counters_of(fields)}
        return Sample(counters, gauges_of(fields), deferred=deferred_of(fields, self._save()))

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters and gauges."""
        return counter_names(("device",)) | COUNTERS | GAUGES

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

    @property
    def workspace(self) -> Workspace:
        """A directory for the load, which finds the server by REDIS_SOCKET."""
        server = self._entered()
        reached = {"REDIS_SOCKET": str(server.socket)}
        path = os.pathsep.join((str(self._programs.server.parent), os.environ.get("PATH", os.defpath)))
        return Workspace(
            server.place / "load", user=self._account.name, environment={**reached, "PATH": path}
        )

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        return {
            **super().describe(),
            self._programs.flavour: self._programs.version,
            "settings": {name: str(value) for name, value in self._given.items()},
            "data": self.options.data,
        }

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The lines of redis.conf, CONFIG SET, and the commands that give these."""
        return forms_of(configuration, chosen)

    @classmethod
    def catalogue(cls, options: Mapping[str, Any]) -> Mapping[str, KnownParameter]:  # noqa: ARG003
        """Every setting of the list, whether the installed version has it or not."""
        return catalogue_of(one.parameter() for one in redis().values())

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
        searched = set(self.space.names)
        others = {
            redis()[name].parameter_name: value
            for name, value in self._given.items()
            if redis()[name].parameter_name not in searched
        }
        return settings_of({**others, **configuration})

    def _set(self, before: Configuration, after: Configuration) -> None:
        """Change what differs by one CONFIG SET, which takes all or nothing."""
        default = self.space.default()
        told = {
            name: after.get(name, default.get(name, self.space[name].default))
            for name in self.space.change(before, after).parameters
        }
        words = [word for one, text in named(told) for word in (one.name, text)]
        server = self._entered()
        if words:
            server.ask("CONFIG", "SET", *words)
            # A log that was switched on begins with a copy of all data.
            server.wait_until_written(time.monotonic() + _WRITE_S)

    def _before(self, name: str) -> Given:
        return self._given.get(name, self._programs.settings()[name].default)

    def _save(self) -> str:
        default = self._before("save")
        return str(default if self._current is None else self._current.get("save", default))
