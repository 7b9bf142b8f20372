"""A stand-in for `ceph` on a state in JSON: what monitors hold and OSDs say; `quirk` makes it another one."""

from __future__ import annotations

import fcntl
import json
import sys
from pathlib import Path
from typing import Any

FSID = "11111111-2222-4333-8444-555555555555"
SHOWN = {
    "osd_enable_op_tracker": "true",
    "osd_client_message_cap": "256",
    "bluestore_throttle_bytes": "67108864",
    "bluestore_throttle_deferred_bytes": "134217728",
    "debug_osd": "1/5",
}


def fresh() -> dict[str, Any]:
    """The state of a healthy cluster, in which somebody has set one value."""
    held = [{"section": "osd", "name": "osd_client_message_cap", "value": "300", "mask": ""}]
    return {"held": held, "osds": 3, "groups": 33, "health": "HEALTH_OK", "quirk": "", "operations": 0}


class CephStandIn:
    """A stand-in's state, and the options of a study of it."""

    def __init__(self, place: Path) -> None:
        self.file, self.folder = place / "state.json", place / "bin"
        self.save(fresh())
        self.folder.mkdir()
        program = self.folder / "ceph"
        script = Path(__file__).resolve()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {script} {self.file} "$@"\n')
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
            checks = (
                {} if state["health"] == "HEALTH_OK" else {"OSDMAP_FLAGS": {"summary": {"message": "noout"}}}
            )
            states = [{"state_name": "active+clean", "count": state["groups"]}]
            return {
                "fsid": "../x" if quirk == "no fsid" else state.get("fsid", FSID),
                "health": {"status": state["health"], "checks": checks},
                "osdmap": {"num_osds": state["osds"], "num_up_osds": state["osds"]},
                "pgmap": {"num_pgs": state["groups"], "pgs_by_state": states},
            }
        case ["versions"]:
            told = {"old": "ceph version 14.2.1 (x) nautilus"}.get(quirk, "ceph version 16.2.15 (x) pacific")
            return {"osd": {told: 2, "ceph version 17.2.1 (x)": 1} if quirk == "upgrade" else {told: 3}}
        case ["osd", "ls"]:
            return list(range(state["osds"]))
        case ["config", "dump"]:
            return held
        case ["config", "show-with-defaults", _]:
            values = SHOWN | {one["name"]: one["value"] for one in held}
            return [{"name": name, "value": value, "source": "x"} for name, value in values.items()]
        case ["df", "detail"]:
            state["operations"] += 100
            return {"pools": [{"stats": {"rd": state["operations"], "wr": 10**400, "wr_bytes": None}}, 7]}
        case ["config", verb, who, name, *text]:
            state["held"] = [one for one in held if (one["section"], one["name"]) != (who, name)]
            if verb == "set":
                state["held"].append({"section": who, "name": name, "value": text[0], "mask": ""})
            return ""
    raise AssertionError(words)


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
    if quirk == "denied" and words[:2] == ["config", "set"]:
        sys.stderr.write("Error EACCES: access denied\n")
        return 13
    if quirk == "refuses" and words[:2] == ["config", "set"]:
        sys.stderr.write(f"Error EINVAL: error parsing value: {words[-1]!r}\n")
        return 22
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
