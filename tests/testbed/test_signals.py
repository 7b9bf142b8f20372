"""Signals of a load on their way to a node: what asks it to end passes, and nothing else does."""

from __future__ import annotations

import signal
import socket

import pytest

from ascar.testbed import relay
from ascar.testbed.frames import KILLS, FrameKind, FrameReader, frame, status, status_of

START = frame(0, FrameKind.START, KILLS + b"\0true")


def receive(*frames: bytes) -> list[tuple[int, FrameKind, bytes]]:
    """What the node gets of what a program here says."""
    one, other = socket.socketpair()
    with one, other:
        return FrameReader().feed(relay._Client(one, 5).receive(b"".join(frames)))


@pytest.mark.parametrize("number", [signal.SIGINT, -signal.SIGINT, signal.SIGTERM])
def test_what_asks_a_load_to_end_passes(number: int) -> None:
    (_, (channel, kind, content)) = receive(START, frame(0, FrameKind.SIGNAL, status(number)))
    assert (channel, kind, status_of(content)) == (5, FrameKind.SIGNAL, number)


@pytest.mark.parametrize("content", [status(9), status(0), status(-1), status(10**6), b"", b"12345"])
def test_no_other_signal_does(content: bytes) -> None:
    with pytest.raises(ValueError, match="does not say|a number of"):
        receive(START, frame(0, FrameKind.SIGNAL, content))


def test_nobody_is_sent_one_before_it_is_started() -> None:
    with pytest.raises(ValueError, match="does not say"):
        receive(frame(0, FrameKind.SIGNAL, status(signal.SIGINT)))
