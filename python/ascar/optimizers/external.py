"""An optimizer of one's own, in any language: it is asked and told by lines of JSON.

[optimizer]
kind = "external"
command = ["python3", "./my_optimizer.py"]      # a word that begins with ./ is in the study's folder

ascar writes a request a line, and the program answers each with a line:

    {"start": {"space": ..., "seed": 0, "configurations": [...]}}    {"ok": {}}
    {"ask": true}                                                    {"ok": {"depth": 32}, "reason": "..."}
    {"tell": {"configuration": ..., "state": "complete", "loss": 1.5, ...}}    {"ok": {}}

`space` is what `ascar space STUDY --json` prints; a lower loss is better. `{"ok": null}` ends the search. A
configuration that the space does not have is told to the program as refused, and it is asked again.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, cast

from ascar.errors import Exhausted, SpaceError, StageFailed, StudyError
from ascar.optimizers.ledger import Ledger
from ascar.optimizers.options import OptimizerTable
from ascar.program.lines import LineProgram
from ascar.results.trial import Origin
from ascar.space import space_to_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.optimizers import Evaluation
    from ascar.space import Configuration, Space

_REFUSALS_MAX = 10


class ExternalOptions(OptimizerTable, frozen=True, forbid_unknown_fields=True):
    """`[optimizer]` with kind = "external".

    Attributes:
        command: the program and its arguments; a word that begins with ./ is in the study's folder.
        answer_s: seconds that an answer may take.
    """

    command: tuple[str, ...]
    answer_s: float = 60.0

    def ranges(self) -> dict[str, tuple[float, float]]:
        """See `OptimizerTable.ranges`."""
        return {"answer_s": (0.01, 3600.0)}


class External:
    """A program that proposes. It is started when it is first asked, and told everything that is known then.

    Args:
        space: the space to search.
        seed: the seed of the random choices.
        start: configurations to propose first.
        options: the study's `[optimizer]` table without its kind.

    Attributes:
        reason: why the program proposed its last configuration; empty where it does not say.
        origin: what the history says of its proposals.

    Raises:
        StudyError: an option is missing, unknown or out of range.
        SpaceError: a start configuration is not valid.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        start: tuple[Configuration, ...] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.options = ExternalOptions.read(options)
        if not self.options.command or any("\0" in word for word in self.options.command):
            raise StudyError("optimizer.command: must name a program")
        self.ledger = Ledger(space, seed, start)
        self.reason = ""
        self.origin = Origin.EXTERNAL
        self._space, self._seed, self._start = space, seed, start
        self._program: LineProgram | None = None
        self._untold: list[Evaluation] = []

    def ask(self) -> Configuration:
        """The next configuration; start configurations come first.

        Raises:
            Exhausted: the program has nothing left to propose, or it does not work any more.
            EnvironmentLacks: it cannot be started.
        """
        if (started := self.ledger.started()) is not None:
            return self.ledger.take(started)
        try:
            self._tell_all()
            for _ in range(_REFUSALS_MAX):
                answer = self._running().ask({"ask": True})
                if answer["ok"] is None:
                    raise Exhausted("the external optimizer has nothing left to propose")
                found = self._valid(answer["ok"])
                if found is not None:
                    self.reason = str(answer.get("reason", ""))[:200]
                    return self.ledger.take(found)
        except StageFailed as error:
            raise Exhausted(f"the external optimizer does not work any more: {error.message}") from error
        raise Exhausted(f"the external optimizer proposed {_REFUSALS_MAX} times what the space does not have")

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration; the program hears it before it is asked again."""
        self.ledger.tell(evaluation)
        self._untold.append(evaluation)

    def _tell_all(self) -> None:
        untold, self._untold = self._untold, []
        for one in untold:
            told = {
                "configuration": dict(one.configuration),
                "state": one.state.value,
                "loss": one.loss,
                "standard_error": one.standard_error,
                "seconds": one.seconds,
                "losses": list(one.losses),
            }
            self._running().ask({"tell": told})

    def _valid(self, proposed: object) -> Configuration | None:
        """The configuration, or None once the program was told that there is none such."""
        values: dict[str, Any] = cast("dict[str, Any]", proposed) if isinstance(proposed, dict) else {}
        try:
            return self._space.validate(values)
        except SpaceError as error:
            refused = {"configuration": values, "state": "refused", "error": error.message}
            self._running().ask({"tell": refused})
            return None

    def _running(self) -> LineProgram:
        if self._program is None:
            program = LineProgram(self.options.command, self.options.answer_s, "optimizer.command")
            weakref.finalize(self, program.close)
            self._program = program
            start = {
                "space": space_to_document(self._space),
                "seed": self._seed,
                "configurations": [dict(one) for one in self._start],
            }
            program.ask({"start": start})
        return self._program
