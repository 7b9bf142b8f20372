"""A target that is a server of the study's own: filled once, and started for each trial on the same data."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar

import msgspec

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.program.account import Account
from ascar.results.trial import Change
from ascar.space import ChangeCost
from ascar.study import size
from ascar.systems import Sample, Starter, Target
from ascar.systems.counters import Counters, counter_names
from ascar.systems.keeper import Keeper, removal_of
from ascar.systems.machine import backing_of, describe_machine, file_system_of
from ascar.systems.steps import SecondsByStep
from ascar.workspace import Workspace, reaching

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from ascar.space import Configuration
    from ascar.systems.own_server.server import OwnServer

_PATH_BYTES_MAX = 107  # of a socket (unix(7))
MEMORY_LIMIT_BYTES_MIN = 32 << 20
"""Below, a server hardly starts."""
_DIRECTORY = Path("/var/tmp")  # noqa: S108 - what is made in it has a name that nobody knows
"""Where a server of an account without a home is made."""
START_S = 120.0
"""Seconds in which a server has to answer."""


class ServerKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of `[target]` that every server of a study's own has; kinds say what they mean for them.

    Attributes:
        directory: the directory in which one is made for the server. None: the home of its account, or
            /var/tmp where it has none.
        parameters: which settings are searched.
        memory: the memory that the server may come to use. None: memory_limit, or three quarters of the
            machine's.
        memory_limit: the memory and page cache that the server has once it is filled, as in a container of
            that size: a control group, which takes root. None: the machine's.
        user: the account that runs the server. None: the caller's, or the package's where root calls.
        version: the major version to run. None: the newest one that is installed.
    """

    directory: str | None = None
    parameters: Literal["expert", "wide"] = "expert"
    memory: str | None = None
    memory_limit: str | None = None
    user: str | None = None
    version: int | None = None


S = TypeVar("S", bound="OwnServer[Any]")


class OwnServerTarget(Target, Generic[S]):
    """What such targets do alike.

    A kind names its server and its account, and says how a server is made (`_made`), which lines of its
    configuration file stand for a configuration (`_lines`), and what it tells of itself (`_told`).

    Args:
        keys: the checked keys of `[target]`.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: the package's account is missing.
    """

    name: ClassVar[str]
    """The server's name for people."""
    kind: ClassVar[str]
    """The name of the kind."""
    account: ClassVar[str]
    """The account that packages make for the server."""
    socket: ClassVar[str | None]
    """The name of the socket; None: it has none."""

    data_file: ClassVar[str | None] = None
    """The file of a directory of data in which each directory is a database; None: the kind has none such."""

    told: ClassVar[frozenset[str]]
    """The names of the counters and gauges that the server tells."""

    changes_while_working = frozenset({ChangeCost.DYN_APP})
    starter = Starter(target={"parameters": '"expert"', "memory": '"1 GiB"'})

    def __init__(self, keys: ServerKeys) -> None:
        self._keys = keys
        self._account = Account.of(keys.user, self.name, self.account)
        limit = keys.memory_limit
        self._limit_bytes = (
            None if limit is None else size("target.memory_limit", limit, MEMORY_LIMIT_BYTES_MIN)
        )
        self._memory_bytes = memory_of(keys.memory, self._limit_bytes)
        self._directory = self._checked_directory(keys.directory)
        self._keeper: Keeper | None = None
        self._group_keeper: Keeper | None = None
        self._server: S | None = None
        self._counters: Counters | None = None
        self._current: Configuration | None = None

    def _made(self, place: Path, keeper: Keeper) -> S:
        """The server, not yet running."""
        raise NotImplementedError

    def _lines(self, configuration: Configuration) -> Sequence[str]:
        """The lines of the server's configuration file."""
        raise NotImplementedError

    def _end_fill(self) -> None:
        """Do what a fill has put off, before its data is kept.

        Raises:
            StageFailed: it cannot be done.
        """

    def _told(self) -> Sample:
        """What the server tells of itself.

        Raises:
            StageFailed: it does not answer.
        """
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Make the directory, and the control group where memory is limited.

        Raises:
            StudyError: it cannot be made, or its path is too long for a socket.
            EnvironmentLacks: memory is limited, and there is no root, or no control groups for memory.
        """
        key = f"target.directory = {str(self._directory)!r}"
        longest = _PATH_BYTES_MAX - len(f"/ascar-12345678/{self.socket}")
        if self.socket is not None and len(os.fsencode(self._directory)) > longest:
            raise StudyError(f"{key}: the path is too long for a socket; name a shorter one")
        try:
            place = Path(tempfile.mkdtemp(prefix="ascar-", dir=self._directory))
        except OSError as error:
            raise StudyError(f"{key}: {error.strerror}; name a directory that you may write to") from error
        try:
            self._keeper = Keeper(self.kind, user=True).start()
            self._keeper.undo_command(removal_of(place))
            (place / "load").mkdir()
            for path in (place, place / "load"):
                os.chown(path, self._account.uid, self._account.gid)
            self._server = self._made(place, self._keeper)
            if self._limit_bytes is not None:
                self._server.admit = self._limited(self._limit_bytes)
        except BaseException:
            self._close()
            shutil.rmtree(place, ignore_errors=True)
            raise
        backing = backing_of(place)
        self._counters = Counters({} if backing is None else {"device": backing})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the server, and remove everything."""
        server, self._server, self._current = self._server, None, None
        try:
            if server is not None:
                server.stop()
                shutil.rmtree(server.place, ignore_errors=True)
                if self._keeper is not None and not server.place.exists():
                    self._keeper.undo_forget(removal_of(server.place))
        finally:
            self._close()

    def apply(self, configuration: Configuration) -> Change:
        """Start the server on the same data with the configuration.

        Raises:
            StageFailed: the server refuses it.
        """
        server, steps = self._entered(), SecondsByStep()
        before, self._current = self._current, None
        with steps.step("stop"):
            server.stop()
        filled = server.saved.exists()
        with steps.step("data"):
            server.load() if filled else server.create()
        with steps.step("start"):
            server.begin(self._lines(configuration), START_S)
        self._current = configuration
        return Change.of(self.space.change(before or {}, configuration), steps.seconds, filled=filled)

    def settle(self) -> Mapping[str, float]:
        """After the fill, keep the data, and start on a copy of it as all later trials do.

        Raises:
            StageFailed: the data cannot be copied, or the server does not start again.
        """
        server = self._entered()
        if server.saved.exists() or self._current is None:
            return {}
        self._end_fill()
        start_s = time.monotonic()
        server.stop()
        server.save()
        server.load()
        server.begin(self._lines(self._current), START_S)
        return {"save data": time.monotonic() - start_s}

    def health(self, limit_s: float) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        server = self._entered()
        server.check_alive()
        server.ping(max(1.0, limit_s))

    def sample(self) -> Sample:
        """What the server tells of itself, and the traffic of the disk.

        Raises:
            StageFailed: the server does not answer.
        """
        assert self._counters is not None, "counters are those of the disk that entering finds"
        told = self._told()
        return replace(told, counters={**self._counters.read(), **told.counters})

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters and gauges."""
        return counter_names(("device",)) | self.told

    @property
    def workspace(self) -> Workspace:
        """A directory for the load, which finds the server by variables, and the server's own programs."""
        server = self._entered()
        environment = reaching(server.reached, server.programs.folder)
        return Workspace(
            server.place / "load",
            user=self._account.name,
            environment=environment,
            hidden=server.variables,
        )

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        place = self._entered().place
        return {
            "target": self.kind,
            **describe_machine(),
            "device": {"name": backing_of(place), "file_system": file_system_of(place)},
            "memory_bytes": self._memory_bytes,
            **({} if self._limit_bytes is None else {"memory_limit_bytes": self._limit_bytes}),
        }

    def _checked_directory(self, given: str | None) -> Path:
        if given is None:
            home, data = self._account.home, self.data_file
            # RPM's account of MariaDB is at home in the data of the server that people use.
            is_data = data is not None and os.path.lexists(home / data)
            return home if os.path.isdir(home) and not is_data else _DIRECTORY  # noqa: PTH112 - False where it may not be looked at
        if not given or "\0" in given:
            raise StudyError(f"target.directory = {given!r}: must be a path")
        path = Path(given).expanduser().absolute()
        if not os.path.isdir(path):  # noqa: PTH112 - False where it may not even be looked at
            raise StudyError(f"target.directory = {given!r}: is not a directory; make it, or name another")
        return path

    def _limited(self, memory_bytes: int) -> Callable[[int], None]:
        """Make a control group; what puts processes into it."""
        keeper = self._group_keeper = Keeper(self.kind).start()
        if keeper.capabilities.cgroup_memory is None:
            raise EnvironmentLacks(
                "target.memory_limit: this machine has no control groups for memory; mount them, or leave it "
                "out and use a load with much more data than the machine has memory"
            )
        keeper.cgroup_create(memory_bytes)
        return keeper.cgroup_add

    def _close(self) -> None:
        keepers, self._keeper, self._group_keeper = (self._keeper, self._group_keeper), None, None
        for keeper in keepers:
            if keeper is not None:
                keeper.close()

    def _entered(self) -> S:
        if self._server is None:
            raise StageFailed("program", "the target is entered before it is used")
        return self._server


def memory_of(given: str | None, limit_bytes: int | None = None) -> int:
    """The bytes that a server may use; None: all of the limit, or three quarters of the machine's.

    Raises:
        StudyError: it is not a size, or above the limit.
    """
    if given is None:
        return limit_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    memory_bytes = size("target.memory", given)
    if limit_bytes is not None and memory_bytes > limit_bytes:
        raise StudyError(f"target.memory = {given!r}: must be at most target.memory_limit")
    return memory_bytes
