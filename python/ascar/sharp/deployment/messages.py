"""What manager and controllers say to each other (docs/messaging.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ascar.messaging import Message

if TYPE_CHECKING:
    from collections.abc import Iterable


class Find(Message, frozen=True, tag="rules.find/1"):
    """Who is there?

    Attributes:
        workload: the workload whose controllers answer; None: all controllers.
    """

    workload: str | None = None


class Here(Message, frozen=True, tag="rules.here/1"):
    """A controller.

    Attributes:
        controller: the controller's name, a token.
        workload: the workload of its client, a token.
        instance: the id of this process; another id says that the controller was started anew.
        rules: id of the rules in force; None: none are.
    """

    controller: str
    workload: str
    instance: str
    rules: str | None = None


class LoadRules(Message, frozen=True, tag="rules.load/1"):
    """Follow these rules on trial: unless they are kept in time, put back what was in force.

    Attributes:
        rules: id of the rule set.
        text: the text of the rule file, without statistics.
        within_s: the length of the trial.
    """

    rules: str
    text: str
    within_s: float


class Renew(Message, frozen=True, tag="rules.renew/1"):
    """The trial of these rules goes on for so long from now; nothing changes."""

    rules: str
    within_s: float


class Keep(Message, frozen=True, tag="rules.keep/1", omit_defaults=True):
    """The trial of these rules is over: they stay in force. Of rules that are kept, the time begins anew.

    Attributes:
        rules: id of the rule set.
        within_s: the time after which no rules are in force; None: they stay.
    """

    rules: str
    within_s: float | None = None


class Back(Message, frozen=True, tag="rules.back/1"):
    """These rules are not to be in force: what was before them is."""

    rules: str


class Stop(Message, frozen=True, tag="rules.stop/1"):
    """No rules any more: what the system does by itself."""


class InForce(Message, frozen=True, tag="rules.in-force/1"):
    """The answer to what changes rules.

    Attributes:
        controller: the controller that answers.
        rules: id of those in force now, on trial or kept; None: none are.
    """

    controller: str
    rules: str | None = None


class Show(Message, frozen=True, tag="rules.show/1"):
    """What is in force, and how was it used?"""


class RuleUse(Message, frozen=True, tag="rules.shown/1", omit_defaults=True):
    """Rules with their use.

    Attributes:
        controller: the controller that answers.
        workload: the workload of its client.
        rules: id of those in force; None: none are.
        on_trial: whether they have not been kept yet.
        text: the text of the rule file, with statistics since the rules were put in force; None without
            rules.
        left_s: the time after which they end by themselves; None: they stay.
    """

    controller: str
    workload: str
    rules: str | None = None
    on_trial: bool = False
    text: str | None = None
    left_s: float | None = None


def least_left_s(shown: Iterable[RuleUse]) -> float | None:
    """The time after which the first controller's rules end by themselves; None: all stay."""
    return min((max(0.0, one.left_s) for one in shown if one.left_s is not None), default=None)


class StartRecording(Message, frozen=True, tag="rules.record/1"):
    """Write down what the client does from now on, for so many seconds of the system's time."""

    seconds: float


class RecordingState(Message, frozen=True, tag="rules.recording/1"):
    """It is being written down.

    Attributes:
        controller: the controller that answers.
        number: the number of the recording.
    """

    controller: str
    number: int


class Read(Message, frozen=True, tag="rules.read/1"):
    """What was written down?

    Attributes:
        number: the number of the recording.
        part: the number of the part, from 0.
    """

    number: int
    part: int


class RecordingPart(Message, frozen=True, tag="rules.part/1"):
    """A part of a recording: operations in the order of their beginning, a column each.

    Attributes:
        controller: the controller that answers.
        parts: the number of parts; None: the recording is not over, and the rest says nothing.
        what: operations of threads, or requests that went to servers.
        seconds: the beginning of each operation, by a clock that all controllers share.
        operation: the type of each operation, a number of `ascar.features.Operation`.
        thread: the thread of each operation, or the stream of each request; the numbers are this controller's
            own.
        file: the file of each operation, by a number that the whole system shares.
        offset_bytes: the offset of each operation's first byte.
        size_bytes: moved.
        latency_s: the latency of each operation; None while it is under way.
        begin_s: the beginning of the recording, by the same clock.
        end_s: the end of the recording; operations that began then or later are not known.
        waiting_mean: requests of a stream that waited for its window, over time.
        dirty_bytes: the dirty bytes in write-back caches, over time.
        dirty_limit_bytes: the most dirty bytes that these caches may hold.
    """

    controller: str
    parts: int | None = None
    what: Literal["operations", "requests"] = "operations"
    seconds: tuple[float, ...] = ()
    operation: tuple[int, ...] = ()
    thread: tuple[int, ...] = ()
    file: tuple[int, ...] = ()
    offset_bytes: tuple[int, ...] = ()
    size_bytes: tuple[int, ...] = ()
    latency_s: tuple[float | None, ...] = ()
    begin_s: float = 0.0
    end_s: float = 0.0
    waiting_mean: float = 0.0
    dirty_bytes: float = 0.0
    dirty_limit_bytes: float = 0.0


class Listen(Message, frozen=True, tag="rules.listen/1"):
    """On a controller's own socket: say at the end of each tick that you are there, from now on."""


class Beat(Message, frozen=True, tag="rules.beat/1"):
    """A controller at the end of a tick.

    Attributes:
        controller: the controller's name.
        workload: the workload of its client.
        instance: the id of this process.
        rules: id of the rules that were in force all through the tick; None: none were, or they changed.
        tick: number of the tick.
        tick_s: the length of the tick.
        mb_per_s: the client's throughput during the tick, reads and writes.
    """

    controller: str
    workload: str
    instance: str
    tick: int
    tick_s: float
    mb_per_s: float
    rules: str | None = None
