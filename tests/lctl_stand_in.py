"""A stand-in for `lctl` and `lfs` with the rules of a client, on a state in JSON: `FILE VERB WORDS`.

The state has values by full name, `memory_mb`, `states` by import, and `history`. `quirk` makes its output
another version's, or a hostile one. A directory's layout is an attribute of it, as in Lustre.
"""

from __future__ import annotations

import fcntl
import fnmatch
import json
import os
import sys
from pathlib import Path
from typing import Any

FILE_SYSTEM, MOUNT = "scratch", "ffff88105db50000"
OSC = [f"osc.{FILE_SYSTEM}-OST000{n}-osc-{MOUNT}" for n in range(3)]
MDC = [f"mdc.{FILE_SYSTEM}-MDT000{n}-mdc-{MOUNT}" for n in range(2)]
LLITE = f"llite.{FILE_SYSTEM}-{MOUNT}"
DEFAULTS = {
    "osc": {
        "max_rpcs_in_flight": 8,
        "max_pages_per_rpc": 1024,
        "max_dirty_mb": 32,
        "short_io_bytes": 16384,
    },
    "mdc": {"max_rpcs_in_flight": 8, "max_mod_rpcs_in_flight": 7},
    "llite": {
        "max_read_ahead_mb": 64,
        "max_read_ahead_per_file_mb": 64,
        "max_read_ahead_whole_mb": 2,
        "statahead_max": 32,
        "max_cached_mb": 32064,
    },
}


def fresh() -> dict[str, Any]:
    """The state of a client that was just mounted."""
    devices = [*OSC, *MDC, LLITE]
    values = {
        f"{one}.{name}": value for one in devices for name, value in DEFAULTS[one.split(".")[0]].items()
    }
    return {"values": values, "memory_mb": 16384, "states": {}, "history": {}, "quirk": "", "sets": 0}


def written(full: str, state: dict[str, Any]) -> str:
    """What get_param shows of a value."""
    value, quirk = state["values"][full], state["quirk"]
    if full.endswith("max_cached_mb"):
        return f"\nusers: 9\nmax_cached_mb: {value}\nused_mb: 5116\nunused_mb: 26948\nreclaim_count: 0"
    if quirk == "fractions" and full.endswith("_mb"):
        return f"{value}.00"
    if quirk == "words" and full.endswith("max_dirty_mb"):
        return "unlimited"
    return str(value)


def import_of(device: str, state: dict[str, Any]) -> dict[str, str]:
    """What else an import tells."""
    now = state["states"].get(device, "FULL")
    usecs, nid = ("usecs", '"10.0.0.5@o2ib"') if state["quirk"] == "2.17" else ("usec", "10.0.0.5@o2ib")
    newer = f"\n    nids_stats:\n       {nid}: {{ connects: 1 }}\n    idle: 3 sec" if nid[0] == '"' else ""
    history = state["history"].get(device, [[100, "CONNECTING"], [101, "FULL"]])
    rows = "".join(f"\n - [ {at}, {name} ]" for at, name in history)
    told = {
        "import": f"\nimport:\n    name: {device[4:]}\n    state: {now}\n"
        f"    current_connection: {nid}{newer}",
        "state": f"\ncurrent_state: {now}\nstate_history:{rows}",
        "stats": "\nsnapshot_time             1.5 secs.nsecs\n"
        f"req_waittime              10 samples [{usecs}] 1 900 5000000 99\n"
        "write_bytes               4 samples [bytes] 4096 4096 16384 67108864",
    }
    if state["quirk"] == "no state":
        told["import"] = "\nimport:\n\x1b[2J"
    return told


def stored(full: str, value: int, state: dict[str, Any]) -> bool:
    """Set a value as the client does, with what it changes along; False: it is out of range."""
    values, (device, name) = state["values"], full.rsplit(".", 1)
    kind = device.split(".")[0]
    of = lambda other: f"{device}.{other}"  # noqa: E731
    if name == "max_dirty_mb" and not 0 < value < min(2048, state["memory_mb"] // 4 + 1):
        return False
    if kind == "osc" and name == "max_rpcs_in_flight" and not 1 <= value <= 256:
        return False
    if name == "max_pages_per_rpc" and not 16 <= value <= 4096:  # the server's brw_size is 16 MiB
        return False
    if kind == "mdc" and name == "max_rpcs_in_flight":
        if not 2 <= value <= 512:
            return False
        values[of("max_mod_rpcs_in_flight")] = min(values[of("max_mod_rpcs_in_flight")], value - 1)
    if name == "max_mod_rpcs_in_flight" and not 1 <= value < values[of("max_rpcs_in_flight")]:
        return False
    if name == "max_read_ahead_per_file_mb" and value > values[of("max_read_ahead_mb")]:
        return False
    if name == "max_read_ahead_whole_mb" and value > values[of("max_read_ahead_per_file_mb")]:
        return False
    values[full] = value
    if kind == "osc" and name in ("max_rpcs_in_flight", "max_pages_per_rpc"):
        least = values[of("max_rpcs_in_flight")] * values[of("max_pages_per_rpc")] * 4 // 1024
        values[of("max_dirty_mb")] = min(
            max(values[of("max_dirty_mb")], least), state["memory_mb"] // 8, 2047
        )
    return True


def set_stripe(words: list[str], quirk: str) -> str:
    """Give the directory a layout for its files; what is wrong with it, in the words of `lfs`."""
    *options, directory = words
    components: list[list[Any]] = []
    end: int | None = None
    for option, value in zip(options[::2], map(int, options[1::2]), strict=True):
        if option == "-E":
            end = value
        elif option == "-c":
            components.append([end, value, 1 << 20])
        else:
            assert option == "-S", "nothing else is known"
            if value % 65536:
                return f"lfs setstripe: invalid stripe size {value}: must be a multiple of 64K"
            components[-1][2] = value
    if any(end not in (None, -1) and end % size for end, _, size in components):
        return "lfs setstripe: stripe size must divide the extent end: Invalid argument"
    if components[-1][0] not in (None, -1):
        return "lfs setstripe: the last component must end with the file"
    if quirk == "fewer stripes":
        components[-1][1] = 1
    if quirk == "no space":
        return f"lfs setstripe: cannot set default striping on '{directory}': No space left on device"
    os.setxattr(directory, "user.lov", json.dumps(components).encode())
    return ""


def get_stripe(directory: str, quirk: str) -> str:
    """What `lfs getstripe -d` shows of a directory's own layout."""
    pattern = "pattern:  " if quirk == "2.10" else "pattern:       raid0       "
    lines = [directory]
    components = json.loads(os.getxattr(directory, "user.lov"))
    start = 0
    if components[0][0] is not None:
        lines += [
            "  lcm_layout_gen:    0",
            "  lcm_mirror_count:  1",
            f"  lcm_entry_count:   {len(components)}",
        ]
    for end, count, size in components:
        if end is not None:
            lines += ["    lcme_id:             N/A", "    lcme_flags:          0"]
            lines.append(f"    lcme_extent.e_start: {start}")
            lines.append(f"    lcme_extent.e_end:   {'EOF' if end == -1 else end}")
            start = end
        lines.append(
            f"      stripe_count:  {count}       stripe_size:   {size}       {pattern}stripe_offset: -1"
        )
        lines.append("")
    shown = "\n".join(lines)
    return "\x1b[2Jnothing" if quirk == "no layout" else shown


class ClientState:
    """A stand-in's state in a file, that of a client which was just mounted."""

    def __init__(self, place: Path) -> None:
        self.file = place / "state.json"
        self.save(fresh())

    def save(self, state: dict[str, Any]) -> None:
        self.file.write_text(json.dumps(state))

    def change(self, **keys: Any) -> None:
        self.save(json.loads(self.file.read_text()) | keys)

    @property
    def values(self) -> dict[str, int]:
        return json.loads(self.file.read_text())["values"]


class LustreStandIn(ClientState):
    """The stand-in of this machine's client, and the options of a study of it."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        script = Path(__file__).resolve()
        for name in ("lctl", "lfs"):
            program = place / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {script} {self.file} "$@"\n')
            program.chmod(0o755)
        self.options: dict[str, Any] = {
            "file_system": FILE_SYSTEM,
            "path": str(place),
            "lctl": str(place / "lctl"),
            "lfs": str(place / "lfs"),
        }


def main(file: Path, verb: str, *words: str) -> int:
    """Do what `lctl` would, one call at a time."""
    lock = file.with_suffix(".lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    state = json.loads(file.read_text())
    if verb == "setstripe":
        wrong = set_stripe(list(words), state["quirk"])
        sys.stderr.write(f"{wrong}\n" if wrong else "")
        return 22 if wrong else 0
    if verb == "getstripe":
        sys.stdout.write(get_stripe(words[-1], state["quirk"]))
        return 0
    texts = {full: written(full, state) for full in state["values"]}
    for device in [*OSC, *MDC]:
        texts |= {f"{device}.{name}": text for name, text in import_of(device, state).items()}
    status = 0
    for word in words:
        assert not word.startswith("-"), "nothing is set for good"
        pattern, _, value = word.partition("=")
        found = [full for full in texts if fnmatch.fnmatchcase(full, pattern)]
        if not found:
            sys.stderr.write(f"error: {verb}: param_path '{pattern}': No such file or directory\n")
            status = 2
        for full in found:
            if verb == "get_param":
                sys.stdout.write(f"{full}={texts[full]}\n")
            elif stored(full, int(value), state):
                state["sets"] += 1
            else:
                sys.stderr.write(f"error: set_param: setting {full}={value}: Numerical result out of range\n")
                status = 34
    if verb == "set_param":
        new = file.with_suffix(".new")
        new.write_text(json.dumps(state))
        new.replace(file)
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
