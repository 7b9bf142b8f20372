"""Where the rivals meet: a server in bounded memory, on a volume of limited speed, filled once.

The volume is XFS on an image file, whose reads and writes a second the kernel limits; the server is in a
control group with less than half as much memory as there is data. Both are made by keepers, which take them
away whatever ends the benchmark. Every trial of everybody starts on a clone of the same files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ascar.errors import AscarError
from ascar.evaluation import Evaluator
from ascar.events import ignore
from ascar.prepared_study import PreparedStudy
from ascar.program.account import Account
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.space.study_table import space_from_table
from ascar.study import Study
from ascar.systems.asking import entering
from ascar.systems.localfs import LocalFileSystem
from ascar.systems.localfs_device import SecondsByStep
from ascar.systems.own_server.target import OwnServerTarget

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from ascar.space import Configuration, Space

    from .server_rivals_turns import Contender

CLIENTS = 8
_PLACE = os.environ.get("TMPDIR", "/var/tmp")
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Scale:
    """How large everything is.

    Attributes:
        memory_mib: the memory of the server, page cache included.
        data_mib: the data, about.
        iops: reads a second and writes a second of the volume.
        load_s: the length of a load.
        trials: the trials of a rival.
    """

    memory_mib: int = 512
    data_mib: int = 1100
    iops: int = 5000
    load_s: int = 20
    trials: int = 20

    def __post_init__(self) -> None:
        """Check that the data is at least twice the memory.

        Raises:
            ValueError: it is less.
        """
        if self.data_mib < 2 * self.memory_mib:
            raise ValueError(f"data_mib = {self.data_mib}: must be at least twice {self.memory_mib} MiB")


class FillKept(OwnServerTarget[Any]):
    """A server of the study's own whose fill is kept for the next study.

    `[target]` has one more key: `kept`, the directory of the fill, which the first study makes. In front of
    the class of a server it makes another kind of it.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        given = dict(options)
        self._kept = Path(given.pop("kept"))
        super().__init__(given)  # type: ignore[call-arg, arg-type]

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


class RivalServer(ABC):
    """A server that rivals tune, with its loads and with the advice that its users are given."""

    name: ClassVar[str]
    """The name for people."""
    kind: ClassVar[str]
    """The kind of its target; that of the target whose fill is kept has "-filled" after it."""
    filled: ClassVar[type[FillKept]]
    """That target, which is found by `python MODULE:CLASS`."""
    loads: ClassVar[tuple[str, ...]]
    """The names of the loads; the first one fills the server."""
    options: ClassVar[Mapping[str, Any]]
    """Keys of `[target]`."""

    @abstractmethod
    def workload(self, load: str, scale: Scale, directory: Path) -> dict[str, Any]:
        """The `[workload]` table of a load, whose files are in a directory."""

    def make_files(self, scale: Scale, directory: Path) -> None:  # noqa: B027 - most loads need none
        """Make the files of the loads in a directory."""

    def ask(self, bed: Testbed, load: str) -> dict[str, Any] | None:  # noqa: ARG002
        """Ask on the server what there is of advice; None: nobody has to be asked.

        Raises:
            RuntimeError: nobody answers.
        """
        return None

    @abstractmethod
    def advised(
        self, space: Space, scale: Scale, load: str, told: Mapping[str, Any] | None
    ) -> list[Contender]:
        """The advice.

        Args:
            space: the space of all studies.
            scale: how large everything is.
            load: the name of the load.
            told: what `ask` found; None: nothing was asked, or there was no time for it.
        """

    def space(self, scale: Scale) -> Space:
        """The space of all studies, in which no value weakens a guarantee."""
        server = self.filled({**self.options, "memory": f"{scale.memory_mib} MiB", "kept": "/nowhere"})
        return space_from_table({}, server.space)


@dataclass(frozen=True, slots=True)
class Testbed:
    """The volume with the server's files, while it is there.

    Attributes:
        server: the server.
        scale: how large everything is.
        directory: a directory of the server's account on the volume.
        volume: the volume; its keeper holds what is set of its device.
        site: a directory for Python's path in which `ascar` finds the kind of target.
    """

    server: RivalServer
    scale: Scale
    directory: Path
    volume: LocalFileSystem
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
                "kind": f"{self.server.kind}-filled",
                **self.server.options,
                "directory": str(self.directory),
                "memory": f"{self.scale.memory_mib} MiB",
                "memory_limit": f"{self.scale.memory_mib} MiB",
                "kept": str(self.directory / "kept"),
            },
            "workload": self.server.workload(load, self.scale, self.directory),
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
def bed_of(server: RivalServer, scale: Scale) -> Generator[Testbed]:
    """Make the volume, and fill the server once.

    Raises:
        RuntimeError: this machine cannot have them, or the default configuration fails.
    """
    account = Account.of(None, server.name, server.filled.account)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="ascar-rivals-", dir=_PLACE) as folder,
            LocalFileSystem(_volume(Path(folder) / "image", scale, account)) as volume,
        ):
            volume.apply(volume.space.default())
            volume.settle()
            directory = volume.workspace.directory
            _check_reached(directory, account)
            server.make_files(scale, directory)
            bed = Testbed(server, scale, directory, volume, _site(Path(folder) / "site", server))
            with bed.bench(server.loads[0]) as bench:
                first = bench.attempt(bench.prepared.space.default())
            if first.failure is not None:
                raise RuntimeError(f"the default configuration fails: {first.failure.message}")
            yield bed
    except AscarError as error:
        raise RuntimeError(error.message) from error


def _volume(image: Path, scale: Scale, account: Account) -> dict[str, Any]:
    return {
        "image": str(image),
        "size": f"{3 * scale.data_mib + 3072} MiB",
        "iops": scale.iops,
        "file_systems": ["xfs"],
        "machine_wide": False,
        "memory": "none",
        "user": account.name,
    }


def _check_reached(directory: Path, account: Account) -> None:
    """See that the server's account reaches the volume."""
    reached = subprocess.run(account.run("test", "-w", str(directory)), check=False)
    if reached.returncode != 0:
        raise RuntimeError(f"{directory}: the account {account.name} cannot write there")


def _site(folder: Path, server: RivalServer) -> Path:
    """A directory by which the kind of target is found, as a package of somebody else's would be."""
    info = folder / "ascar_rivals-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ascar-rivals\nVersion: 0\n")
    entry = f"{server.kind}-filled = {server.filled.__module__}:{server.filled.__name__}"
    (info / "entry_points.txt").write_text(f"[ascar.systems]\n{entry}\n")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return folder
