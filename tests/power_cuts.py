"""A study or a session in a guest, in the middle of which the power is cut, or processes are killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.errors import WorkError
from ascar.testing import DiskServer, Guest, VolatileDisk

if TYPE_CHECKING:
    import random

SCRIPTS = Path(__file__).parent / "power"
ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
DISK_BYTES = 1 << 30
LIMIT_S = 120.0
SEARCH = """
[measurement]
load_min = "300 ms"
load_max = "500 ms"
reading = "100 ms"
abandon = 0
[optimizer]
kind = "random"
[stop]
trials = 100000
"""
STUDIES = {
    "program": """
[study]
name = "cut"
objective = "maximize speed"
budget = "10 h"
[target]
kind = "program"
restart = { dyn-app = ["true"] }
restore = ["true"]
[[target.file]]
path = "/mnt/work/program.conf"
[target.file.keys]
depth = "{depth}"
[space.parameters.depth]
kind = "integer"
low = 1
high = 1000
default = 8
cost = "dyn-app"
[workload]
kind = "command"
argv = ["sh", "/mnt/work/load.sh"]
metrics = { speed = "regex:([0-9.]+) runs/s" }
"""
    + SEARCH,
    "sqlite": """
[study]
name = "cut"
objective = "maximize throughput_ops_per_s"
budget = "10 h"
[target]
kind = "sqlite"
[workload]
kind = "sqlite-transactions"
rows = 500
"""
    + SEARCH,
    "localfs": """
[study]
name = "cut"
objective = "maximize throughput_ops_per_s"
budget = "10 h"
[target]
kind = "localfs"
image = "/mnt/work/disk.img"
size = "640 MiB"
file_systems = ["ext4"]
[workload]
kind = "fio"
preset = "small-files-fsync"
scale = 0.05
"""
    + SEARCH,
    "session": """
[study]
name = "cut"
objective = "maximize free_bytes"
[target]
kind = "linux"
settings = ["vm.page-cluster"]
[space.parameters.vm_page_cluster]
low = 0
high = 8
[online]
interval_s = 0.2
contact_s = 3
collector = [{ kind = "memory" }]
[online.learner.modern]
first_ticks = 3
settle_ticks_max = 1
visit_ticks_min = 1
visit_ticks_max = 2
stay_ticks_max = 2
worth = 0
[[online.metric]]
name = "free_bytes"
indicators = ["memory.free_bytes"]
""",
}
KINDS = tuple(STUDIES)
VARIABLES = {
    "HOME": "/mnt/home",
    "ASCAR_HISTORY": "/mnt/history/history.sqlite",
    "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", ""),
}
LOAD = "while true; do echo $(($$ % 97 + 1)) runs/s; sleep 0.02; done\n"
SETUP = "mount /dev/vda /mnt && mount --bind /mnt/lib /var/lib && cd /mnt/work"
# What the boot of a machine does.
RESTORE = (f"{BIN}/ascard keeper --restore", f"{BIN}/ascard keeper --user --restore")
# The program itself, and not the shell that has started it.
PROGRAM = "pkill -KILL -f 'python [^ ]*/ascar (tune|capes)'"
KEEPERS = "pkill -KILL -x ascard"
KILLS = {
    **dict.fromkeys(
        ("program", "localfs"), (PROGRAM, KEEPERS, f"{PROGRAM}; {KEEPERS}", f"{KEEPERS}; {PROGRAM}")
    ),
    "sqlite": (PROGRAM,),  # the study changes its own files alone, and has no keeper
    "session": (
        PROGRAM,
        f"{PROGRAM}; {KEEPERS}",
        f"{KEEPERS}; {PROGRAM}",
        f"{PROGRAM}; pkill -KILL nats-server",
    ),
}
TUNE = f"{BIN}/ascar tune /mnt/work/study.toml"
COMPLETE = re.compile(
    r"^trial (\d+) \((?:default|search)\), (?!failed|interrupted|quarantined)", re.MULTILINE
)
PUBLISHED = re.compile(r"^published (\d+)$", re.MULTILINE)
MOMENT_S_MAX = 4.0
ENDED = "## it has ended"


class Machine:
    """A guest with a disk, on which one study or session goes on from cut to cut.

    Args:
        kind: of `KINDS`.
        folder: for its disk.
        rng: draws the moments of the cuts, and what they lose.
        fsync: whether programs may bring data to the disk.
    """

    def __init__(self, kind: str, folder: Path, rng: random.Random, *, fsync: bool = True) -> None:
        self.kind, self.fsync = kind, fsync
        self._folder, self._rng = folder, rng
        self._said: set[int] = set()
        self._before: dict[str, Any] | None = None
        self._made = 0
        self._image = self._make_disk()

    def cuts(self, count: int) -> list[list[str]]:
        """Cut the power so many times; return what each cut lost or damaged, in words.

        A disk that has lost something is followed by a new one.
        """
        found: list[list[str]] = []
        self._boot(goes_on=True)
        while len(found) < count:
            found.append(self._boot(goes_on=len(found) + 1 < count))
        return found

    def kills(self, count: int) -> list[list[str]]:
        """Kill the study or session, its keeper, or both so many times; what is not as before each time.

        What a living keeper puts back is waited for.
        """
        found: list[list[str]] = []
        with (
            VolatileDisk(self._image) as disk,
            DiskServer(disk) as server,
            Guest([server], VARIABLES, visible=(ROOT,)) as guest,
        ):
            self._begin(guest)
            while len(found) < count:
                self._work(guest)
                guest.run(self._rng.choice(KILLS[self.kind]))
                self._said |= {int(number) for number in self._told.findall(guest.console)}
                end_s = time.monotonic() + LIMIT_S
                while (problems := self._compare(guest)) and time.monotonic() < end_s:
                    time.sleep(1.0)
                found.append(problems)
        return found

    @property
    def _told(self) -> re.Pattern[str]:
        return PUBLISHED if self.kind == "session" else COMPLETE

    def _boot(self, *, goes_on: bool) -> list[str]:
        """Boot, compare, and cut the power in the middle of what goes on; what the cut before has lost."""
        problems: list[str] = []
        with (
            VolatileDisk(self._image) as disk,
            DiskServer(disk) as server,
            Guest([server], VARIABLES, visible=(ROOT,)) as guest,
        ):
            problems = self._begin(guest)
            if goes_on and not problems:
                self._work(guest)
                guest.cut(self._rng)
                self._said |= {int(number) for number in self._told.findall(guest.console)}
        if problems:
            self._image.unlink()
            self._image = self._make_disk()
            if goes_on:
                self._boot(goes_on=True)
        return problems

    def _begin(self, guest: Guest) -> list[str]:
        """Mount the disk and compare, where there is something to compare with; what has been lost."""
        mounted = guest.run(SETUP)
        if mounted.status != 0:
            return [f"the disk cannot be mounted: {mounted.output}"]
        if self._before is not None:
            return self._compare(guest)
        self._put_back(guest)
        self._before = self._examined(guest)["machine"]
        return []

    def _work(self, guest: Guest) -> None:
        """Go on with the study or the session until a moment in the middle of it."""
        before = len(guest.console)
        preload = "" if self.fsync else "export LD_PRELOAD=/mnt/no_fsync.so;"
        guest.start(f"{preload} {self._command()} 2>&1 | cat; echo '{ENDED}'")
        if self.kind == "session":  # its message server is another one each time
            guest.run("pkill -KILL -f /power/watch.py")
            guest.start(f"exec {BIN}/python -P {SCRIPTS}/watch.py")

        def works() -> bool:
            said = guest.console[before:]
            if ENDED in said:
                raise WorkError(f"it has ended too early: {said}")
            return self._told.search(said) is not None

        guest.wait(works, "it works", LIMIT_S)
        end_s = time.monotonic() + self._rng.uniform(0.0, MOMENT_S_MAX)
        guest.wait(lambda: works() and time.monotonic() >= end_s, "the moment comes")

    def _compare(self, guest: Guest) -> list[str]:
        """What is not as before, or not as it was said to be."""
        try:
            problems = self._put_back(guest)
            found = self._examined(guest)
        except WorkError as error:
            return [error.message]
        assert self._before is not None, "there was a boot before the cut"
        problems += [
            f"{what} = {found['machine'][what]!r}, before: {before!r}"
            for what, before in self._before.items()
            if found["machine"][what] != before
        ]
        if self.kind == "session":
            problems += [f"tick {one} was published and is lost" for one in self._said - set(found["ticks"])]
            problems += [one for one in found["ticks"] if isinstance(one, str)]
        else:
            states = {number: state for _, number, state in found["trials"]}
            problems += [
                f"trial {one} was complete and is {states.get(one, 'lost')}"
                for one in sorted(self._said)
                if states.get(one) != "complete"
            ]
            problems += [state for _, _, state in found["trials"] if " " in state]
        return problems

    def _command(self) -> str:
        if self.kind == "session":
            return f"{BIN}/ascar capes up /mnt/work/study.toml --folder /mnt/session"
        return f"{TUNE} --resume" if self._said else f"{{ {TUNE} --resume || {{ [ $? = 2 ] && {TUNE}; }}; }}"

    def _put_back(self, guest: Guest) -> list[str]:
        """Put back what a study has left; what that could not do."""
        problems: list[str] = []
        for command in RESTORE:
            done = guest.run(command)
            told = re.search(r'^\{"restored".*\}$', done.output, re.MULTILINE)
            if done.status != 0 or told is None or json.loads(told[0])["left_alone"]:
                problems.append(f"{command}: {done.output}")
        return problems

    @staticmethod
    def _examined(guest: Guest) -> Any:
        done = guest.run(f"{BIN}/python -P {SCRIPTS}/examine.py", LIMIT_S)
        found = re.search("^examined (.*)$", done.output, re.MULTILINE)
        if found is None:
            raise WorkError(f"the guest cannot be examined: {done.output}")
        return json.loads(found[1])

    def _make_disk(self) -> Path:
        """A new disk with the study on it."""
        self._made += 1
        self._said.clear()
        content = self._folder / "content"
        for name in ("work", "lib", "home"):
            (content / name).mkdir(parents=True, exist_ok=True)
        (content / "work" / "study.toml").write_text(STUDIES[self.kind])
        (content / "work" / "load.sh").write_text(LOAD)
        (content / "work" / "program.conf").write_text("depth = 8\n")
        library = content / "no_fsync.so"
        if not self.fsync and not library.exists():
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SCRIPTS / "no_fsync.c"], check=True)
        return new_disk(self._folder / f"disk-{self._made}.img", content)


def new_disk(image: Path, content: Path) -> Path:
    """An image with a file system that holds a copy of a folder."""
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    mkfs = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin")
    assert mkfs is not None, "guests need it as well"
    subprocess.run([mkfs, "-q", "-F", "-d", content, image], check=True)
    return image
