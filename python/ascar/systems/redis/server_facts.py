"""What a Redis server that others run says of itself, and why it may not be tuned."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.catalogues.redis import redis_of
from ascar.errors import EnvironmentLacks, Refused, WorkError
from ascar.systems.existing.process import ServerProcess
from ascar.systems.redis.connection import APPLICATION
from ascar.systems.redis.counters import fields_of, number
from ascar.systems.redis.protocol import RefusedCommand

if TYPE_CHECKING:
    from collections.abc import Generator

    from ascar.catalogues.redis import RedisSetting
    from ascar.systems.redis.connection import RedisAddress, RedisSession

_VERSION_MIN = (7, 0)
_LEAVING_S, _LOOK_S = 3.0, 0.1
_SENTINELS = "__sentinel__:hello"
_REWRITES = "cmdstat_config|rewrite"

COMMANDS = ("PING", "INFO", "CLIENT SETNAME", "CLIENT LIST", "CONFIG GET", "CONFIG SET", "PUBSUB NUMSUB")
"""Every command that a study sends."""


@dataclass(frozen=True, slots=True)
class RedisFacts:
    """What a server says of itself.

    Attributes:
        name: HOST:PORT or the path of the socket, by which a user confirms that this server may be tuned.
        run_id: which process it is: each start makes a new one.
        flavour: "redis" or "valkey".
        version: the version as the server says it.
        is_local: whether it is reached by a socket or the loopback of this machine.
        process: its process, where that is one of this machine.
        rewrites: how often CONFIG REWRITE was called.
    """

    name: str
    run_id: str
    flavour: str
    version: str
    is_local: bool
    process: ServerProcess | None
    rewrites: float

    def settings(self) -> dict[str, RedisSetting]:
        """The settings that its version has, by its own names."""
        major, minor = self.version.split(".")[:2]
        return redis_of(self.flavour, (int(major), int(minor)))

    @property
    def lock(self) -> str:
        """The name of the lock that a study of it takes."""
        return f"redis:{self.run_id}"

    @classmethod
    def of(cls, session: RedisSession, address: RedisAddress) -> RedisFacts:
        """Those of the server of a session.

        Raises:
            EnvironmentLacks: the version is too old, or none.
            Refused: the user lacks rights.
            StageFailed: the server does not answer.
        """
        fields = info(session, address)
        version = fields.get("redis_version", "")
        found = re.match(r"(\d+)\.(\d+)", version)
        if found is None or (int(found[1]), int(found[2])) < _VERSION_MIN:
            raise EnvironmentLacks(
                f"Redis {version!r:.40}: must be 7.0 or newer; an older CONFIG SET may do half of a change"
            )
        flavour = fields.get("server_name", "redis")
        local = address.is_local
        uptime_s = number(fields, "uptime_in_seconds")
        pid = int(number(fields, "process_id"))
        return cls(
            name=address.name,
            run_id=fields.get("run_id", ""),
            flavour=flavour,
            version=fields.get(f"{flavour}_version", version),
            is_local=local,
            process=ServerProcess.found(pid, uptime_s, ("redis", "valkey")) if local and pid else None,
            rewrites=rewrites_of(fields),
        )

    def check_same(self, fields: dict[str, str]) -> None:
        """See that the server is the one that the study began on.

        Args:
            fields: those of INFO now.

        Raises:
            WorkError: it is not, so that what was measured before does not compare.
        """
        if fields.get("run_id") != self.run_id:
            raise WorkError(
                "the server was started anew in mid-study, or another one answers after a failover (its run "
                f"id is {fields.get('run_id')!r:.50}, not {self.run_id!r}); the study ends"
            )
        if fields.get("role") != "master":
            raise WorkError("the server became a replica in mid-study; the study ends")


def info(session: RedisSession, address: RedisAddress) -> dict[str, str]:
    """What INFO tells, commandstats included.

    Raises:
        Refused: the user lacks rights.
        StageFailed: the server does not answer.
    """
    with rights_needed(address):
        return fields_of(str(session.ask("INFO", "everything")))


def rewrites_of(fields: dict[str, str]) -> float:
    """How often CONFIG REWRITE was called."""
    calls = re.match(r"calls=(\d+)", fields.get(_REWRITES, ""))
    return float(calls[1]) if calls else 0.0


def settings_told(session: RedisSession, address: RedisAddress) -> dict[str, str]:
    """What CONFIG GET tells.

    Raises:
        Refused: the user lacks rights, or the server has no CONFIG.
        StageFailed: the server does not answer.
    """
    with rights_needed(address):
        told = session.ask("CONFIG", "GET", "*")
    assert isinstance(told, list), "CONFIG GET answers with names and values in turns"
    return {str(name): str(value) for name, value in zip(told[::2], told[1::2], strict=True)}


def check_redis_tunable(session: RedisSession, address: RedisAddress) -> None:
    """See that nothing of the server itself speaks against a study; reads only.

    Raises:
        Refused: it is a replica, a Sentinel, a node of a cluster, watched by Sentinel, loading, or tuned by
            another study.
    """
    fields, name = info(session, address), address.name
    mode, role = fields.get("redis_mode", fields.get("server_mode")), fields.get("role")
    if mode == "sentinel" or role == "sentinel":
        raise Refused(f"{name}: is a Sentinel, which stores no data; name the server that it watches")
    if role != "master":
        primary = f"{fields.get('master_host', '?')}:{fields.get('master_port', '?')}"
        raise Refused(f"{name}: is a replica of {primary}; tune the primary")
    if mode == "cluster" or fields.get("cluster_enabled") == "1":
        raise Refused(
            f"{name}: is a node of a cluster, whose nodes should have the same settings; tune a server of "
            "the study's own (leave target.server out), and put the result on each node"
        )
    if fields.get("loading", "0") != "0":
        raise Refused(f"{name}: is loading its data; try again when it has")
    if _sentinels(session, address):
        raise Refused(
            f"{name}: is watched by Sentinel, whose failover calls CONFIG REWRITE and so would write a "
            "trial's values to redis.conf; tune a server of the study's own (leave target.server out)"
        )
    if not _alone(session, address):
        raise Refused(f"{name}: is tuned by another study at this moment; wait for that study or stop it")


def redis_rights(user: str) -> str:
    """The command that gives a user the rights for a study."""
    return f"ACL SETUSER {user} {' '.join('+' + one.lower().replace(' ', '|') for one in COMMANDS)}"


@contextmanager
def rights_needed(address: RedisAddress) -> Generator[None]:
    """Say what is needed where the server refuses a command for the lack of a right, or has none of its name.

    Raises:
        Refused: it does.
    """
    try:
        yield
    except RefusedCommand as refusal:
        if refusal.said.startswith("NOPERM"):
            user = address.user or "default"
            raise Refused(
                f"user {user}: lacks rights; let an administrator run: {redis_rights(user)}"
            ) from refusal
        if refusal.said.startswith("ERR unknown command"):
            raise Refused(
                f"{address.name}: has no {refusal.command}: rename-command or a provider took it away; limit "
                "it by ACL instead, or tune a server of the study's own (leave target.server out)"
            ) from refusal
        raise


def _sentinels(session: RedisSession, address: RedisAddress) -> int:
    with rights_needed(address):
        told = session.ask("PUBSUB", "NUMSUB", _SENTINELS)
    return int(str(told[1])) if isinstance(told, list) and len(told) > 1 else 0


def _alone(session: RedisSession, address: RedisAddress) -> bool:
    """Whether no other study has a connection; one that was killed just now may take a moment to go."""
    deadline_s = time.monotonic() + _LEAVING_S
    while True:
        with rights_needed(address):
            listed = str(session.ask("CLIENT", "LIST"))
        if sum(f" name={APPLICATION} " in line for line in listed.splitlines()) <= 1:
            return True
        if time.monotonic() > deadline_s:
            return False
        time.sleep(_LOOK_S)
