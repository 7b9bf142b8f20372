"""A program whose study says by itself how values reach it: arguments, variables, files, commands."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ascar.errors import Refused, SpaceError, StageFailed
from ascar.space import Space
from ascar.systems import Sample
from ascar.systems.keeper import Keeper, scratch_directory
from ascar.systems.program.asked import ProgramCommands
from ascar.systems.program.files import files_of
from ascar.systems.program.foreground import Foreground
from ascar.systems.program.placeholders import texts_of, value_from
from ascar.systems.program.readiness import accepts, await_ready
from ascar.systems.program.unit import Unit
from ascar.systems.program.wiring import Wiring, restart_of
from ascar.systems.steps import SecondsByStep

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from ascar.space import ChangeCost, Configuration, Value
    from ascar.systems.keeper import Hold
    from ascar.systems.program.options import ProgramOptions

_UNDO_S_MAX = 60.0


class DeclaredProgram:
    """The program of a study with `start`, `service`, `file`, `apply` or `restart`.

    Args:
        options: the `[target]` table.
    """

    def __init__(self, options: ProgramOptions) -> None:
        self.options = options
        self.files = files_of(options.file)
        self.space = Space(name="program")
        self.wiring: Wiring | None = None
        self._held = ExitStack()
        self._keeper: Keeper | None = None
        self._directory: Path | None = None
        self._process: Foreground | None = None
        self._unit: Unit | None = None
        self._commands: ProgramCommands | None = None
        self._in_force: dict[str, str] | None = None
        self._started_as: tuple[list[str], dict[str, str]] | None = None

    def adopt(self, space: Space) -> None:
        """Learn the study's parameters.

        Raises:
            StudyError: one cannot reach the program, or a name in braces means nothing.
        """
        self.wiring = Wiring.of(self.options, self.files, space)
        self.space = space
        if self._commands is not None:
            self._commands.space = space

    def enter(self, owner: str, *, keeps: bool | Hold) -> None:
        """Find the commands' programs, start the keeper, make the directory.

        Raises:
            EnvironmentLacks: a program is not there, or the keeper.
            Refused: another study has the service.
        """
        commands = ProgramCommands(self.options, self.space)
        keeper = self._held.enter_context(Keeper(owner, user=True, hold=keeps))
        directory = self._held.enter_context(scratch_directory(keeper, "ascar-program-"))
        commands.directory = directory
        self._keeper, self._directory, self._commands = keeper, directory, commands
        if self.options.service:
            keeper.lock(f"service:{re.sub(r'[^A-Za-z0-9_.-]', '-', self.options.service)}")

    def leave(self, error: BaseException | None = None) -> None:
        """End the program, and put everything back; what is to stay does so unless there is an error.

        Raises:
            AscarError: what was to stay cannot.
        """
        try:
            self._end()
        finally:
            self._keeper = self._unit = None
            self._in_force = self._started_as = None
            self._held.__exit__(None if error is None else type(error), error, None)

    @property
    def directory(self) -> Path:
        """A directory that is removed at the end."""
        assert self._directory is not None, "a target is entered before it is used"
        return self._directory

    def read(self, names: Collection[str]) -> dict[str, Value]:
        """The values that `check` and the files tell.

        Raises:
            StageFailed: `check` fails, or tells what is no value.
        """
        told: dict[str, str] = {}
        for file in self.files:
            told |= file.told(names, self.directory)
        told |= self._checked(names)
        found: dict[str, Value] = {}
        for name in names:
            if name in told:
                try:
                    found[name] = value_from(self.space[name], told[name])
                except SpaceError as error:
                    raise StageFailed(
                        "change", f"the value in force is not one of the study: {error.message}"
                    ) from None
        return found

    def apply(self, changed: Collection[str], configuration: Configuration) -> Mapping[str, float]:
        """Put a configuration in force; seconds by step.

        Args:
            changed: the parameters whose values differ from those in force; all of them after a failure.
            configuration: the configuration, without settings of the kernel.

        Raises:
            StageFailed: a step failed; the next configuration is applied as the first one.
        """
        assert self.wiring is not None, "a target learns its space before it is used"
        steps = SecondsByStep()
        values = texts_of(configuration, self.options.booleans)
        first, self._in_force = self._in_force is None, None
        if first:
            with steps.step("prepare"):
                self._prepare()
        cost = self.wiring.needs_restart(changed, self.space)
        stops = self._stops(cost, values, first=first)
        if stops:
            with steps.step("stop"):
                self._stop()
        if self.options.reset_stopped:
            with steps.step("reset"):
                self._asked().do("reset", self.options.reset, values)
        with steps.step("files"):
            self._write(values, configuration)
        before, after = self._applications(changed, everything=first or stops)
        with steps.step("apply"):
            self._apply(before, values)
        with steps.step("restart"):
            restarted = self._restart(cost, values, stopped=stops)
        with steps.step("health"):
            self.await_ready(self.options.health_s, values)
        with steps.step("apply"):
            self._apply(after | (self._lost_by_restart() if restarted else set()), values)
        if self.options.reset and not self.options.reset_stopped:
            with steps.step("reset"):
                self._asked().do("reset", self.options.reset, values)
        self._in_force = values
        return steps.seconds

    def await_ready(self, limit_s: float, values: Mapping[str, str] | None = None) -> None:
        """Wait until the program can serve.

        Raises:
            StageFailed: it cannot within `limit_s`.
        """
        known = values if values is not None else self._in_force or {}
        health = self._asked().command("health", self.options.health, known) if self.options.health else []
        await_ready(
            self._process or self._unit, self.options.listen, health, self._asked().place(known), limit_s
        )

    def sample(self) -> Sample:
        """See that the program lives; the memory of one that ascar starts.

        Raises:
            StageFailed: it has ended.
        """
        living = self._process or self._unit
        if living is not None:
            living.check_alive()
        if self._process is None:
            return Sample()
        return Sample(gauges={"program_memory_bytes": self._process.memory_bytes()})

    # The steps

    def _prepare(self) -> None:
        """Write down what undoes the changes that follow, the last to be run first."""
        options, keeper = self.options, self._entered()
        if options.service and self._unit is None:
            place = self._asked().place({})
            self._unit = Unit(options.service, of_user=options.service_of == "user", place=place)
        if not options.start:
            for argv in self._inverse():
                keeper.undo_command(argv, min(_UNDO_S_MAX, options.command_s))
        if options.restore:
            restoring = self._asked().command("restore", options.restore, {})
            keeper.undo_command(restoring, min(_UNDO_S_MAX, options.command_s))
        if self._unit is not None:
            keeper.undo_command(self._unit.restoring(), _UNDO_S_MAX)

    def _inverse(self) -> Iterator[list[str]]:
        """`apply` with the values from before.

        Raises:
            StageFailed: `check` does not tell one, and there is no `restore`.
        """
        assert self.wiring is not None
        if not self.options.apply or (self._unit is not None and not self.options.check):
            return
        told = self._checked(self.wiring.applied) if self.options.check else {}
        missing = sorted(self.wiring.applied - told.keys())
        if missing and not self.options.restore and self._unit is None:
            raise StageFailed(
                "change",
                f"target.check: does not tell {missing[0]!r}, so it could not be put back; have it tell "
                "every parameter that `apply` sets, or give `restore`",
            )
        if self.wiring.by_name:
            for name in sorted(self.wiring.by_name & told.keys()):
                yield self._asked().command(
                    "apply", self.options.apply, told | self._asked().named(name, told[name])
                )
        elif not missing:
            yield self._asked().command("apply", self.options.apply, told)

    def _stops(self, cost: ChangeCost | None, values: Mapping[str, str], *, first: bool) -> bool:
        """Whether the program has to be stopped for a change."""
        if self.options.reset_stopped:
            return True
        if not self.options.start:
            return False
        if first or self._process is None or (cost is not None and cost.category > 0):
            return True
        try:
            self._process.check_alive()
        except StageFailed:
            return True
        return self._started_as != self._starting(values)

    def _stop(self) -> None:
        if self.options.start:
            self._end()
        elif self._unit is not None:
            self._unit.do("stop")

    def _write(self, values: Mapping[str, str], configuration: Configuration) -> None:
        texts = {**values, "directory": str(self.directory)}
        for file in self.files:
            file.write(
                texts, configuration, (*self.space.names, "directory"), (self.directory, self._entered())
            )

    def _restart(self, cost: ChangeCost | None, values: Mapping[str, str], *, stopped: bool) -> bool:
        """Start or restart what the change asks for; whether what `apply` has set may be lost."""
        if self.options.start and stopped:
            self._start(values)
            return True
        if self._unit is not None and stopped:
            self._unit.do("start")
            return True
        way = None if cost is None else restart_of(cost, self.options)
        if way is None:
            return False
        kind, what = way
        if kind == "unit":
            assert self._unit is not None
            self._unit.do(what)
        else:
            self._asked().do(f"restart.{what}", self.options.restart[what], values)
        return cost is not None and cost.category > 0

    def _start(self, values: Mapping[str, str]) -> None:
        if self.options.listen and accepts(self.options.listen):
            raise Refused(
                f"target.listen = {self.options.listen!r}: another program accepts connections there; end "
                "it, or take another address"
            )
        argv, environment = self._starting(values)
        process = Foreground(
            argv, environment, self._asked().place(values).directory, self._entered(), self.options.end_s
        )
        self._process, self._asked().pid = process, process.pid
        self._started_as = argv, environment

    def _starting(self, values: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        return self._asked().command("start", self.options.start, values), dict(
            self._asked().place(values).environment
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._asked().pid = None
            process.end()

    def _applications(self, changed: Collection[str], *, everything: bool) -> tuple[set[str], set[str]]:
        """The parameters to apply before a restart, and after it."""
        assert self.wiring is not None
        wanted = set(self.wiring.applied if everything else self.wiring.applied & set(changed))
        before = {name for name in wanted if self.space[name].cost.category > 0 and not self.options.start}
        return before, wanted - before

    def _lost_by_restart(self) -> set[str]:
        assert self.wiring is not None
        return {name for name in self.wiring.applied if self.space[name].cost.category == 0}

    def _apply(self, names: Collection[str], values: Mapping[str, str]) -> None:
        """Run `apply`: for each parameter that it sets by name, or once."""
        assert self.wiring is not None
        if not names:
            return
        by_name = self.wiring.by_name
        if not by_name:
            self._asked().do("apply", self.options.apply, values)
            return
        wanted = by_name if set(names) - by_name else set(names)
        for name in self.space.names:
            if name in wanted and name in values:
                self._asked().do(
                    "apply", self.options.apply, {**values, **self._asked().named(name, values[name])}
                )

    def _asked(self) -> ProgramCommands:
        assert self._commands is not None, "a target is entered before it is used"
        return self._commands

    def _checked(self, names: Collection[str]) -> dict[str, str]:
        """What `check` tells, as text, of the parameters that are asked about; nothing before `start`."""
        if not self.options.check or (self.options.start and self._process is None):
            return {}
        assert self.wiring is not None
        return self._asked().checked(names, self.wiring.by_name, self._in_force or {})

    def _entered(self) -> Keeper:
        assert self._keeper is not None, "a target is entered before it is used"
        return self._keeper
