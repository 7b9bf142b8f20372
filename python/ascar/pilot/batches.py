"""Readings of one or several nodes to means over batches of time, one reading after another."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.errors import InputError

if TYPE_CHECKING:
    from ascar.pilot.nodes import How

# A node that is so many batches behind the foremost one is not waited for.
_BEHIND_MAX = 4
# A batch with a smaller share of a node's usual readings is none: the node was silent.
_READINGS_SHARE_MIN = 0.5
_VALUE_MAX = 1e100
_BATCHES_MAX = 2**53


@dataclass(frozen=True, slots=True)
class Batch:
    """The mean over one batch of time.

    Attributes:
        index: the batch's number, counted from the first reading of all.
        value: the mean of all nodes together.
    """

    index: int
    value: float


@dataclass(slots=True)
class _Node:
    at_s: float = -math.inf
    index: int = -1
    total: float = 0.0
    count: int = 0
    usual: float = 0.0
    accepted: int = 0


@dataclass(slots=True)
class Batches:
    """Brings readings together. Memory: a few numbers a node.

    Attributes:
        batch_s: seconds of a batch.
        nodes: names of those whose readings come.
        how: "sum" for what adds up over nodes (throughput), "mean" for what does not (latency).
        start_s: the time of the first reading, at which the first batch begins; None before it.
        left_out: batches in which some node was not heard, or not enough.
    """

    batch_s: float
    nodes: tuple[str, ...] = ("",)
    how: How = "sum"
    start_s: float | None = None
    left_out: int = 0
    _states: dict[str, _Node] = field(default_factory=dict[str, _Node], repr=False)
    _pending: dict[int, dict[str, float]] = field(default_factory=dict[int, dict[str, float]], repr=False)
    _next: int = 0

    def __post_init__(self) -> None:
        """Nothing was heard of any node."""
        self._states = {name: _Node() for name in self.nodes}

    def add(self, at_s: float, value: float, node: str = "") -> list[Batch]:
        """Take in one reading.

        Args:
            at_s: the time of the reading, in seconds on a clock that the nodes share.
            value: the reading.
            node: the node that took it.

        Returns:
            The batches that are complete now, in order; mostly none.

        Raises:
            InputError: the time or the value is not a number, or a node's time runs backwards.
        """
        state = self._states[node]
        whose = f" of node {node!r}" if node else ""
        if not math.isfinite(value) or abs(value) > _VALUE_MAX:
            raise InputError(f"a reading{whose} = {value}: must be a finite number, at most {_VALUE_MAX:g}")
        if not math.isfinite(at_s) or at_s < state.at_s:
            raise InputError(
                f"the time{whose} = {at_s!r} s after {state.at_s:g} s: must be a number that never decreases"
            )
        if self.start_s is None:
            self.start_s = at_s
        state.at_s = at_s
        index = math.floor((at_s - self.start_s) / self.batch_s)
        if index > _BATCHES_MAX:
            raise InputError(f"the time{whose} = {at_s:g} s is {index:g} batches after the first; correct it")
        if index > state.index:
            self._close(node, state)
            state.index, state.total, state.count = index, 0.0, 0
        state.total += value
        state.count += 1
        return self._complete()

    def close(self) -> list[Batch]:
        """What is complete when no more readings come."""
        for name, state in self._states.items():
            self._close(name, state)
            state.index += 1
        return self._complete()

    def _close(self, name: str, state: _Node) -> None:
        """A node's batch is over: keep its mean, unless the node was mostly silent."""
        if state.count == 0 or state.index < self._next:
            return
        enough = state.count >= _READINGS_SHARE_MIN * state.usual
        if enough:
            self._pending.setdefault(state.index, {})[name] = state.total / state.count
        # A node whose readings become rarer for good is not silent: what is usual follows.
        state.accepted = min(state.accepted + 1, 100)
        state.usual += (state.count - state.usual) / state.accepted
        state.count = 0

    def _complete(self) -> list[Batch]:
        if not self._pending:
            return []
        slowest = min(state.index for state in self._states.values())
        foremost = max(state.index for state in self._states.values())
        done: list[Batch] = []
        for index in sorted(self._pending):
            heard = self._pending[index]
            if len(heard) == len(self.nodes):
                total = math.fsum(heard.values())
                done.append(Batch(index, total / len(self.nodes) if self.how == "mean" else total))
            elif slowest <= index and foremost <= index + _BEHIND_MAX:
                break
            self.left_out += index - self._next + (len(heard) < len(self.nodes))
            self._next = index + 1
            del self._pending[index]
        return done
