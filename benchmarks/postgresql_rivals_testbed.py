"""Where the rivals meet: PostgreSQL in bounded memory, on a volume of limited speed, filled once.

The volume is XFS on an image file, whose reads and writes a second the kernel limits; the server is in a
control group with less than half as much memory as there is data. Both are made by keepers, which take them
away whatever ends the benchmark. Every trial of everybody starts on a clone of the same files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ascar.campaign import PreparedStudy, ignore
from ascar.errors import AscarError
from ascar.evaluation import Evaluator
from ascar.program.account import Account
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.space.study_table import space_from_table
from ascar.study import Study
from ascar.systems.asking import entering
from ascar.systems.keeper import Keeper
from ascar.systems.localfs import LocalFileSystem
from ascar.systems.localfs_device import SecondsByStep
from ascar.systems.postgresql import PostgreSQL
from ascar.systems.postgresql.server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from ascar.space import Configuration, Space

KIND = "postgresql-confined"
CONNECTIONS = 20
CLIENTS = 8
_BYTES_PER_SCALE = 15 * 2**20
_PLACE = os.environ.get("TMPDIR", "/var/tmp")

SORT = Path(__file__).with_name("postgresql_rivals_sort.sql")
LOADS: dict[str, str] = {"tpcb": "tpcb-like", "sort": "sort.sql"}
"""The scripts of pgbench: short transactions that write, and sorts."""
_SORTED = 40_000
_PER_SCALE = 100_000


@dataclass(frozen=True, slots=True)
class Scale:
    """How large everything is.

    Attributes:
        memory_mib: the memory of the server, page cache included.
        accounts: pgbench's scale, about 15 MiB each.
        iops: reads a second and writes a second of the volume.
        load_s: the length of a load.
        trials: the trials of a rival.
    """

    memory_mib: int = 384
    accounts: int = 60
    iops: int = 5000
    load_s: int = 20
    trials: int = 20

    def __post_init__(self) -> None:
        """Check that the data is at least twice the memory.

        Raises:
            ValueError: it is less.
        """
        if self.accounts * _BYTES_PER_SCALE < 2 * self.memory_mib * 2**20:
            raise ValueError(f"accounts = {self.accounts}: must be data of twice {self.memory_mib} MiB")


@dataclass(frozen=True, slots=True)
class ConfinedAccount(Account):
    """An account whose programs run in a control group.

    Attributes:
        group: the directory of the group.
    """

    group: Path = Path()

    def run(self, *argv: str) -> list[str]:
        """The words that put a process into the group, and then run a program as the account."""
        enter = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.group / "cgroup.procs")]
        return [*enter, *Account.run(self, *argv)]


class ConfinedPostgreSQL(PostgreSQL):
    """A server of the study's own in a control group, whose fill is kept for the next study.

    `[target]` has two more keys: `cgroup`, the directory of the group, and `kept`, that of the fill, which
    the first study makes.
    """

    kind: ClassVar[str] = KIND

    def __init__(self, options: Mapping[str, Any]) -> None:
        given = dict(options)
        self._group, self._kept = Path(given.pop("cgroup")), Path(given.pop("kept"))
        super().__init__(given)

    def _made(self, place: Path, keeper: Keeper) -> PostgresServer:
        one = self._account
        account = ConfinedAccount(one.name, one.uid, one.gid, one.home, self._group)
        fixed = (f"max_connections={self.options.max_connections}",)
        return PostgresServer(self._programs, account, place, keeper, fixed)

    def __enter__(self) -> Self:
        """Make the directory, with the fill in it where one is kept."""
        super().__enter__()
        if self._kept.exists():
            try:
                _clone(self._kept, self._entered().saved)
            except BaseException:
                self.__exit__(None, None, None)
                raise
        return self

    def settle(self) -> Mapping[str, float]:
        """After the fill, keep it."""
        steps = super().settle()
        if not self._kept.exists():
            _clone(self._entered().saved, self._kept)
        return steps


def _clone(data: Path, copy: Path) -> None:
    part = copy.with_name(f"{copy.name}.part")
    subprocess.run(["cp", "-a", "--reflink=always", "--", str(data), str(part)], check=True)
    part.rename(copy)


@dataclass(frozen=True, slots=True)
class Testbed:
    """The volume and the control group, while they are there.

    Attributes:
        scale: how large everything is.
        directory: a directory of the server's account on the volume.
        volume: the volume; its keeper holds what is set of its device.
        group: the directory of the control group.
        site: a directory for Python's path in which `ascar` finds the kind of target.
    """

    scale: Scale
    directory: Path
    volume: LocalFileSystem
    group: Path
    site: Path

    @contextmanager
    def read_ahead(self, kib: int) -> Generator[None]:
        """The largest read-ahead of the volume is another one meanwhile."""
        device, knob = self.volume._entered(), "block.DEV.read_ahead_kb"
        before = device.knob(knob)
        device.set_knobs({knob: kib}, SecondsByStep())
        try:
            yield
        finally:
            device.set_knobs({knob: before}, SecondsByStep())

    def tables(self, load: str, budget_s: float, load_min_s: float) -> dict[str, Any]:
        """The study of a load.

        Args:
            load: the name of the load.
            budget_s: the budget.
            load_min_s: the least length of a load.
        """
        return {
            "study": {
                "name": f"rivals-{load}",
                "objective": "maximize throughput_ops_per_s",
                "budget": f"{budget_s:.0f} s",
            },
            "target": {
                "kind": KIND,
                "directory": str(self.directory),
                "memory": f"{self.scale.memory_mib} MiB",
                "max_connections": CONNECTIONS,
                "cgroup": str(self.group),
                "kept": str(self.directory / "kept"),
            },
            "workload": {
                "kind": "pgbench",
                "scale": self.scale.accounts,
                "clients": CLIENTS,
                "script": str(self.directory / LOADS[load]) if "." in LOADS[load] else LOADS[load],
            },
            "measurement": {"load_min": f"{load_min_s:g} s", "load_max": f"{self.scale.load_s} s"},
        }

    @contextmanager
    def bench(self, load: str) -> Generator[Bench]:
        """The server under a load, ready for one configuration after the other."""
        study = Study.of(self.tables(load, 36_000, self.scale.load_s))
        prepared = PreparedStudy.open(study)
        with entering(prepared.target):
            prepared = prepared.entered()
            evaluator = Evaluator(study, prepared.target, prepared.workload, ignore, prepared.clock)
            yield Bench(prepared, evaluator)


def space_of(scale: Scale) -> Space:
    """The space of all studies, in which no value weakens a guarantee."""
    server = PostgreSQL({"memory": f"{scale.memory_mib} MiB", "max_connections": CONNECTIONS})
    return space_from_table({}, server.space)


@dataclass(frozen=True, slots=True)
class Bench:
    """A load that tries configurations.

    Attributes:
        prepared: the study, whose target is entered.
        evaluator: carries out trials.
    """

    prepared: PreparedStudy
    evaluator: Evaluator

    def attempt(self, configuration: Configuration) -> Trial:
        """A trial; one that fails has no score."""
        return self.evaluator.evaluate(Trial(1, configuration, Purpose.SEARCH, TrialState.RUNNING))


@contextmanager
def bed_of(scale: Scale) -> Generator[Testbed]:
    """Make the volume and the control group, and fill the server once.

    Raises:
        RuntimeError: this machine cannot have them, or the default configuration fails.
    """
    try:
        with (
            tempfile.TemporaryDirectory(prefix="ascar-rivals-", dir=_PLACE) as folder,
            LocalFileSystem(_volume(Path(folder) / "image", scale)) as volume,
            Keeper("rivals") as keeper,
        ):
            volume.apply(volume.space.default())
            volume.settle()
            directory = volume.workspace.directory
            _shared_path(directory)
            last = str(scale.accounts * _PER_SCALE - _SORTED)
            (directory / LOADS["sort"]).write_text(SORT.read_text().replace("LAST", last))
            group = keeper.cgroup_create(scale.memory_mib * 2**20).path
            site = _site(Path(folder) / "site")
            bed = Testbed(scale, directory, volume, group, site)
            with bed.bench("tpcb") as bench:
                first = bench.attempt(bench.prepared.space.default())
            if first.failure is not None:
                raise RuntimeError(f"the default configuration fails: {first.failure.message}")
            yield bed
    except AscarError as error:
        raise RuntimeError(error.message) from error


def _volume(image: Path, scale: Scale) -> dict[str, Any]:
    size_mib = 3 * scale.accounts * _BYTES_PER_SCALE // 2**20 + 3072
    return {
        "image": str(image),
        "size": f"{size_mib} MiB",
        "iops": scale.iops,
        "file_systems": ["xfs"],
        "machine_wide": False,
        "memory": "none",
        "user": Account.of(None, "PostgreSQL", "postgres").name,
    }


def _shared_path(directory: Path) -> None:
    """See that the server's account reaches the volume."""
    account = Account.of(None, "PostgreSQL", "postgres")
    reached = subprocess.run(account.run("test", "-w", str(directory)), check=False)
    if reached.returncode != 0:
        raise RuntimeError(f"{directory}: the account {account.name} cannot write there")


def _site(folder: Path) -> Path:
    """A directory by which the kind of target is found, as a package of somebody else's would be."""
    info = folder / "ascar_rivals-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ascar-rivals\nVersion: 0\n")
    entry = f"{KIND} = benchmarks.postgresql_rivals_testbed:ConfinedPostgreSQL"
    (info / "entry_points.txt").write_text(f"[ascar.systems]\n{entry}\n")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return folder
