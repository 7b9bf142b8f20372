"""Optimizers whose state moves with each evaluation, and that can be rebuilt from their history."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.errors import Exhausted

if TYPE_CHECKING:
    from ascar.optimizers import Evaluation
    from ascar.optimizers.ledger import ConfigurationRecord, Ledger
    from ascar.space import Configuration


class Stateful:
    """Ask/tell for searches that walk: a subclass says how it proposes, and what it makes of an evaluation.

    Making a proposal may move the search (a generator is keyed by a counter, a child joins a generation).
    A search that is told its history must therefore make the proposals that it made then, before it learns
    what became of them: being told of a configuration that is not out is preceded by a proposal, and if it
    is that configuration, the proposal counts as asked for.
    """

    ledger: Ledger
    _ready: Configuration | None = None

    def ask(self) -> Configuration:
        """The next configuration.

        Raises:
            Exhausted: every valid configuration is known or out.
        """
        self._prepare()
        assert self._ready is not None, "prepared, or Exhausted was raised"
        ready, self._ready = self._ready, None
        return self.ledger.take(ready)

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration."""
        configuration = evaluation.configuration
        if configuration not in self.ledger.pending:
            with suppress(Exhausted):
                self._prepare()
            if self._ready == configuration:
                self._ready = None
        known = configuration in self.ledger.records and self.ledger.records[configuration].seen
        record = self.ledger.tell(evaluation)
        if record.seen and not known:
            self.learn(configuration, record)

    def propose(self) -> Configuration:
        """A fresh configuration.

        Raises:
            Exhausted: every valid configuration is known or out.
        """
        raise NotImplementedError

    def learn(self, configuration: Configuration, record: ConfigurationRecord) -> None:
        """Something became known of a configuration of which nothing was."""
        raise NotImplementedError

    def _prepare(self) -> None:
        if self._ready is None or not self.ledger.fresh(self._ready):
            self._ready = None
            self._ready = self.propose()
