"""Where and how long a load runs: values handed to the workload."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ascar.results.measurement import Series


class LoadNode(Protocol):
    """A machine that programs of a load run on, each by a program here that stands for it."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def load_words(self, argv: Sequence[str], *, group: bool) -> list[str]:
        """The words of the program here, which passes on input, output, status, and SIGINT.

        Args:
            argv: the program of the load and its arguments.
            group: whether SIGINT is for its process group, or for it alone.
        """
        ...

    def end_load(self, mark: str) -> None:
        """Kill whatever a load has left there.

        Args:
            mark: what each of its processes has in its environment, `NAME=VALUE`.
        """
        ...

    @property
    def last_words(self) -> str | None:
        """The end of what its console has shown, once it is gone; None while it is up."""
        ...


@dataclass(frozen=True, slots=True)
class Workspace:
    """A place for a load to run.

    Attributes:
        directory: the directory for its files.
        memory_bytes: the most page cache and memory that the load may use; None: unlimited.
        user: account to run as; None: the caller's.
        admit: puts a program, by its process id, into the control group that holds the load to
            `memory_bytes`. A load calls it while the program still waits to begin, so that nothing is
            allocated outside the group. None: there is no group.
        environment: variables that programs of the load are given, such as the address of a server.
        hidden: how the names of variables begin that they do not inherit from us, for these would lead them
            to another server.
        node: the machine that the directory is on, where programs of the load run; None: this one.
        group: on a node, the control group that holds the load, by its directory. None: there is none.
    """

    directory: Path
    memory_bytes: int | None = None
    user: str | None = None
    admit: Callable[[int], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    hidden: tuple[str, ...] = ()
    node: LoadNode | None = None
    group: Path | None = None


def bytes_below(directory: Path) -> int:
    """Bytes of the files below a directory, by their size."""
    total = 0
    for root, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118 - a million files
            except OSError:
                continue
    return total


def reaching(variables: Mapping[str, str], folder: Path | None) -> dict[str, str]:
    """The environment of a load that finds a server, and the server's own programs.

    Args:
        variables: those by which it finds the server.
        folder: the directory of the server's programs; None: they are not here.
    """
    if folder is None:
        return dict(variables)
    return {**variables, "PATH": os.pathsep.join((str(folder), os.environ.get("PATH", os.defpath)))}


@dataclass(frozen=True, slots=True)
class LoadTiming:
    """How long a load runs, and how often it is read.

    Attributes:
        load_min_s: run at least this long.
        load_max_s: the greatest length of the load.
        reading_s: time between unit readings.
        may_end: called with all series after each reading that it asks about (`asks`); True ends the load.
        ask_from_s: ask from then on; None: once load_min_s has passed.
    """

    load_min_s: float
    load_max_s: float
    reading_s: float
    may_end: Callable[[Mapping[str, Series]], bool]
    ask_from_s: float | None = None

    def asks(self, seconds: float) -> bool:
        """Whether `may_end` is to be called after a reading at this age of the load."""
        return seconds >= (self.load_min_s if self.ask_from_s is None else self.ask_from_s)
