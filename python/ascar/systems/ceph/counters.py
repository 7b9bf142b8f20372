"""What OSDs tell of themselves (`perf dump`): totals of requests, writes that BlueStore has put off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ascar.typed import finite

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOTALS: Mapping[str, tuple[str, ...]] = {
    "ceph_operations": ("osd", "op"),
    "ceph_reads": ("osd", "op_r"),
    "ceph_writes": ("osd", "op_w"),
    "ceph_input_bytes": ("osd", "op_in_bytes"),
    "ceph_output_bytes": ("osd", "op_out_bytes"),
    "ceph_operation_s": ("osd", "op_latency", "sum"),
    "ceph_commit_s": ("bluestore", "kv_commit_lat", "sum"),
    "ceph_throttled_s": ("bluestore", "throttle_lat", "sum"),
    "ceph_deferred_writes": ("bluestore", "deferred_write_ops"),
    "ceph_deferred_bytes": ("bluestore", "deferred_write_bytes"),
}
_PUT_OFF = ("throttle-bluestore_throttle_deferred_bytes", "val")
PUT_OFF = "write_cost_bytes"
"""Writes that are not at their place yet: their bytes, with what BlueStore adds for each."""
COUNTERS = frozenset(_TOTALS)


def counters_of(dump: Mapping[str, Any]) -> dict[str, float]:
    """The totals of an OSD."""
    return {name: _number(dump, path) for name, path in _TOTALS.items()}


def put_off(dump: Mapping[str, Any]) -> float:
    """What an OSD has put off."""
    return _number(dump, _PUT_OFF)


def _number(dump: Mapping[str, Any], path: tuple[str, ...]) -> float:
    """A number of a dump; what is not there, or is none, is zero."""
    found: Any = dump
    for name in path:
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return max(0.0, finite(found) or 0.0)
