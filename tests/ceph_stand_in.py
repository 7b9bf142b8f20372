"""A stand-in for `ceph` on a state in JSON: what monitors hold and OSDs say; `quirk` makes it another one.

`restart-osd ID` starts an OSD anew, as a systemd unit would.
"""

from __future__ import annotations

import fcntl
import json
import sys
import time
from pathlib import Path
from typing import Any

FSID = "11111111-2222-4333-8444-555555555555"
SHOWN = {
    "osd_enable_op_tracker": "true",
    "osd_client_message_cap": "256",
    "bluestore_throttle_bytes": "67108864",
    "bluestore_throttle_deferred_bytes": "134217728",
    "debug_osd": "1/5",
    "bluestore_max_defer_interval": "3.000000",
    "bluestore_cache_kv_ratio": "0.450000",
    "bluestore_cache_meta_ratio": "0.450000",
    "bluestore_cache_kv_onode_ratio": "0.040000",
    "bluestore_cache_autotune": "true",
    "bluestore_cache_size": "0",
    "bluestore_cache_size_ssd": "3221225472",
    "osd_memory_target": "2147483648",
    "osd_op_num_shards": "0",
    "bdev_aio_max_queue_depth": "1024",
    "bluefs_buffered_io": "true",
}
AT_START = ("osd_op_num_shards", "bluefs_buffered_io", "bdev_aio_max_queue_depth")
"""What OSDs take only when they start."""
SHOWN_AT_ONCE = ("bdev_aio_max_queue_depth",)
"""What they show all the same as soon as the monitors hold it."""


def fresh() -> dict[str, Any]:
    """The state of a healthy cluster, in which somebody has set one value."""
    held = [{"section": "osd", "name": "osd_client_message_cap", "value": "300", "mask": ""}]
    return {
        "held": held,
        "osds": 3,
        "groups": 33,
        "health": "HEALTH_OK",
        "quirk": "",
        "operations": 0,
        "running": [{name: SHOWN[name] for name in AT_START} for _ in range(3)],
        "down": [],
        "starts": [],
        "epoch": 20,
        "up_from": [10, 11, 12],
        "coming": [],
        "late_s": 0,
        "up_since": 1700000000,
        "states": {},
        "periods": {"mgr_stats_period": "0.3", "mgr_tick_period": "0.2"},
        "own": {},
        "balancer": False,
        "pools": {"bench": "off"},
    }


class CephStandIn:
    """A stand-in's state, and the options of a study of it."""

    def __init__(self, place: Path) -> None:
        self.file, self.folder = place / "state.json", place / "bin"
        self.save(fresh())
        self.folder.mkdir()
        program = self.folder / "ceph"
        self._program = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(self.file)]
        program.write_text(f'#!/bin/sh\nexec {" ".join(self._program)} "$@"\n')
        program.chmod(0o755)
        conf = place / "ceph.conf"
        conf.write_text("[global]\n")
        self.options: dict[str, Any] = {
            "kind": "ceph",
            "server": "existing",
            "conf": str(conf),
            "user": "client.ascar",
            "confirmed_server": FSID,
        }

    def save(self, state: dict[str, Any]) -> None:
        self.file.write_text(json.dumps(state))

    def change(self, **keys: Any) -> None:
        self.save(json.loads(self.file.read_text()) | keys)

    @property
    def restarting(self) -> dict[str, Any]:
        """The options that allow new starts."""
        return {
            "restarts": "allowed",
            "restart_command": [*self._program, "restart-osd", "{id}", "{host}"],
            "restart_limit": "3 s",
        }

    def said(self, key: str) -> Any:
        return json.loads(self.file.read_text())[key]

    @property
    def held(self) -> list[dict[str, str]]:
        return sorted(json.loads(self.file.read_text())["held"], key=str)


def answer(words: list[str], state: dict[str, Any]) -> Any:
    """What a command prints; a text as it is, anything else as JSON."""
    held, quirk = state["held"], state["quirk"]
    match words:
        case ["fsid"]:
            return f"{state.get('fsid', FSID)}\n"
        case ["status"]:
            state["health"] = state["health_later"] if (later := "health_later" in state) else state["health"]
            assert not later or state.pop("health_later")
            check = {state.get("check", "OSDMAP_FLAGS"): {"summary": {"message": "noout"}}}
            checks = {} if state["health"] == "HEALTH_OK" else check
            state_names = state["states"] or {"active+clean": state["groups"]}
            states = [{"state_name": name, "count": count} for name, count in state_names.items()]
            up = state["osds"] - len(state["down"])
            return {
                "fsid": "../x" if quirk == "no fsid" else state.get("fsid", FSID),
                "health": {"status": state["health"], "checks": checks},
                "osdmap": {
                    "num_osds": state["osds"],
                    "num_up_osds": up,
                    "num_in_osds": state.get("inside", state["osds"]),
                    "osd_up_since": state["up_since"],
                },
                "pgmap": {"num_pgs": state["groups"], "pgs_by_state": states},
            }
        case ["versions"]:
            told = {"old": "ceph version 14.2.1 (x) nautilus"}.get(quirk, "ceph version 16.2.15 (x) pacific")
            return {"osd": {told: 2, "ceph version 17.2.1 (x)": 1} if quirk == "upgrade" else {told: 3}}
        case ["osd", "ls"]:
            return list(range(state["osds"]))
        case ["config", "dump"]:
            return held
        case ["balancer" | "mgr", *_] | ["config", _, "mgr" | "mgr.x", *_]:
            return of_manager(words, state)
        case ["config", "show-with-defaults", osd]:
            number = int(osd.partition(".")[2])
            holds = {one["name"]: one["value"] for one in held}
            at_once = {name: holds.get(name, SHOWN[name]) for name in SHOWN_AT_ONCE}
            values = SHOWN | holds | state["running"][number] | at_once
            own = state["own"].get(osd, {})
            return [
                {"name": name, "value": value, "source": "mon", **own.get(name, {})}
                for name, value in values.items()
            ]
        case ["osd" | "restart-osd", *_] if words != ["osd", "ls"]:
            return of_osds(words, state)
        case ["df", "detail"]:
            state["operations"] += 100
            return {"pools": [{"stats": {"rd": state["operations"], "wr": 10**400, "wr_bytes": None}}, 7]}
        case ["config", verb, who, name, *text]:
            key = (who, name, "")
            state["held"] = [one for one in held if (one["section"], one["name"], one["mask"]) != key]
            if verb == "set":
                state["health"] = "HEALTH_WARN" if quirk == "warns" else state["health"]
                state["held"].append({"section": who, "name": name, "value": text[0], "mask": ""})
            return ""
    raise AssertionError(words)


def of_manager(words: list[str], state: dict[str, Any]) -> Any:
    """What commands print about the manager and its balancer."""
    held = state["held"]
    match words:
        case ["mgr", "stat"]:
            return {"epoch": 3, "available": True, "active_name": "x", "num_standby": 0}
        case ["config", "get", "mgr", "mgr_stats_period"]:
            return f"{state['periods'].get('mgr_stats_period', '7')}\n"
        case ["config", "show-with-defaults", "mgr.x"]:
            return [{"name": name, "value": value, "source": "x"} for name, value in state["periods"].items()]
        case ["balancer", "status"]:
            return {"active": state["balancer"], "mode": "upmap"}
        case ["balancer", verb]:
            state["balancer"] = verb == "on"
            active = {"section": "mgr", "name": "mgr/balancer/active", "value": str(verb == "on").lower()}
            state["held"] = [*(one for one in held if one["name"] != active["name"]), {**active, "mask": ""}]
            return ""
        case ["config", "rm", who, name]:
            state["held"] = [one for one in held if (one["section"], one["name"]) != (who, name)]
            return ""
    raise AssertionError(words)


def of_osds(words: list[str], state: dict[str, Any]) -> Any:
    """What commands print about OSDs and where data is, and what starts an OSD anew."""
    held, quirk = state["held"], state["quirk"]
    match words:
        case ["osd", "pool", "ls", "detail"]:
            return [{"pool_name": name, "pg_autoscale_mode": mode} for name, mode in state["pools"].items()]
        case ["osd", "pool", "set", pool, "pg_autoscale_mode", mode]:
            state["pools"][pool] = mode
            return ""
        case ["osd", "dump"]:
            waiting: list[list[float]] = []
            for number, looks, until_unix_s in state["coming"]:
                if looks > 1 or time.time() < until_unix_s:
                    waiting.append([number, looks - 1, until_unix_s])
                else:
                    came_up(number, state)
            state["coming"] = waiting
            return {
                "osds": [
                    {"osd": n, "up": int(n not in state["down"]), "up_from": since}
                    for n, since in enumerate(state["up_from"])
                ]
            }
        case ["osd", "tree"]:
            osds = [
                {"id": n, "type": "osd", "name": f"osd.{n}", "status": "down" if n in state["down"] else "up"}
                for n in range(state["osds"])
            ]
            host = {
                "id": -2,
                "type": "host",
                "name": "-oProxy" if quirk == "host" else "one",
                "children": [0, 1],
            }
            other = {"id": -3, "type": "host", "name": "two", "children": [2, -3, 99]}
            return {
                "nodes": [{"id": -1, "type": "root", "children": [-2, -3]}, host, other, *osds],
                "stray": [],
            }
        case ["osd", "ok-to-stop", *numbers]:
            state["starts"].append(f"ok {' '.join(numbers)}")
            return {"ok_to_stop": True}
        case ["restart-osd", number, host]:
            state["starts"].append(f"{number} on {host}")
            taken = {one["name"]: one["value"] for one in held if one["name"] in AT_START}
            is_bad = quirk == "bad shards" and taken.get("osd_op_num_shards") == "7"
            state["down"] = [n for n in state["down"] if n != int(number)] + [int(number)] * is_bad
            if not is_bad:
                state["running"][int(number)] = {name: SHOWN[name] for name in AT_START} | taken
            is_slow = quirk.startswith("slow shards") and taken.get("osd_op_num_shards") == "7"
            # The map has it up all the while: nobody has reported it.
            state["coming"] = [late for late in state["coming"] if late[0] != int(number)]
            if quirk == "late" or is_slow or state["late_s"]:
                looks = {"late": 2, "": 1}.get(quirk, 1 << 30)
                state["coming"].append([int(number), looks, time.time() + state["late_s"]])
            elif not is_bad:
                came_up(int(number), state)
            return ""
    raise AssertionError(words)


def came_up(number: int, state: dict[str, Any]) -> None:
    """Have the map say that an OSD came up just now."""
    state["epoch"] += 1
    state["up_from"][number] = state["epoch"]
    state["up_since"] += 1
    if state["quirk"] == "late":
        state["starts"].append(f"{number} is up")


def main(file: Path, *given: str) -> int:
    """Do what `ceph` would."""
    lock = file.with_suffix(".lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    state = json.loads(file.read_text())
    words = list(given)
    for option in ("--conf", "--name", "--keyring", "--connect-timeout", "--format"):
        if option in words:
            place = words.index(option)
            del words[place : place + 2]
    quirk = state["quirk"]
    if quirk == "denied" and (words[:2] == ["config", "set"] or words == ["balancer", "off"]):
        sys.stderr.write("Error EACCES: access denied\n")
        return 13
    if quirk == "no bench" and words[:4] == ["osd", "pool", "set", "bench"]:
        sys.stderr.write("Error EACCES: access denied\n")
        return 13
    if quirk == "refuses" and words[:2] == ["config", "set"]:
        sys.stderr.write(f"Error EINVAL: error parsing value: {words[-1]!r}\n")
        return 22
    is_started = words[0] == "restart-osd" and not any(one["value"] == "7" for one in state["held"])
    if is_started and quirk == "slow shards, no start":
        sys.stderr.write("Job for ceph-osd@0.service failed.\n")
        return 1
    if words[:2] == ["osd", "ok-to-stop"] and quirk == "not ok":
        sys.stderr.write(
            "Error EBUSY: unsafe to stop osd(s) at this time (9 PGs are or would become offline)\n"
        )
        return 16
    is_shown = words[:2] == ["config", "show-with-defaults"]
    if is_shown and (
        words[2] in [f"osd.{n}" for n in state["down"]] or (words[2], quirk) == ("mgr.x", "mgr")
    ):
        sys.stderr.write("Error ENOENT: no config state for daemon\n")
        return 2
    if quirk == "babble" and words == ["config", "dump"]:
        sys.stdout.write("\x1b[2J{nothing")
        return 0
    said = answer(words, state)
    sys.stdout.write(said if isinstance(said, str) else json.dumps(said))
    new = file.with_suffix(".new")
    new.write_text(json.dumps(state))
    new.replace(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
