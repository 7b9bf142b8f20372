"""Streams that work on while servers, proxies and control are killed at random.

    python -m benchmarks.endurance --minutes 30 --streams 24

A testbed of two disks with a write cache, whose data are in files, and of four proxies, each to both disks.
Every stream is a process (`ascar.testing.checking_client`) that writes, reads and flushes blocks of its own
through a proxy, and knows what each block may hold. Every few seconds one of these is killed with SIGKILL,
drawn at random: the node of a disk (a power cut: what is only in its cache is lost), the node of a proxy, or
an `ascar sharp deploy` in the midst of its work. Nodes boot again after up to 3 s.

What has to hold: no write is lost that was acknowledged and then flushed, nothing is read that was never
written there, every request is answered once or its connection ends, all streams finish with the right
content, no process grows, and 5 s after what was killed serves again the 99th percentile of the latency
is back at no more than twice its median of undisturbed seconds. The exit status is 1 where one does not hold.

The run is one piece: it is not resumed, since a pause would be an undisturbed time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ascar.rules import Action, RuleSet
from ascar.testbed import inside
from ascar.testbed.file import testbed_of
from ascar.testbed.folder import TestbedFolder
from ascar.testbed.running import RunningTestbed
from ascar.testing import checking_client
from ascar.testing.checking_client import BLOCK_BYTES, BUCKETS_A_DOUBLING

if TYPE_CHECKING:
    from collections.abc import Iterable

DISKS, PROXIES = 2, 4
BLOCKS, DEPTH = 1024, 2
CALM_S, BACK_S, BACK_FACTOR = 8.0, 5, 2.0
OFF_S, PAUSE_S = 3.0, 8.0
GROWTH, SLACK_MIB = 1.25, 4.0
FINISH_S = 300.0
DISK = """
[[servers]]
[servers.device]
kind = "mechanical"
capacity_gb = 12
rpm = 15000
read_mb_per_s = 400
write_mb_per_s = 400
seek_track_ms = 0.1
seek_full_ms = 1
write_cache_kib = 512
"""
WRONGS = ("lost", "wrong", "twice", "unanswered")
SHOWN = ("writes", "reads", "flushes")


@dataclass(slots=True)
class Course:
    """What happened.

    Attributes:
        kills: how often each kind of part was killed.
        disturbed: the times of each kill, and when what was killed served again; seconds since 1970.
        working: when streams began to work, and when they were told to finish.
        memory_mib: by program, the largest resident set of each look at all of its processes.
    """

    kills: Counter[str] = field(default_factory=Counter[str])
    disturbed: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    working: tuple[float, float] = (0.0, math.inf)
    memory_mib: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def main() -> int:
    """Kill for so long, let all streams finish, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="how long parts are killed (default 30)")
    parser.add_argument("--streams", type=int, default=24, help="how many streams (default 24)")
    parser.add_argument("--seed", type=int, default=0, help="of what is killed when (default 0)")
    given = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    found = endured(given.streams, 60 * given.minutes, given.seed)
    print(json.dumps(found, indent=1))
    return 1 if found["broken"] else 0


def endured(streams: int, seconds: float, seed: int) -> dict[str, Any]:
    """What `streams` streams came to under kills for so many seconds; "broken" lists what did not hold."""
    course = Course()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ascar-")))
        place = stack.enter_context(TestbedFolder(folder / "up"))
        testbed = stack.enter_context(RunningTestbed(testbed_of(_wanted(folder), folder), place))
        clients = [_client(stack, testbed, number) for number in range(streams)]
        begun_s = time.time()
        _kill_for(seconds, random.Random(seed), testbed, folder, course)
        course.working = begun_s, time.time()
        for client, _ in clients:
            assert client.stdin is not None
            client.stdin.close()
        end_s = time.monotonic() + FINISH_S
        for client, _ in clients:
            with suppress(subprocess.TimeoutExpired):
                client.wait(max(0.1, end_s - time.monotonic()))
        said = [_lines(output) for _, output in clients]
    return _judged(streams, said, course)


def _wanted(folder: Path) -> dict[str, Any]:
    (folder / "disk.toml").write_text(DISK, "utf-8")
    disks = [f"disk{number}" for number in range(DISKS)]
    return {
        "testbed": {"name": "endurance"},
        "node": [{"name": f"server-{name}"} for name in disks]
        + [{"name": f"proxy{number}"} for number in range(PROXIES)],
        "disk": [
            {
                "name": name,
                "node": f"server-{name}",
                "scenario": "disk.toml",
                "size": "1GiB",
                "file": f"{name}.img",
            }
            for name in disks
        ],
        "proxy": [{"node": f"proxy{number}", "disks": disks, "window": 8} for number in range(PROXIES)],
    }


def _client(
    stack: ExitStack, testbed: RunningTestbed, number: int
) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """A stream, which is none of the testbed's processes: it outlives the proxies' nodes."""
    proxy = testbed.proxies()[number % PROXIES]
    disk = f"disk{number // PROXIES % DISKS}"
    output = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # the stack closes it
    numbers = (number + 1, number * BLOCKS * BLOCK_BYTES, BLOCKS, DEPTH)
    words = [sys.executable, "-I", "-S", checking_client.__file__, proxy.sockets[disk], disk]
    process = subprocess.Popen([*words, *map(str, numbers)], stdin=subprocess.PIPE, stdout=output)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process, output


def _kill_for(
    seconds: float, draws: random.Random, testbed: RunningTestbed, folder: Path, course: Course
) -> None:
    """Kill one part after the other, with pauses in which all is well; look at memory meanwhile."""
    end_s = time.monotonic() + seconds
    time.sleep(min(CALM_S, seconds / 4))
    while time.monotonic() < end_s:
        kind = draws.choice(("server", "proxy", "control"))
        killed_s = time.time()
        if kind == "control":
            _kill_control(draws, testbed, folder)
        else:
            names = [node.name for node in testbed.nodes() if node.name.startswith(kind)]
            name = draws.choice(names)
            testbed.cut(name)
            time.sleep(draws.uniform(0, OFF_S))
            testbed.boot(name)
        course.kills[kind] += 1
        course.disturbed.append((killed_s, time.time()))
        _look_at_memory(folder, course)
        time.sleep(draws.uniform(0.5, 1.5) * PAUSE_S)
        _look_at_memory(folder, course)
    time.sleep(BACK_S + 1)


def _kill_control(draws: random.Random, testbed: RunningTestbed, folder: Path) -> None:
    """Have rules deployed on a proxy, and kill who does it in the midst."""
    window = draws.randrange(2, 17)
    (folder / "rules.txt").write_text(RuleSet.uniform(Action(0, 100 * window, 0)).text())
    proxy = draws.choice(testbed.proxies())
    words = ("deploy", "rules.txt", "--floor", "0%", "--back-after", "10 s", "--connection", proxy.connection)
    with subprocess.Popen(
        [sys.executable, "-m", "ascar", "sharp", *words],
        cwd=folder,
        env={**os.environ, "ASCAR_RUNTIME_DIR": str(folder / "run")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as deploying:
        with suppress(subprocess.TimeoutExpired):
            deploying.wait(draws.uniform(0.3, 2.0))
        deploying.kill()


def _look_at_memory(folder: Path, course: Course) -> None:
    """Note the largest resident set of disks and of proxies."""
    mark = f"{inside.MARK}={folder / 'up'}:".encode()
    largest: dict[str, float] = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with suppress(OSError):
            if mark not in (process / "environ").read_bytes():
                continue
            words = (process / "cmdline").read_bytes().split(b"\0")
            pages = int((process / "statm").read_text().split()[1])
            role = next((one for one in ("disk", "proxy") if one.encode() in words[1:2]), None)
            if role is not None:
                mib = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
                largest[role] = max(largest.get(role, 0.0), mib)
    for role, mib in largest.items():
        course.memory_mib[role].append(mib)


def _lines(output: IO[bytes]) -> list[dict[str, Any]]:
    output.seek(0)
    found: list[dict[str, Any]] = []
    for line in output.read().decode().splitlines():
        with suppress(json.JSONDecodeError):  # it was killed at it
            found.append(json.loads(line))
    return found


def _judged(streams: int, said: list[list[dict[str, Any]]], course: Course) -> dict[str, Any]:
    """All that was promised, and what of it did not hold."""
    ends = [lines[-1] if lines and "counts" in lines[-1] else None for lines in said]
    counts: Counter[str] = sum((Counter(one["counts"]) for one in ends if one is not None), Counter())
    broken = [f"{name}: {counts[name]}" for name in WRONGS if counts[name]]
    unfinished = sum(1 for one in ends if one is None or not one["finished"])
    if unfinished:
        broken.append(f"{unfinished} of {streams} streams did not finish with all their blocks read")
    shown = {**{name: counts[name] for name in SHOWN}, "kills": len(course.disturbed)}
    broken += [f"{name}: none, so nothing was shown" for name, count in shown.items() if not count]
    p99_ms = _p99_by_second(line for lines in said for line in lines if "second" in line)
    calm = [
        ms
        for second, ms in p99_ms.items()
        if course.working[0] + 2 < second < course.working[1] - 1
        and not any(a - 1 <= second <= b + BACK_S for a, b in course.disturbed)
    ]
    usual_ms = statistics.median(calm) if calm else None
    if usual_ms is None:
        broken.append("p99: no second was undisturbed, so nothing tells when it is back")
    back_s = _times_back(p99_ms, course, usual_ms)
    late = [one for one in back_s if one is None or one > BACK_S]
    if late:
        broken.append(f"p99 was not back within {BACK_S} s after {len(late)} of {len(back_s)} kills")
    for role, looks in course.memory_mib.items():
        third = max(1, len(looks) // 3)
        before, after = max(looks[:third]), max(looks[-third:])
        if after > GROWTH * before + SLACK_MIB:
            broken.append(f"memory of {role}: {before:.1f} MiB at first, {after:.1f} MiB at the end")
    return {
        "broken": broken,
        "streams": streams,
        "kills": dict(course.kills),
        "counts": {name: counts[name] for name in sorted(counts)},
        "p99_ms_undisturbed": usual_ms,
        "seconds_undisturbed": len(calm),
        "p99_back_s": {
            "median": statistics.median([one for one in back_s if one is not None] or [0.0]),
            "most": max((one for one in back_s if one is not None), default=None),
            "kills": len(back_s),
        },
        "memory_mib": {
            role: {"first": looks[0], "last": looks[-1], "most": max(looks)}
            for role, looks in course.memory_mib.items()
        },
    }


def _p99_by_second(lines: Iterable[dict[str, Any]]) -> dict[int, float]:
    """The 99th percentile of all streams together, in ms, by second."""
    seconds: dict[int, Counter[int]] = defaultdict(Counter)
    for line in lines:
        own = {int(bucket): count for bucket, count in line["latencies"].items()}
        seconds[line["second"]].update(own)
    found: dict[int, float] = {}
    for second, buckets in sorted(seconds.items()):
        wanted, seen = 0.99 * buckets.total(), 0
        for bucket in sorted(buckets):
            seen += buckets[bucket]
            if seen >= wanted:
                found[second] = 2 ** (bucket / BUCKETS_A_DOUBLING) / 1000
                break
    return found


def _times_back(p99_ms: dict[int, float], course: Course, usual_ms: float | None) -> list[float | None]:
    """After each kill, so many seconds until p99 is as usual again; None: not before the next kill.

    A kill whose next one came within `BACK_S` is left out.
    """
    if usual_ms is None:
        return []
    found: list[float | None] = []
    for (_, again_s), (next_s, _) in pairwise([*course.disturbed, (math.inf, math.inf)]):
        if next_s < again_s + BACK_S + 1:
            continue
        after = range(int(again_s) + 1, int(min(again_s + 60, next_s)))
        back = next((one for one in after if p99_ms.get(one, float("inf")) <= BACK_FACTOR * usual_ms), None)
        found.append(None if back is None else max(0.0, back - again_s))
    return found


if __name__ == "__main__":
    sys.exit(main())
