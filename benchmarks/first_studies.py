"""The first study of each system: minutes to the verdict, what is gained, and what is left behind.

    python -m benchmarks.first_studies --budget 3h        (root)
    python -m benchmarks.first_studies --only '^ceph'

Each study is the one that `ascar init` writes, on the servers that `make setup-dev` installs; `ascar tune`
has its budget. Gains are of the last comparison, which runs the default and the recommended in turns, with
the interval that the verdict rests on. What is left behind is what differs from before the study: loop
devices, mounts, settings of the kernel, processes and directories of ascar or of a server.

linux                    streams of an application that lies on an ext4 volume of 1,000 reads a second
nfs                      16 sequential readers of one client, over a disk that reads ahead for 8
ceph rados, ceph rbd     64 KiB writes of objects, and 4 KiB reads and writes of an image
ceph failure             the same writes, with an OSD that fails in each trial, and its recovery bounded
ceph ranking             random configurations of 64 KiB writes; `ascar importance` ranks the parameters
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Benchmark, Piece, called, digits, present, table
from benchmarks.volumes import READ_LIMIT, WRITE_LIMIT, ext4_volume

from ascar.toml import toml_text

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from contextlib import AbstractContextManager

_PLACE = os.environ.get("TMPDIR", "/var/tmp")
_RESTORED_S = 10.0
_DAEMON = re.compile(
    r"ascard|linux$|mariadbd|mysqld|postgres|redis-server|ceph-(?:mon|mgr|osd)|db_bench|fio|sysbench"
)
_OURS = ("ascar-", "localfs-")
_RANKED_MAX = 8
_VOLUME_BYTES, _VOLUME_IOPS = 2 << 30, 1000


@dataclass(frozen=True, slots=True)
class FirstStudy:
    """A study as `ascar init` writes it, with what is changed in it.

    Attributes:
        system: the kind of its target.
        changes: keys by table that replace those of the study, "workload" as a whole.
        is_ranked: whether the parameters are ranked afterwards.
        on_volume: whether the target is the path of a volume, on which an application is.
    """

    system: str
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    is_ranked: bool = False
    on_volume: bool = False

    def place(self) -> AbstractContextManager[dict[str, str]]:
        """What the target has besides: the path of the application's files."""
        return volume() if self.on_volume else nullcontext({})

    def table(self, written: Mapping[str, Any], name: str, place: Mapping[str, str]) -> dict[str, Any]:
        """The study.

        Args:
            written: what `ascar init` wrote.
            name: the name of the study.
            place: more keys of the target.
        """
        made = {key: dict(of) for key, of in written.items()}
        for key, values in self.changes.items():
            made[key] = dict(values) if key == "workload" else {**made.get(key, {}), **values}
        made["study"]["name"] = name
        made["target"] |= place
        return made


@contextmanager
def volume() -> Generator[dict[str, str]]:
    """An ext4 volume of so many reads and writes a second, as the key `path` of a target."""
    with (
        tempfile.TemporaryDirectory(prefix="first-studies-", dir=_PLACE) as folder,
        ext4_volume(
            Path(folder), _VOLUME_BYTES, dict.fromkeys((READ_LIMIT, WRITE_LIMIT), _VOLUME_IOPS)
        ) as place,
    ):
        yield {"path": str(place)}


def _fio(**options: Any) -> dict[str, Any]:
    return {"kind": "fio", "options": {"iodepth": 16, **options}}


_WRITES = _fio(ioengine="rados", rw="randwrite", bs="64k", size="256m", nrfiles=256)
_MIXED = _fio(ioengine="rbd", rw="randrw", bs="4k", size="256m")
_STREAMS = _fio(ioengine="psync", rw="read", bs="64k", size="512m", numjobs=2, iodepth=1)
_LONG = {"study": {"budget": "20 min"}}
STUDIES: dict[str, FirstStudy] = {
    "localfs": FirstStudy("localfs"),
    "sqlite": FirstStudy("sqlite"),
    "postgresql": FirstStudy("postgresql"),
    "redis": FirstStudy("redis"),
    "linux": FirstStudy("linux", {"workload": _STREAMS}, on_volume=True),
    "mariadb": FirstStudy("mariadb"),
    "rocksdb": FirstStudy("rocksdb"),
    "ceph": FirstStudy("ceph"),
    "nfs": FirstStudy("nfs"),
    "ceph rados": FirstStudy("ceph", {**_LONG, "workload": _WRITES}),
    "ceph rbd": FirstStudy("ceph", {**_LONG, "workload": _MIXED}),
    "ceph failure": FirstStudy(
        "ceph",
        {
            "study": {
                "budget": "30 min",
                "constraints": ["degraded_latency_ms_p99 <= 2000", "recovery_s <= 60"],
            },
            "target": {"osd_failure": "16 s"},
            "workload": _WRITES,
        },
    ),
    "ceph ranking": FirstStudy(
        "ceph",
        {
            "study": {"budget": "50 min"},
            "workload": _WRITES,
            "optimizer": {"kind": "random"},
            "stop": {"trials": 80},
        },
        is_ranked=True,
    ),
}


def machine() -> set[str]:
    """What a study can leave behind, a line each."""
    found = {f"loop {line.split()[0]}" for line in called("losetup", "-a").splitlines()}
    found |= {f"mount {line.split()[1]}" for line in Path("/proc/self/mounts").read_text().splitlines()}
    for path in Path("/proc/sys/vm").iterdir():
        if path.name == "drop_caches":
            continue  # tells what was last written to it
        try:
            found.add(f"vm.{path.name} = {path.read_text().strip()}")
        except OSError:
            continue  # nobody may read it
    for folder in {Path(_PLACE), Path(tempfile.gettempdir()), Path("/var/lib"), Path.home() / ".cache/ascar"}:
        if folder.is_dir():
            found |= {f"file {path}" for path in folder.iterdir() if path.name.startswith(_OURS)}
    for status in Path("/proc").glob("[0-9]*/comm"):
        try:
            name = status.read_text().strip()
        except OSError:
            continue  # it has ended
        if _DAEMON.match(name):
            found.add(f"process {status.parent.name} {name}")
    return found


def first_study(name: str, study: FirstStudy) -> dict[str, Any]:
    """Write the study, and carry it out.

    Raises:
        RuntimeError: a command failed.
    """
    with study.place() as place, tempfile.TemporaryDirectory(prefix="first-studies-", dir=_PLACE) as folder:
        before = machine()
        environment = {
            **os.environ,
            "ASCAR_HISTORY": str(Path(folder, "history.sqlite")),
            "ASCAR_LIBRARY": str(Path(folder, "library")),
        }
        path, run = Path(folder, "study.toml"), re.sub("[^a-z]", "-", name)

        def ascar(*words: str, accepted: tuple[int, ...] = (0,)) -> str:
            done = subprocess.run(
                [sys.executable, "-m", "ascar", *words],
                capture_output=True,
                text=True,
                env=environment,
                check=False,
            )
            if done.returncode not in accepted:
                raise RuntimeError(f"ascar {words[0]}: {done.stderr.strip()[-300:]}")
            return done.stdout

        ascar("init", study.system, "--out", str(path))
        path.write_text(toml_text(study.table(tomllib.loads(path.read_text()), run, place)))
        start_s = time.monotonic()
        outcome = json.loads(ascar("tune", str(path), "--json", "--quiet", accepted=(0, 3)))
        spent_s = time.monotonic() - start_s
        ranking = json.loads(ascar("importance", run, "--json")) if study.is_ranked else None
        left = left_behind(before)
    verdict = outcome["verdict"]
    return {
        "minutes": spent_s / 60,
        "trials": outcome["counts"],
        "pairs": verdict["runs_per_side"],
        "verdict": {key: verdict[key] for key in ("kind", "gain_relative", "gain_low", "gain_high", "note")},
        "recommended": outcome["recommended"],
        "default": outcome["default"] and outcome["default"]["configuration"],
        "stage_s": outcome["stage_s"],
        "ranking": ranking
        and {key: ranking[key] for key in ("ranking", "rows", "rank_stability", "variance")},
        "left": left,
    }


def left_behind(before: set[str]) -> list[str]:
    """What is there now and was not, or was and is not; what ends has some seconds for it."""
    ends_s = time.monotonic() + _RESTORED_S
    while (left := sorted(machine() ^ before)) and time.monotonic() < ends_s:
        time.sleep(0.5)
    return left


def row(name: str, found: Mapping[str, Any]) -> list[str]:
    """A line of the table."""
    verdict = found["verdict"]
    gained, low, high = (verdict[key] for key in ("gain_relative", "gain_low", "gain_high"))
    ends = "" if low is None or high is None else f" ({low:+.1%} to {high:+.1%})"
    return [
        name,
        digits(found["minutes"]),
        verdict["kind"],
        "-" if gained is None else f"{gained:+.1%}{ends}",
        str(found["pairs"]),
        ", ".join(f"{count} {state}" for state, count in found["trials"].items() if count),
        ", ".join(found["left"]) or "nothing",
    ]


def ranked(found: Mapping[str, Any]) -> list[list[str]]:
    """The lines of a ranking: the share of the variance that each parameter explains, with its interval."""
    variance = found["variance"]
    return [
        [
            one["parameter"],
            f"{one['importance'] / variance:.1%}",
            "-"
            if one["ci_low"] is None
            else f"{one['ci_low'] / variance:.1%} to {one['ci_high'] / variance:.1%}",
            "-" if one["first_share"] is None else f"{one['first_share']:.0%}",
            "chosen" if one["selected"] else "",
        ]
        for one in found["ranking"][:_RANKED_MAX]
    ]


def main() -> None:
    """Carry out the studies that are missing, and print the tables."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "3h")
    if os.geteuid() != 0:
        sys.exit("needs root: loop devices, mounts, accounts of servers")
    found = benchmark.run([Piece(name, partial(first_study, name, study)) for name, study in STUDIES.items()])
    heads = ["study", "minutes", "verdict", "gain (its interval)", "pairs", "trials", "left behind"]
    table(heads, [row(name, found[name]) for name in STUDIES if name in found])
    for one in present(found, STUDIES):
        if one["ranking"] is not None:
            print(
                f"{one['ranking']['rows']} configurations, stable in {one['ranking']['rank_stability']:.0%}\n"
            )
            table(
                ["parameter", "explains of the variance", "95% interval", "first in", ""],
                ranked(one["ranking"]),
            )


if __name__ == "__main__":
    main()
