"""What a Redis server tells of itself: INFO's totals, and the work that its persistence puts off.

Redis documentation, "INFO".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOTALS = {
    "redis_commands": "total_commands_processed",
    "redis_connections": "total_connections_received",
    "redis_input_bytes": "total_net_input_bytes",
    "redis_output_bytes": "total_net_output_bytes",
    "redis_keys_hit": "keyspace_hits",
    "redis_keys_missed": "keyspace_misses",
    "redis_keys_expired": "expired_keys",
    "redis_keys_evicted": "evicted_keys",
    "redis_errors": "total_error_replies",
    "redis_log_rewrites": "aof_rewrites",
    "redis_snapshots": "rdb_saves",
    "redis_log_syncs_delayed": "aof_delayed_fsync",
}
_COMMANDS_S = "redis_commands_cpu_s"
_GAUGES = {
    "redis_memory_bytes": "used_memory",
    "redis_resident_bytes": "used_memory_rss",
    "redis_copied_bytes": "rdb_last_cow_size",
}
_OF_ADMINISTRATION = frozenset(
    {
        *("acl", "auth", "bgrewriteaof", "bgsave", "client", "command", "config", "debug", "echo", "hello"),
        *("info", "lastsave", "latency", "memory", "module", "monitor", "ping", "psync", "pubsub"),
        *("replconf", "role", "select", "slowlog"),
    }
)
COUNTERS = frozenset({*_TOTALS, _COMMANDS_S})
GAUGES = frozenset(_GAUGES)


def fields_of(info: str) -> dict[str, str]:
    """The fields of INFO's answer."""
    lines = (line.partition(":") for line in info.splitlines() if not line.startswith("#"))
    return {name: value.strip() for name, mark, value in lines if mark}


def calls_of(fields: Mapping[str, str]) -> tuple[float, float]:
    """The commands that clients have sent to have work done, and the milliseconds that they took."""
    calls = spent_us = 0.0
    for name, stats in fields.items():
        command = name.removeprefix("cmdstat_").partition("|")[0]
        if not name.startswith("cmdstat_") or command in _OF_ADMINISTRATION:
            continue
        parts = (part.partition("=") for part in stats.split(","))
        told = {field: value for field, _, value in parts}
        calls += number(told, "calls")
        spent_us += number(told, "usec")
    return calls, spent_us / 1e3


def counters_of(fields: Mapping[str, str]) -> dict[str, float]:
    """Totals that only grow: those above, and the processor time in all commands (commandstats)."""
    found = {name: number(fields, field) for name, field in _TOTALS.items()}
    usec = (
        float(part.removeprefix("usec="))
        for name, stats in fields.items()
        if name.startswith("cmdstat_")
        for part in stats.split(",")
        if part.startswith("usec=")
    )
    return {**found, _COMMANDS_S: sum(usec) / 1e6}


def gauges_of(fields: Mapping[str, str]) -> dict[str, float]:
    """Memory as it is."""
    return {name: number(fields, field) for name, field in _GAUGES.items()}


def number(fields: Mapping[str, str], name: str) -> float:
    """A field as a number; a field that is not there is zero."""
    try:
        return max(0.0, float(fields.get(name, "0")))
    except ValueError:
        return 0.0
