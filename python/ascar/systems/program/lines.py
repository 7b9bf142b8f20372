"""A program that is asked and told by lines of JSON: it reads a request a line, and answers each with a line.

It puts its own values back for `{"restore": true}` and when its input ends (docs/howto/program.md).
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ascar.errors import StageFailed
from ascar.program.lines import LineProgram
from ascar.systems import Sample

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration, Space, Value
    from ascar.systems.keeper import Hold
    from ascar.systems.program.options import ProgramOptions


class SpokenProgram:
    """The program of a study with `command`.

    Args:
        options: the `[target]` table.
    """

    def __init__(self, options: ProgramOptions) -> None:
        self.options = options
        self._held = ExitStack()
        self._pipe: LineProgram | None = None
        self._directory: Path | None = None
        self._samples = True

    def adopt(self, space: Space) -> None:
        """The program knows its parameters."""

    def enter(self, owner: str, *, keeps: bool | Hold) -> None:  # noqa: ARG002 - it puts its values back itself
        """Start the program.

        Raises:
            EnvironmentLacks: it cannot be started.
        """
        self._pipe = LineProgram(self.options.command, self.options.answer_s, "target.command")
        self._held.callback(self._pipe.close)
        self._directory = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="ascar-program-")))
        self._samples = True

    def leave(self, error: BaseException | None = None) -> None:  # noqa: ARG002 - nothing was to stay
        """Have the program put its values back, and end it."""
        self._pipe = None
        self._held.close()

    @property
    def directory(self) -> Path:
        """A directory that is removed at the end."""
        assert self._directory is not None, "a target is entered before it is used"
        return self._directory

    def read(self, names: Collection[str]) -> dict[str, Value]:
        """What the program says.

        Raises:
            StageFailed: the program does not answer.
        """
        told = self._ask({"get": True})
        return {name: cast("Value", told[name]) for name in names if name in told}

    def apply(self, changed: Collection[str], configuration: Configuration) -> Mapping[str, float]:
        """Tell the program what differs.

        Raises:
            StageFailed: it refuses a value, or does not answer.
        """
        wanted = {name: value for name, value in configuration.items() if name in changed}
        if wanted:
            self._ask({"set": wanted})
        return {}

    def await_ready(self, limit_s: float) -> None:
        """It answers once it is."""

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

    def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        assert self._pipe is not None, "a target is entered before it is used"
        told = self._pipe.ask(request)["ok"]
        if not isinstance(told, dict):
            name = self.options.command[0]
            raise StageFailed("change", f"program {name}: answers {told!r:.80}, which is not a table")
        return cast("dict[str, Any]", told)
