from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from ascar.cli import main
from ascar.cli.interrupts import interruptible


def _ask(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def _work(cleaned: list[str], asked_meanwhile: int) -> None:
    """Work that is asked to stop, and asked again while it cleans up."""
    try:
        _ask(signal.SIGTERM)
    finally:
        cleaned.append("begun")
        for _ in range(asked_meanwhile):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
        cleaned.append("done")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_to_stop_interrupts(number):
    with pytest.raises(KeyboardInterrupt), interruptible():
        _ask(number)


def test_a_second_signal_does_not_cut_the_clean_up_short(capfd):
    cleaned: list[str] = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        _work(cleaned, asked_meanwhile=1)
    assert cleaned == ["begun", "done"]
    assert "putting everything back" in capfd.readouterr().err


class _AsksAtItsEnd:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(10_000):  # the handler is run in here
            pass


def test_a_signal_where_nothing_can_be_raised_interrupts_a_moment_later(capfd):
    hook = sys.unraisablehook
    cleaned: list[str] = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        try:
            _AsksAtItsEnd()
            time.sleep(60)
        finally:
            cleaned.append("begun")
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            cleaned.append("done")
    assert cleaned == ["begun", "done"]
    assert capfd.readouterr().err.splitlines() == [
        "putting everything back; press ^C again to leave that to the keeper"
    ]
    assert sys.unraisablehook is hook


def test_a_signal_in_the_middle_of_an_import_interrupts_as_soon_as_it_is_over(tmp_path, monkeypatch):
    """Compiled modules clear what is raised while they are made; here a module does."""
    (tmp_path / "clears.py").write_text(
        "import contextlib, os, signal\n"
        "with contextlib.suppress(BaseException):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    sum(range(100_000))\n"
        "is_made = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt), interruptible():
        import clears  # type: ignore[import-not-found]

        assert clears.is_made
        time.sleep(60)


def test_the_third_signal_ends_an_import_that_hangs(tmp_path, monkeypatch):
    (tmp_path / "hangs.py").write_text(
        "import os, signal, time\n"
        "for _ in range(3):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(0.05)\n"
        "time.sleep(60)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    begun_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interruptible():
        import hangs  # noqa: F401  # type: ignore[import-not-found]
    assert time.monotonic() - begun_s < 30


def test_of_several_signals_in_an_import_none_comes_after_the_command(tmp_path, monkeypatch):
    (tmp_path / "several.py").write_text(
        "import os, signal\n"
        "for number in (signal.SIGHUP, signal.SIGTERM):\n"
        "    os.kill(os.getpid(), number)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    heard: list[int] = []
    before = {number: signal.signal(number, lambda one, _: heard.append(one)) for number in (1, 15)}
    try:
        for _ in range(20):
            sys.modules.pop("several", None)
            with suppress(KeyboardInterrupt), interruptible():
                import several  # noqa: F401  # type: ignore[import-not-found]
            time.sleep(0.03)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert heard == []


def test_a_signal_that_is_heard_again_before_its_sender_goes_on_is_not_lost(tmp_path, monkeypatch):
    """As on a machine so busy that the thread that sends it again stands still when it has."""
    (tmp_path / "slow.py").write_text(
        "import os, signal, time\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "end_s = time.monotonic() + 0.3\n"
        "while time.monotonic() < end_s:\n"
        "    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    send = signal.pthread_kill

    def stand_still(thread, number):
        send(thread, number)
        time.sleep(0.05)

    monkeypatch.setattr(signal, "pthread_kill", stand_still)
    begun_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interruptible():
        import slow  # noqa: F401  # type: ignore[import-not-found]

        time.sleep(30)
    assert time.monotonic() - begun_s < 20


def test_a_command_that_is_run_by_an_import_is_interrupted_like_others(tmp_path, monkeypatch):
    (tmp_path / "runs.py").write_text(
        "import os, signal, time\n"
        "from ascar.cli.interrupts import interruptible\n"
        "told = False\n"
        "try:\n"
        "    with interruptible():\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    told = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import runs  # type: ignore[import-not-found]

    assert runs.told


def test_other_exceptions_that_cannot_be_raised_are_told_as_before(monkeypatch):
    told: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: told.append(lost.exc_type))

    class Fails:
        def __del__(self):
            raise LookupError

    with interruptible():
        Fails()
    assert told == [LookupError]


def test_a_signal_in_the_middle_of_a_line_is_no_crash(monkeypatch):
    def reentrant(line):
        raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stderr>'>")

    monkeypatch.setattr("ascar.cli.interrupts.say", reentrant)
    cleaned: list[str] = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        _work(cleaned, asked_meanwhile=1)
    assert cleaned == ["begun", "done"]


def test_a_third_signal_gives_up():
    cleaned: list[str] = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        _work(cleaned, asked_meanwhile=2)
    assert cleaned == ["begun"]


def test_signals_are_as_before_afterwards_and_ignored_ones_stay_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupt_out_of_code_made_from_text_is_a_status_too(tmp_path):
    """As one while a dataclass is made: of that the interpreter keeps a note, and acts on it at its end."""
    (tmp_path / "inside.py").write_text(
        "import sys\n"
        "import ascar.cli.app\n"
        "from ascar.cli import main\n"
        "ascar.cli.app.app = lambda *_, **__: exec('raise KeyboardInterrupt')\n"
        "sys.exit(main(['doctor']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "inside"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "error: interrupted; everything was put back\n")


def test_a_module_that_is_interrupted_while_it_begins_is_an_interrupt(monkeypatch, capfd):
    """As modules made with pybind11 tell it."""

    def command(*_, **__):
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr("ascar.cli.app.app", command)
    assert main(["doctor"]) == 130
    assert capfd.readouterr().err == "error: interrupted; nothing was done\n"


def test_a_reminder_just_before_a_wait_is_followed_by_another(tmp_path, monkeypatch):
    """The first only sets the flag, as one that comes just before the system call does."""
    (tmp_path / "short.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    monkeypatch.syspath_prepend(tmp_path)
    send, seen = signal.pthread_kill, []

    def too_early(thread, number):
        seen.append(number)
        if len(seen) > 1:
            send(thread, number)
        else:
            _thread.interrupt_main(number)

    monkeypatch.setattr(signal, "pthread_kill", too_early)
    begun_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interruptible():
        import short  # noqa: F401  # type: ignore[import-not-found]

        time.sleep(30)
    assert time.monotonic() - begun_s < 20
    assert len(seen) > 1


def test_a_reminder_is_no_ask(capfd):
    """However many come, the clean-up goes on, and nothing is said."""
    cleaned = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)
        finally:
            for _ in range(5):
                os.kill(os.getpid(), signal.SIGURG)
                time.sleep(0.01)
            cleaned.append("done")
    assert cleaned == ["done"]
    assert capfd.readouterr().err == ""


def test_a_signal_that_nobody_sent_again_ends_nothing():
    with interruptible():
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGURG)
            time.sleep(0.01)
