"""A study's side of the process in a node in which its trials run: asks, waits, notices that it is gone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from ascar import typed
from ascar.errors import StageFailed
from ascar.systems.keeper_process import KeeperProcess
from ascar.systems.trial_messages import TrialAnswer, TrialRequest, continued, decode_answer, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ascar.nodes import Node
    from ascar.results.measurement import Series

_T = TypeVar("_T")
_STAGES = {"apply": "change", "read": "change", "prepare": "fill", "run": "load"}


class _Lines(KeeperProcess):
    """Lines to and from the process; nothing that is lost with it is left to put back."""

    reply_bytes_max = 16 << 20  # the readings of hours

    def __init__(self, words: list[str], node: Node) -> None:
        super().__init__(words, node)
        self._name = node.name

    def lost(self, why: str) -> StageFailed:
        self._process.kill()  # the program here; the one there ends with its node
        self.close()
        return StageFailed("node", f"{self._name}: {why}", self._said)


class NodeWorker:
    """The process of a study's trials in a node.

    Args:
        node: up.
        words: the program there.

    Raises:
        EnvironmentLacks: the node is not up.

    Attributes:
        has_failed: whether nobody knows any more how the process is, so that its node has to end.
    """

    def __init__(self, node: Node, words: Sequence[str]) -> None:
        self.has_failed = False
        self._lines = _Lines(list(words), node)

    def ask(
        self,
        ask: str,
        given: Mapping[str, Any],
        limit_s: float,
        kind: type[_T],
        look: Callable[[Mapping[str, Series]], bool] | None = None,
    ) -> _T:
        """Have something done there.

        Args:
            ask: what.
            given: what it needs.
            limit_s: it may take so long; what takes longer has failed.
            kind: the answer's.
            look: told of a running load's readings; True ends it.

        Raises:
            AscarError: as it was raised there.
            StageFailed: the process is gone, silent, or cannot be understood.
        """
        stage, end_s = _STAGES.get(ask, ask), time.monotonic() + limit_s
        self.has_failed = True  # until it has answered
        looked: dict[str, Series] = {}
        try:
            answer = self._heard(TrialRequest(ask, dict(given)), end_s)
            while answer.look is not None:
                looked = continued(looked, answer.kept, answer.look)
                ends = look is not None and look(looked)
                answer = self._heard(TrialRequest("look", {"ends": ends}), end_s)
            value = None if answer.fault is not None else typed.decode(answer.ok, kind)
        except msgspec.MsgspecError as error:
            raise StageFailed(stage, f"the node answers what cannot be understood: {error}") from error
        except StageFailed as error:
            said = error.message.removeprefix(f"{error.stage}: ")
            raise StageFailed(stage, f"node {said} while it was asked to {ask}", error.stderr) from error
        self.has_failed = answer.fault is not None and not answer.fault.is_ours
        if answer.fault is not None:
            answer.fault.throw(stage)
        return cast("_T", value)

    def close(self) -> None:
        """End it; its node has ended, or ends it."""
        self._lines.close()

    def _heard(self, request: TrialRequest, end_s: float) -> TrialAnswer:
        self._lines.send(encode(request))
        return decode_answer(self._lines.receive(end_s))
