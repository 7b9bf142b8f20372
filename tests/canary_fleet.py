"""Servers that do the same work, and a run whose configuration they are to take one after the other."""

from __future__ import annotations

import subprocess
import sys
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from ascar.space.study_table import study_space
from ascar.study import Study
from ascar.systems import open_target
from ascar.systems.keeper import restore_all
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

RUN = """
[study]
name = "tuned"
objective = "maximize throughput_ops_per_s"
budget = "1 min"
[target]
kind = "KIND"
"""
FLOOR = """
[[guard.floor]]
metric = "throughput_ops_per_s"
minimum = 1
window_ticks = 5
"""


class Fleet(ABC):
    """Two servers that do the same work, and a run whose configuration they are to take.

    A subclass says what its servers are.

    Attributes:
        kind: the kind of the target.
        wanted: the values that the run recommends.
        written: the same as the servers tell them.
    """

    kind: ClassVar[str]
    wanted: ClassVar[Mapping[str, Any]]
    written: ClassVar[Mapping[str, str]]

    def __init__(self, servers: tuple[Any, ...], folder: Path, run: int) -> None:
        self.servers, self.run = servers, run
        self.files = tuple(folder / f"{number}.toml" for number in range(len(servers)))
        for file, server in zip(self.files, servers, strict=True):
            head = f'[target]\nkind = "{self.kind}"\nserver = "existing"\n'
            file.write_text(head + self.reached(server) + FLOOR)
        self.before = self.state()

    @classmethod
    def kept(cls, keep_run: Callable[..., int]) -> int:
        """The number of a run that recommends the values."""
        study = Study.parse(RUN.replace("KIND", cls.kind))
        space = study_space(study, open_target(study.target).space)
        best = space.validate({**space.default(), **cls.wanted})
        return keep_run(study, space, best, {"target": cls.kind})

    @classmethod
    @contextmanager
    def of_run(cls, servers: tuple[Any, ...], folder: Path, keep_run: Callable[..., int]) -> Generator[Fleet]:
        """Servers and such a run; journals are below the folder, and everything is put back in the end."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(folder / "state"))
            # What root's keeper has in force is that of other tests.
            patch.setattr("ascar.systems.keeper.ROOTS_STATE", folder / "of-root")
            fleet = cls(servers, folder, cls.kept(keep_run))
            yield fleet
            restore_all(everything=True)
            fleet.comes_back()

    @staticmethod
    @abstractmethod
    def reached(server: Any) -> str:
        """The lines of `[target]` that lead to a server."""

    @staticmethod
    @abstractmethod
    def told(server: Any, name: str) -> str:
        """A parameter's present value, as the server tells it."""

    @staticmethod
    def alive(server: Any) -> bool:
        """Whether a server can be asked."""
        return bool(server)

    def words(self, *more: str, names: bool = True) -> list[str]:
        """The command, with every server."""
        servers = [word for file in self.files for word in ("--server", str(file))]
        allowed = [word for one in self.servers for word in ("--allow-live", one.name)] if names else []
        return ["apply", str(self.run), *servers, *allowed, *more]

    def state(self) -> list[dict[str, str]]:
        """The present values of those that can be asked."""
        return [
            {name: self.told(one, name) for name in self.wanted} for one in self.servers if self.alive(one)
        ]

    def has(self, number: int) -> bool:
        """Whether a server has the configuration."""
        return self.state()[number] == self.written

    @contextmanager
    def applying(self, *more: str) -> Generator[subprocess.Popen[str]]:
        """The command in a process of its own."""
        argv = [sys.executable, "-m", "ascar", *self.words(*more)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def comes_back(self) -> None:
        """See that everything is as before, without anybody's help."""
        until(lambda: self.state() == self.before[: len(self.state())])
