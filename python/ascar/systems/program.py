"""A program of one's own that has settings: it is asked and told by lines of JSON.

[target]
kind = "program"
command = ["python3", "./settings.py"]     # a word that begins with ./ is in the study's folder

[space.parameters.cache_bytes]             # the parameters are the study's own
kind = "integer"
low = 1000000
high = 900000000
default = 100000000
cost = "dyn-app"

The program reads a request a line and answers each with a line (docs/howto/program.md). It puts its own
values back for `{"restore": true}` and when its input ends. A parameter whose `native` is a setting of the
kernel is set by the keeper instead.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ascar.catalogues import kernel_setting
from ascar.errors import StageFailed, StudyError
from ascar.program.lines import LineProgram
from ascar.results.trial import Change
from ascar.space import Space
from ascar.study import convert
from ascar.systems import Sample, Starter, Target
from ascar.systems.keeper import Keeper
from ascar.systems.machine import describe_machine
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from ascar.space import Configuration, Value

_PARAMETERS = """
[space.parameters.cache_bytes]
kind = "integer"
low = 1000000
high = 900000000
default = 100000000
cost = "dyn-app"
"""


class ProgramOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "program".

    Attributes:
        command: the program and its arguments; a word that begins with ./ is in the study's folder.
        answer_s: seconds that an answer may take.
    """

    command: tuple[str, ...]
    answer_s: float = 10.0


class ProgramSystem(Target):
    """The target of kind "program".

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    default_workload: str | None = None
    starter = Starter(
        target={"command": '["python3", "./settings.py"]'},
        parameters=_PARAMETERS,
        workload=lambda: {"kind": '"command"', "argv": '["./my-load"]'},
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, ProgramOptions, "target")
        if not self.options.command or any("\0" in word for word in self.options.command):
            raise StudyError("target.command: must name a program")
        if not 0 < self.options.answer_s <= 600:
            raise StudyError(f"target.answer_s = {self.options.answer_s!r}: must be above 0, and at most 600")
        self.space = Space(name="program")
        self.owner = "program"
        self._kernel: Mapping[str, str] = {}
        self._held = ExitStack()
        self._keeper: Keeper | None = None
        self._pipe: LineProgram | None = None
        self._directory: Path | None = None
        self._current: dict[str, Value] = {}
        self._samples = True

    def adopt(self, space: Space) -> None:
        """Learn the study's parameters; the keeper sets those of the kernel."""
        self.space = space
        self._kernel = {
            one.name: one.native for one in space.parameters if kernel_setting(one.native) is not None
        }
        if self._kernel and self._keeper is None:
            self._keeper = self._held.enter_context(Keeper(self.owner))

    def __enter__(self) -> ProgramSystem:
        """Start the program.

        Raises:
            EnvironmentLacks: it cannot be started.
        """
        self._pipe = LineProgram(self.options.command, self.options.answer_s, "target.command")
        self._held.callback(self._pipe.close)
        self._directory = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="ascar-program-")))
        self._current, self._samples = {}, True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Have the program put its values back, and end it."""
        self._pipe = self._keeper = None
        self._held.close()

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What the program says, and the kernel.

        Raises:
            StageFailed: the program does not answer.
        """
        told = self._ask({"get": True})
        found: dict[str, Value] = {}
        for name in names:
            if name in self._kernel and self._keeper is not None:
                found[name] = self._keeper.knob_read(self._kernel[name]).value
            elif name in told:
                found[name] = cast("Value", told[name])
        return found

    def apply(self, configuration: Configuration) -> Change:
        """Tell the program what differs.

        Raises:
            StageFailed: it refuses a value, or does not answer.
        """
        start_s = time.monotonic()
        wanted = {name: value for name, value in configuration.items() if value != self._current.get(name)}
        category = self.space.change(self._current, configuration).category
        for name in wanted.keys() & self._kernel.keys():
            value = wanted[name]
            assert self._keeper is not None, "a space with settings of the kernel starts the keeper"
            self._keeper.knob_write(self._kernel[name], value if isinstance(value, str) else int(value))
        own = {name: value for name, value in wanted.items() if name not in self._kernel}
        if own:
            self._ask({"set": own})
        self._current = dict(configuration)
        steps = {"settings": time.monotonic() - start_s}
        return Change(tuple(wanted), -1 if category is None else category, steps)

    def sample(self) -> Sample:
        """Counters and gauges, where the program tells them.

        Raises:
            StageFailed: the program does not answer.
        """
        if not self._samples:
            return Sample()
        try:
            told = self._ask({"sample": True})
        except StageFailed:
            if self._pipe is None or not self._pipe.is_open:
                raise
            self._samples = False  # it answers that it knows no such request
            return Sample()
        return Sample(
            cast("Mapping[str, float]", told.get("counters", {})),
            cast("Mapping[str, float]", told.get("gauges", {})),
        )

    @property
    def workspace(self) -> Workspace:
        """A directory that is removed at the end."""
        assert self._directory is not None, "a target is entered before it is used"
        return Workspace(self._directory)

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        return {"target": "program", **describe_machine(), "command": list(self.options.command)}

    def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        assert self._pipe is not None, "a target is entered before it is used"
        told = self._pipe.ask(request)["ok"]
        if not isinstance(told, dict):
            name = self.options.command[0]
            raise StageFailed("change", f"program {name}: answers {told!r:.80}, which is not a table")
        return cast("dict[str, Any]", told)
