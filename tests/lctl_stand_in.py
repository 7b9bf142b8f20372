"""A stand-in for `lctl` and `lfs` with the rules of a client, on a state in JSON: `FILE VERB WORDS`.

The rules are those of the client's own source (llite/lproc_llite.c, osc/lproc_osc.c, obdclass/genops.c and
lprocfs_status.c). The state has values by full name, `version`, `memory_mb`, what the targets allow
(`brw_bytes`, `grant_block_bytes`, `mod_rpcs`; `connected`: whether imports tell of it), `states` by import,
`history`, and, of a server, `jobs`: what it has counted by device and job. `quirk` makes its output a hostile
one. A directory's layout is an attribute of it, as in Lustre.
"""

from __future__ import annotations

import fcntl
import fnmatch
import json
import math
import os
import sys

# It is started for each call: `pathlib` and `typing` take as long to import as all else takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

FILE_SYSTEM, MOUNT = "scratch", "ffff88105db50000"


def osc_of(number: int) -> str:
    """The client's device of an OST."""
    return f"osc.{FILE_SYSTEM}-OST{number:04x}-osc-{MOUNT}"


OSC = [osc_of(number) for number in range(3)]
MDC = [f"mdc.{FILE_SYSTEM}-MDT000{n}-mdc-{MOUNT}" for n in range(2)]
LLITE = f"llite.{FILE_SYSTEM}-{MOUNT}"
DEFAULTS = {
    "osc": {
        "max_rpcs_in_flight": 8,
        "max_pages_per_rpc": 1024,
        "max_dirty_mb": 32,
        "checksums": 1,
        "short_io_bytes": 16384,
    },
    "mdc": {"max_rpcs_in_flight": 8, "max_mod_rpcs_in_flight": 7, "max_dirty_mb": 32},
    "llite": {
        "max_read_ahead_mb": 64,
        "max_read_ahead_per_file_mb": 64,
        "max_read_ahead_whole_mb": 2,
        "read_ahead_range_kb": 1024,
        "statahead_max": 32,
        "max_cached_mb": 12064,
    },
}
SINCE_2_11 = ("short_io_bytes", "read_ahead_range_kb", f"{MDC[0]}.max_dirty_mb", f"{MDC[1]}.max_dirty_mb")


def fresh(version: str = "2.15", osts: int = len(OSC)) -> dict[str, Any]:
    """The state of a client that was just mounted: of version 2.10, 2.15, or 2.17."""
    devices = [*map(osc_of, range(osts)), *MDC, LLITE]
    values = {
        f"{one}.{name}": value for one in devices for name, value in DEFAULTS[one.split(".")[0]].items()
    }
    if version == "2.10":
        values = {full: value for full, value in values.items() if not full.endswith(SINCE_2_11)}
    return {
        "values": values,
        "version": version,
        "memory_mb": 16384,
        "brw_bytes": 16 << 20,
        "grant_block_bytes": 65536,
        "mod_rpcs": 8,
        "connected": True,
        "jobid_var": "procname_uid",
        "jobs": {},
        "states": {},
        "inactive": [],
        "history": {},
        "quirk": "",
        "sets": 0,
    }


def written(full: str, state: dict[str, Any]) -> str:
    """What get_param shows of a value."""
    value, quirk = state["values"][full], state["quirk"]
    if full.endswith("max_cached_mb"):
        newer = "" if state["version"] == "2.10" else "\nmax_read_ahead_mb: 64\nused_read_ahead_mb: 0"
        return f"\nusers: 9\nmax_cached_mb: {value}\nused_mb: 5116\nunused_mb: 26948\nreclaim_count: 0{newer}"
    if quirk == "fractions" and full.endswith("_mb"):
        return f"{value:.2f}"
    if value != int(value):
        return f"{value:.2f}"
    if quirk == "words" and full.endswith("max_dirty_mb"):
        return "unlimited"
    return str(value)


def import_of(device: str, state: dict[str, Any]) -> dict[str, str]:
    """What else an import tells."""
    now = state["states"].get(device, "FULL")
    version = state["version"]
    usecs, nid = "usec" if version == "2.10" else "usecs", "10.0.0.5@o2ib"
    newer = ""
    if version == "2.17":
        nid = f'"{nid}"'
        newer = f"\n       nids_stats:\n          {nid}: {{ connects: 1, uptodate: uptodate, sec_ago: 9 }}"
    limits = f"       max_mod_rpcs: {state['mod_rpcs']}\n       max_brw_size: 1048576\n"
    if device.startswith("osc"):
        blocks = state["grant_block_bytes"]
        limits = f"       max_brw_size: {state['brw_bytes']}\n       grant_block_size: {blocks}\n"
    limits = limits if state["connected"] else ""
    flags = "invalid, deactive, " if device in state["inactive"] else ""
    history = state["history"].get(device, [[100, "CONNECTING"], [101, "FULL"]])
    rows = "".join(f"\n - [ {at}, {name} ]" for at, name in history)
    told = {
        "import": f"\nimport:\n    name: {device[4:]}\n    state: {now}\n"
        "    connect_flags: [ write_grant, server_lock, version, grant_param ]\n    connect_data:\n"
        f"       flags: 0xa0425af2e3440478\n       instance: 3\n{limits}"
        f"    import_flags: [ {flags}replayable, pingable, connect_tried ]\n    connection:\n"
        f"       failover_nids: [ {nid} ]{newer}\n       current_connection: {nid}\n       idle: 3 sec\n"
        f"    rpcs:\n       inflight: 0\n       avg_waittime: 408 {usecs}",
        "state": f"\ncurrent_state: {now}\nstate_history:{rows}",
        "stats": "\nsnapshot_time             1.5 secs.nsecs\n"
        + (
            ""
            if version == "2.10"
            else "start_time                0.5 secs.nsecs\nelapsed_time 1.0 secs.nsecs\n"
        )
        + f"req_waittime              10 samples [{usecs}] 1 900 5000000 99\n"
        "write_bytes               4 samples [bytes] 4096 4096 16384 67108864",
    }
    if state["quirk"] == "no state":
        told["import"] = "\nimport:\n\x1b[2J"
    return told


def job_stats(device: str, state: dict[str, Any]) -> str:
    """What a server tells of the jobs of a device."""
    is_new, lines = state["version"] != "2.10", ["", "job_stats:"]
    for job, (read, written_bytes, operations) in state["jobs"][device].items():
        lines.append(f"- job_id:          {chr(34) + job + chr(34) if ':' in job else job}")
        lines.append(f"  snapshot_time:   1720516680{'.123456789 secs.nsecs' if is_new else ''}")
        more = ", sumsq:                  0 }" if is_new else " }"
        for name, total in (("read_bytes", read), ("write_bytes", written_bytes)):
            lines.append(
                f"  {name + ':':16} {{ samples:          52, unit: bytes, min:     4096, max:   475136, "
                f"sum:          {total}{more}"
            )
        if is_new:
            lines.append(
                f"  read:            {{ samples:           3, unit: usecs, min: 1, max: 9, sum: 12{more}"
            )
        lines.append(f"  setattr:         {{ samples:         {operations}, unit:  reqs }}")
    return "\n".join(lines)


RANGES = {  # what is refused outside of it, whatever the other values are
    "osc.max_rpcs_in_flight": (1, 256),
    "osc.checksums": (0, 1),
    "mdc.max_rpcs_in_flight": (2, 512),
    "mdc.max_mod_rpcs_in_flight": (1, 512),
}


def is_allowed(full: str, value: int, state: dict[str, Any]) -> bool:
    """Whether the client takes a value."""
    values, (device, name) = state["values"], full.rsplit(".", 1)
    memory_mb = state["memory_mb"]
    low, high = RANGES.get(f"{device.split('.')[0]}.{name}", (0, 1 << 40))
    most = {
        "max_dirty_mb": min(2047, memory_mb // 4),
        "max_pages_per_rpc": state["brw_bytes"] // 4096,
        "max_mod_rpcs_in_flight": min(state["mod_rpcs"], values.get(f"{device}.max_rpcs_in_flight", 0) - 1),
        "short_io_bytes": 1 << 20,
        "max_read_ahead_mb": memory_mb // 2,
        "max_read_ahead_per_file_mb": values.get(f"{device}.max_read_ahead_mb"),
        "max_read_ahead_whole_mb": values.get(f"{device}.max_read_ahead_per_file_mb"),
        "read_ahead_range_kb": values.get(f"{device}.max_read_ahead_per_file_mb", 0) * 1024,
        "max_cached_mb": memory_mb,
    }
    least = {"max_dirty_mb": 1, "max_pages_per_rpc": 1, "short_io_bytes": 64, "read_ahead_range_kb": 64}
    is_off = value == 0 and name in ("short_io_bytes", "read_ahead_range_kb")
    return is_off or max(low, least.get(name, 0)) <= value <= min(high, most.get(name, high))


def stored(full: str, value: int, state: dict[str, Any]) -> bool:
    """Set a value as the client does, with what it changes along; False: it is out of range."""
    values, (device, name) = state["values"], full.rsplit(".", 1)
    is_raised = name in ("max_rpcs_in_flight", "max_pages_per_rpc")
    if name == "max_pages_per_rpc":
        chunk = state["grant_block_bytes"] // 4096
        value = -(-value // chunk) * chunk
    if not is_allowed(full, value, state):
        return False
    if name == "statahead_max" and value > (8192 if state["version"] == "2.10" else 512):
        return True  # and says nothing
    if name == "max_rpcs_in_flight" and device.startswith("mdc"):
        modifying = f"{device}.max_mod_rpcs_in_flight"
        values[modifying] = min(values[modifying], value - 1)
    values[full] = value // 4 * 4 if name == "read_ahead_range_kb" else value
    if is_raised and f"{device}.max_dirty_mb" in values:
        pages = values.get(f"{device}.max_pages_per_rpc", 256)
        raised = max(values[f"{device}.max_dirty_mb"], values[f"{device}.max_rpcs_in_flight"] * pages / 256)
        raised = min(raised, state["memory_mb"] / 8)
        values[f"{device}.max_dirty_mb"] = raised if state["version"] == "2.10" else math.ceil(raised)
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
        for name in ("lctl", "lfs"):
            program = place / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {__file__} {self.file} "$@"\n')
            program.chmod(0o755)
        self.options: dict[str, Any] = {
            "file_system": FILE_SYSTEM,
            "path": str(place),
            "lctl": str(place / "lctl"),
            "lfs": str(place / "lfs"),
        }


def main(file: str, verb: str, *words: str) -> int:
    """Do what `lctl` would, one call at a time."""
    lock = os.open(f"{file}.lock", os.O_WRONLY | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with open(file) as kept:  # noqa: PTH123
        state = json.load(kept)
    if verb == "setstripe":
        wrong = set_stripe(list(words), state["quirk"])
        sys.stderr.write(f"{wrong}\n" if wrong else "")
        return 22 if wrong else 0
    if verb == "getstripe":
        sys.stdout.write(get_stripe(words[-1], state["quirk"]))
        return 0
    texts = {full: written(full, state) for full in state["values"]}
    known = dict.fromkeys(full.rpartition(".")[0] for full in state["values"] if verb == "get_param")
    for device in [*OSC, *MDC, *(one for one in known if one.startswith(("osc.", "mdc.")))]:
        texts |= {f"{device}.{name}": text for name, text in import_of(device, state).items()}
    for device in state["jobs"]:
        texts[f"{device}.job_stats"] = job_stats(device, state)
    status = 0
    of_client = {
        "jobid_var": f"{state['jobid_var']}\n",
        "version": f"lustre: {state['version']}.1\nkernel: patchless_client\n",
    }
    if words[:1] == ("-n",):
        sys.stdout.write(of_client[words[1]])
        return 0
    for word in words:
        assert not word.startswith("-"), "nothing is set for good"
        pattern, _, value = word.partition("=")
        found = [pattern] if pattern in texts else fnmatch.filter(texts, pattern)
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
        with open(f"{file}.new", "w") as new:  # noqa: PTH123
            json.dump(state, new)
        os.replace(f"{file}.new", file)  # noqa: PTH105
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
