"""What the daemons of a Ceph cluster answer, as a study reads it; no daemon runs here."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import StageFailed
from ascar.systems.ceph.admin_socket import ask_daemon
from ascar.systems.ceph.counters import COUNTERS, counters_of, put_off
from ascar.systems.ceph.status import ClusterStatus

if TYPE_CHECKING:
    from pathlib import Path

HEALTHY = {
    "health": {"status": "HEALTH_OK", "checks": {}},
    "osdmap": {"num_up_osds": 3},
    "pgmap": {"num_pgs": 33, "pgs_by_state": [{"state_name": "active+clean", "count": 33}]},
}


def groups(*states: str) -> dict[str, Any]:
    """A placement group in each state."""
    named = [{"state_name": state, "count": 1} for state in states]
    return {"num_pgs": len(states), "pgs_by_state": named}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"health": {"status": "HEALTH_WARN", "checks": {}}}, "the health is 'HEALTH_WARN'"),
        ({"health": {"status": "HEALTH_OK", "checks": {"OSDMAP_FLAGS": {"muted": True}}}}, None),
        ({"pgmap": groups("active+clean+scrubbing+deep", "active+clean+snaptrim_wait")}, None),
        ({"pgmap": groups("active+clean+inconsistent", "active+clean")}, "1 of 2"),
        ({"pgmap": groups("active+clean+remapped", "active+undersized+degraded")}, "0 of 2"),
        ({"osdmap": {"num_up_osds": 2}}, "2 of 3 OSDs"),
        ({"osdmap": {}}, "0 of 3 OSDs"),
        ({"pgmap": {"num_pgs": 0}}, "0 of 0 placement groups"),
        ({"pgmap": {"num_pgs": 33, "pgs_by_state": [{"state_name": "peering", "count": 33}]}}, "0 of 33"),
        (
            {"health": {"status": "HEALTH_WARN", "checks": {"POOL_NO_REDUNDANCY": {}, "MON_DISK_LOW": {}}}},
            None,
        ),
        ({"health": {"status": "HEALTH_ERR", "checks": {"OSD_FULL": {}}}}, "OSD_FULL: HEALTH_ERR"),
        (
            {"health": {"status": "HEALTH_WARN", "checks": {"OSD_DOWN": {"summary": {"message": "1 down"}}}}},
            "OSD_DOWN: 1 down",
        ),
        ({"health": {}}, "not readable"),
        ({"pgmap": []}, "not readable"),
    ],
)
def test_a_load_is_measured_on_a_healthy_cluster_alone(change: dict[str, Any], said: str | None) -> None:
    told = json.dumps({**HEALTHY, **change})
    if said == "not readable":
        with pytest.raises(StageFailed, match=said):
            ClusterStatus.of(told)
        return
    found = ClusterStatus.of(told).problem(3)
    assert found is None if said is None else said in (found or "")


@pytest.mark.parametrize("told", ["", "nonsense", "[]", "null", '{"health": 1}', "\ud800", "{" * 1000])
def test_a_status_that_is_none_is_not_healthy(told: str) -> None:
    with pytest.raises(StageFailed, match="not readable"):
        ClusterStatus.of(told)


@pytest.mark.parametrize(
    "dump",
    [
        {},
        {"osd": 5, "bluestore": None},
        {"osd": {"op": "many", "op_latency": {"sum": float("nan")}, "op_r": True, "op_w": -3}},
        {"bluestore": {"kv_commit_lat": []}, "throttle-bluestore_throttle_deferred_bytes": {"val": {}}},
    ],
)
def test_counters_are_numbers_whatever_a_daemon_says(dump: dict[str, Any]) -> None:
    assert counters_of(dump) == dict.fromkeys(COUNTERS, 0.0)
    assert put_off(dump) == 0


def answering(path: Path, answer: bytes, pause_s: float = 0.0) -> threading.Thread:
    """A daemon that gives one answer."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(4096)
            time.sleep(pause_s)
            with suppress(OSError):  # whoever asked may have given up
                connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_a_daemon_is_asked_in_json(tmp_path: Path) -> None:
    thread = answering(tmp_path / "osd.0.asok", struct.pack(">I", 8) + b'{"a": 1}')
    assert ask_daemon(tmp_path / "osd.0.asok", "perf dump", 5.0) == {"a": 1}
    thread.join(5.0)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "does not answer"),
        (b"\0\0", "cut off"),
        (struct.pack(">I", 100) + b"{", "cut off"),
        (struct.pack(">I", 2**32 - 1), "4294967295 bytes"),
        (struct.pack(">I", 2) + b"[]", "refuses 'perf dump'"),
        (struct.pack(">I", 7) + b"unknown", "refuses 'perf dump': 'unknown'"),
        (struct.pack(">I", 2) + b"\xff\xfe", "refuses 'perf dump'"),
    ],
)
def test_what_is_no_answer_fails_in_one_line(answer: bytes, said: str, tmp_path: Path) -> None:
    answering(tmp_path / "osd.0.asok", answer)
    with pytest.raises(StageFailed, match=said) as failure:
        ask_daemon(tmp_path / "osd.0.asok", "perf dump", 5.0)
    assert failure.value.message.startswith("program: osd.0: ")
    assert "\n" not in failure.value.message


def test_a_daemon_that_is_gone_or_hangs_fails_in_time(tmp_path: Path) -> None:
    with pytest.raises(StageFailed, match="osd.1: does not answer 'status': No such file"):
        ask_daemon(tmp_path / "osd.1.asok", "status", 5.0)
    answering(tmp_path / "osd.2.asok", b"", 2.0)
    with pytest.raises(StageFailed, match="osd.2: does not answer"):
        ask_daemon(tmp_path / "osd.2.asok", "status", 0.2)
