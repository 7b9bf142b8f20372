"""A program of one's own, or of somebody else, that its study describes.

[target]
kind = "program"
start = ["redis-server", "--port", "7000", "--io-threads", "{io_threads}"]
listen = "127.0.0.1:7000"

[space.parameters.io_threads]              # the parameters are the study's own
kind = "integer"
low = 1
high = 8
default = 1
cost = "app-restart"

A parameter whose `native` is a setting of the kernel is set by the keeper of root instead.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ascar.catalogues import kernel_setting
from ascar.catalogues.coupling import with_reset
from ascar.results.trial import Change
from ascar.space import Configuration, Space
from ascar.study import convert
from ascar.systems import Placement, Sample, Starter, Target
from ascar.systems.keeper import Keeper
from ascar.systems.machine import describe_machine
from ascar.systems.program.declared import DeclaredProgram
from ascar.systems.program.lines import SpokenProgram
from ascar.systems.program.options import ProgramOptions, check_options
from ascar.systems.program.statements import lines_of, placement_of
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from ascar.space import Value
    from ascar.systems.place import Place

_PARAMETERS = """
[space.parameters.io_threads]
kind = "integer"
low = 1
high = 8
default = 1
cost = "app-restart"

[space.parameters.hz]
kind = "integer"
low = 1
high = 500
log = true
default = 10
cost = "dyn-app"
"""


class ProgramSystem(Target):
    """The target of kind "program".

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    default_workload: str | None = None
    starter = Starter(
        target={
            "start": '["redis-server", "--port", "7000", "--save", "", "--io-threads", "{io_threads}"]',
            "listen": '"127.0.0.1:7000"',
            "apply": '["redis-cli", "-e", "-p", "7000", "config", "set", "{name}", "{value}"]',
            "check": '["redis-cli", "-p", "7000", "config", "get", "{name}"]',
        },
        parameters=_PARAMETERS,
        workload=lambda: {"kind": '"command"', "argv": '["./my-load"]'},
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, ProgramOptions, "target")
        check_options(self.options)
        self.space = Space(name="program")
        self.owner = "program"
        self._program = SpokenProgram(self.options) if self.options.command else DeclaredProgram(self.options)
        self._kernel: Mapping[str, str] = {}
        self._held = ExitStack()
        self._keeper: Keeper | None = None
        self._current: dict[str, Value] | None = None

    def adopt(self, space: Space) -> None:
        """Learn the study's parameters; the keeper of root sets those of the kernel.

        Raises:
            StudyError: a parameter cannot reach the program.
        """
        self._program.adopt(space)
        self.space = space
        self._kernel = {
            one.name: one.native for one in space.parameters if kernel_setting(one.native) is not None
        }

    def __enter__(self) -> ProgramSystem:
        """Start what `command` names; what `start` names starts with the first configuration.

        Raises:
            EnvironmentLacks: a program is not there.
        """
        try:
            self._program.enter(self.owner, keeps=self.keeps)
        except BaseException as error:
            self._program.leave(error)
            raise
        self._current = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what was started, and put everything back."""
        self._keeper = None
        with self._held:
            self._program.leave(error)

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What the program, its files and the kernel say.

        Raises:
            StageFailed: they cannot be asked.
        """
        own = [name for name in names if name not in self._kernel]
        found: dict[str, Value] = self._program.read(own) if own else {}
        for name in names:
            if name in self._kernel:
                found[name] = self._of_root().knob_read(self._kernel[name]).value
        return found

    def apply(self, configuration: Configuration) -> Change:
        """Put in force what differs.

        Raises:
            StageFailed: a step fails.
        """
        before, self._current = self._current or {}, None
        difference = self.space.change(before, configuration)
        changed = set(difference.parameters)
        start_s = time.monotonic()
        of_kernel = {
            self._kernel[name]: value for name, value in configuration.items() if name in self._kernel
        }
        for native in with_reset({self._kernel[name] for name in changed & self._kernel.keys()}, of_kernel):
            self._of_root().knob_write(native, of_kernel[native])
        own = {name: value for name, value in configuration.items() if name not in self._kernel}
        steps = dict(self._program.apply(changed - self._kernel.keys(), Configuration(own)))
        steps["settings"] = max(0.0, time.monotonic() - start_s - sum(steps.values()))
        self._current = dict(configuration)
        return Change.of(difference, steps)

    def _of_root(self) -> Keeper:
        """The keeper of the kernel's settings, which a study without any does not need."""
        if self._keeper is None:
            self._keeper = self._held.enter_context(Keeper(self.owner))
        return self._keeper

    def health(self, limit_s: float) -> None:
        """Wait until the program can serve a load.

        Raises:
            StageFailed: it cannot within `limit_s`.
        """
        self._program.await_ready(limit_s)

    def sample(self) -> Sample:
        """Counters and gauges, where the program tells them.

        Raises:
            StageFailed: the program does not answer, or has ended.
        """
        return self._program.sample()

    @property
    def workspace(self) -> Workspace:
        """A directory that is removed at the end."""
        return Workspace(self._program.directory)

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        chosen = self.options
        way = {"command": list(chosen.command)} if chosen.command else {"start": list(chosen.start)}
        if chosen.service:
            way = {"service": chosen.service}
        return {"target": "program", **describe_machine(), **way}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The lines of the files and the commands; a program that is told by lines of JSON has none."""
        lines = lines_of(self.options, self.space, configuration, chosen) if chosen else []
        return {"shell": lines} if lines else {}

    @classmethod
    def placement(
        cls,
        options: Mapping[str, Any],
        space: Space,
        configuration: Configuration,
        place: Place,  # noqa: ARG003 - the study names the program
    ) -> Placement:
        """Files, and what `apply` sets, can be put in force; words and variables of `start` are left."""
        system = cls(options)
        system.adopt(space)
        return placement_of(system.options, space, configuration)
