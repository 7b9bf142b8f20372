"""Signals end what runs on an event loop in good order, wherever they find the interpreter."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ascar.messaging import Background, run_interruptible, run_until_asked

IN_THE_WORST_MOMENT = """
import asyncio, os, signal, sys
from asyncio.events import Handle
from ascar.cli.interrupts import interruptible
from ascar.messaging import run_interruptible

run, told = Handle._run, []

def interrupted(handle):
    # The loop has taken what wakes the task from its queue, and has not run it yet.
    if told == ["soon"]:
        told.append("asked")
        os.kill(os.getpid(), signal.{name})
    run(handle)

async def work():
    Handle._run = interrupted
    future = asyncio.get_running_loop().create_future()
    future.set_result(None)
    told.append("soon")
    await asyncio.sleep(0)
    await future
    await asyncio.sleep(60)

try:
    with interruptible():
        run_interruptible(work())
except KeyboardInterrupt:
    sys.exit(130 if told == ["soon", "asked"] else 1)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_between_two_steps_of_the_loop_ends_it(name):
    done = subprocess.run(
        [sys.executable, "-c", IN_THE_WORST_MOMENT.format(name=name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_what_is_interrupted_cleans_up():
    cleaned = []

    async def work():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.3)
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.3)
            cleaned.append(True)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run_interruptible(work())
    assert cleaned == [True]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_third_signal_gives_up_waiting():
    code = """
import asyncio, os, signal
from ascar.messaging import run_interruptible

async def work():
    while True:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
        os.kill(os.getpid(), signal.SIGINT)

run_interruptible(work())
"""
    start_s = time.monotonic()
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 130
    assert time.monotonic() - start_s < 50


def test_results_and_errors_are_those_of_the_work():
    async def gives():
        await asyncio.sleep(0)
        return 7

    async def fails():
        await asyncio.sleep(0)
        raise LookupError("its own")

    assert run_interruptible(gives()) == 7
    with pytest.raises(LookupError, match="its own"):
        run_interruptible(fails())


def test_what_ends_by_itself_is_told_by_the_event():
    async def work(asked):
        assert not asked.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        await asked.wait()
        return "ended"

    assert run_until_asked(work) == "ended"


@pytest.mark.timeout(60)
def test_what_is_left_behind_and_swallows_a_cancellation_does_not_keep_it_from_ending():
    """So a learner went on for ever whose server had been killed: the client's reconnecting swallowed one."""
    left = []

    async def reconnecting():
        for _ in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(600)
        await asyncio.sleep(600)

    async def work(asked):
        left.append(asyncio.create_task(reconnecting()))
        await asyncio.sleep(0.01)
        return asked.is_set()

    assert run_until_asked(work) is False
    assert left.pop().cancelled()
    with Background() as loop:
        loop.start(reconnecting())
        loop.call(asyncio.sleep(0.01), 10)
    assert not [one for one in threading.enumerate() if one.name == "messages"]


def test_ignored_signals_stay_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        async def work():
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.05)
            return "untouched"

        assert run_interruptible(work()) == "untouched"
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_cannot_begin_is_closed():
    async def work():
        await asyncio.sleep(0)

    unbegun = work()
    with ThreadPoolExecutor() as pool, pytest.raises((RuntimeError, ValueError)):
        pool.submit(run_interruptible, unbegun).result()  # signals are heard in the main thread alone
    assert inspect.getcoroutinestate(unbegun) == inspect.CORO_CLOSED
