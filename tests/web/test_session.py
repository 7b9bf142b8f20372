"""A session of online tuning as it is shown: messages on a real server, the real interface's past."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from explorer_page import serving
from told_session import BEGAN, DEFAULT, SESSION, Told

from ascar.capes.session.files import users
from ascar.errors import EnvironmentLacks
from ascar.messaging import MessageServer, read_settings
from ascar.web import NothingYet, OnlineSubject

PATIENCE_S = 200.0
ASCARD = Path(sys.executable).parent / "ascard"


def until(read, condition):
    """The first thing read for which the condition holds."""
    end = time.monotonic() + PATIENCE_S
    while True:
        found = read()
        if condition(found):
            return found
        assert time.monotonic() < end, found
        time.sleep(0.02)


def heard(subject, told):
    """Wait until the subject listens, and knows what is tuned for."""

    def said():
        told.here()
        return subject.live()

    until(said, lambda it: it["objective"] is not None)


@pytest.fixture
def told(tmp_path):
    with Told(tmp_path / "messages") as made:
        yield made


def test_an_interface_of_a_later_version_is_named(told):
    """The page was empty, and `ascar capes status` waited for ever."""
    reason = "ticks of version = 2: this ascar reads 1, install matching versions"
    with OnlineSubject(SESSION, told.settings) as subject:

        def said():
            told.here()
            told.ticked(1.0, version=2)
            return subject.live()

        until(said, lambda it: it["problem"] == reason)
        words = [sys.executable, "-m", "ascar", "capes", "status", SESSION, "--once"]
        with subprocess.Popen(
            [*words, "--connection", told.file("viewer")], stderr=subprocess.PIPE, text=True
        ) as status:
            until(said, lambda _: status.poll() is not None)
            assert status.stderr is not None
            assert f"session '{SESSION}': {reason}" in status.stderr.read()


def test_a_session_on_the_page(told, explorer):
    page = explorer.page
    for value in range(40):
        told.stored.append((BEGAN - 40 + value, 100.0 + value % 5, DEFAULT))
    with OnlineSubject(SESSION, told.settings) as subject, serving(subject) as url:
        port = int(url.rsplit(":", 1)[1].strip("/"))
        page.goto(url)
        page.get_by_role("heading", name="ascar session shown").wait_for()
        page.get_by_text("The objective was not measured yet.").wait_for()
        heard(subject, told)
        told.ticked(101.0)
        # What was before we came is known: the baseline is from the ticks that the interface has stored.
        page.get_by_role("img", name="41 ticks of the objective, the last 101").wait_for()
        page.get_by_text("baseline: mean, 10 to 90% of its ticks").wait_for()
        assert page.locator("svg.course .band").count() == 1

        told.ticked(140.0, {"vm.dirty_ratio": 45})
        told.learned(epsilon=0.3, prediction_error=0.09)
        told.ticked(141.0, {"vm.dirty_ratio": 45})
        told.learned(wanted={"vm.dirty_ratio": 50}, expected={"mean": 142.0, "low": 138.0, "high": 146.0})
        told.refused("rule: no more than 5 at once", **{"vm.dirty_ratio": 90})
        page.get_by_role("img", name="epsilon over 2 ticks, the last 25%").wait_for()
        page.get_by_role("img", name="prediction error over 2 ticks, the last 8.0%").wait_for()
        page.get_by_text("142 [138, 146]").wait_for()
        page.get_by_text("By reason: rule 1.").wait_for()
        knob = explorer.rows("Knobs")[0]
        assert knob[:5] == ["vm.dirty_ratio", "45", "20", "1 to 90", "50"]
        assert page.get_by_role("img", name="vm.dirty_ratio: changed 1 times").count() == 1
        assert explorer.rows("Refused and failed actions")[0][1:] == [
            "vm.dirty_ratio = 90",
            "refused",
            "rule: no more than 5 at once",
        ]
        assert page.locator("svg.course .change").count() == 1
        assert explorer.serious() == []

        told.ticked(120.0, holding="the service level is broken", missing=["node1"], nodes={})
        page.get_by_text("Every action is refused now: the service level is broken").wait_for()
        page.get_by_text("Nothing comes from node1").wait_for()
        told.here(parts={"learner": {"state": "given up", "pid": None, "restarts": 5}})
        page.get_by_text("Processes: learner given up").wait_for()
        proof = {
            "pairs": 8,
            "gain": 0.31,
            "gain_low": 0.22,
            "gain_high": 0.41,
            "claim": "gain",
            "method": "pairs",
            "baseline_mean": 100.0,
            "tuned_mean": 131.0,
            "baseline_ticks": 80,
            "tuned_ticks": 80,
            "baseline_samples": 80,
            "tuned_samples": 80,
            "confidence": 0.95,
            "p_value": 0.001,
            "difference": 31.0,
            "difference_low": 22.0,
            "difference_high": 41.0,
        }
        told.here(proof=proof)
        page.get_by_text("gain: +31% [+22%, +41%], 8 pairs of phases").wait_for()
        told.ticked(141.0, {"vm.dirty_ratio": 45})
        page.reload()
        page.get_by_role("img", name="45 ticks of the objective, the last 141").wait_for()

    # A new server knows the past from the interface, and the page goes on by itself.
    page.get_by_text("The server does not answer; trying again.").wait_for()
    told.ticked(143.0, {"vm.dirty_ratio": 45})
    with OnlineSubject(SESSION, told.settings) as subject, serving(subject, port):
        heard(subject, told)
        told.ticked(144.0, {"vm.dirty_ratio": 45})
        page.get_by_role("img", name="47 ticks of the objective, the last 144").wait_for()
        page.get_by_text("The server does not answer; trying again.").wait_for(state="hidden")
        assert page.locator("svg.course .change").count() == 3
        page.get_by_text("By reason: rule 1.").wait_for()


def test_a_session_that_ends_and_is_begun_anew(told):
    runs = [True]

    def settings():
        if not runs[0]:
            raise EnvironmentLacks("session 'shown': does not run on this machine")
        return told.settings()

    told.interval_s = 0.05
    with OnlineSubject(SESSION, settings, silence_s=0.3) as subject:
        heard(subject, told)
        told.ticked(1.0)

        def two():  # and again: silence would be a problem
            told.ticked(2.0)
            return subject.live()

        until(two, lambda it: it["now"] == 2.0 and it["problem"] is None)
        told.tick += 1
        runs[0] = False
        away = until(subject.live, lambda it: "does not run" in (it["problem"] or ""))
        assert away["now"] == 2.0  # what was known is still shown
        runs[0] = True

        def again():
            told.here()
            told.ticked(3.0)
            return subject.live()

        until(again, lambda it: it["now"] == 3.0 and it["problem"] is None)
        assert subject.stamp() == 0
        with pytest.raises(NothingYet):
            subject.exploration()


def test_messages_that_are_wrong_break_nothing(told):
    with OnlineSubject(SESSION, told.settings) as subject:
        heard(subject, told)
        for what, document in (
            ("ticks", {"tick": "x", "metrics": [], "setting": 3, "nodes": None}),
            ("ticks", {"tick": 5, "metrics": {"a": "b"}, "setting": {"k": [1]}, "missing": 7}),
            ("outcomes", {"verdict": 1}),
            ("learner", {"epsilon": "much", "tick": 10**30, "expected": {"mean": []}}),
            ("session", {"event": "here", "knobs": [1, {"name": 2}], "parts": [], "interval_s": -1}),
        ):
            told.tell(what, document, "learner" if what == "learner" else "interface")
        told.here()
        told.ticked(7.5)
        found = until(subject.live, lambda it: it["now"] == 7.5)
        json.dumps(found, allow_nan=False)


@pytest.mark.skipif(not ASCARD.exists(), reason="needs ascard")
def test_the_past_of_a_real_interface(tmp_path):
    made = subprocess.run([ASCARD, "interface", "--help"], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("needs ascard with its online half")
    directory = tmp_path / "messages"
    with MessageServer(directory, users(SESSION, "node1")):
        common = f"session = '{SESSION}'\ninterval_s = 0.1\n"
        (tmp_path / "interface.toml").write_text(
            f"{common}grace_s = 0.2\nconnection = '{directory}/interface.toml'\ndatabase = 'replay.sqlite'\n"
            "[[metric]]\nname = 'free_bytes'\nindicators = ['memory.free_bytes']\n"
        )
        (tmp_path / "agent.toml").write_text(
            f"{common}node = 'node1'\nconnection = '{directory}/agent.toml'\n"
            f"state_directory = '{tmp_path}/journal'\n[[collector]]\nkind = 'memory'\n"
        )
        processes = [
            subprocess.Popen(
                [ASCARD, part, "--config", tmp_path / f"{part}.toml"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for part in ("interface", "agent")
        ]
        try:
            shown = said = None
            for _ in range(2):  # the second one was not there when the ticks came
                with (
                    OnlineSubject(SESSION, lambda: read_settings(directory / "viewer.toml")) as subject,
                    Teller(directory) as teller,
                ):

                    def look(subject=subject, teller=teller):
                        teller.say()
                        return subject.live()

                    said = shown
                    shown = until(look, lambda it: len(it["performance"]) >= 8)
            assert said is not None
            ticks = [tick for tick, _ in shown["performance"]]
            assert ticks == sorted(set(ticks))
            assert {tick for tick, _ in said["performance"]} <= set(ticks)
            assert shown["nodes"][0]["name"] == "node1"
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(100)


class Teller:
    """Says what is tuned for, as `ascar capes up` does."""

    def __init__(self, directory):
        from ascar.capes.messages.bus import Bus
        from ascar.messaging import Background

        self._loop = Background()
        self._open = lambda: Bus.open(read_settings(directory / "session.toml"), SESSION, name="session")

    def __enter__(self):
        self._loop.__enter__()
        self._bus = self._loop.call(self._open(), 20)
        return self

    def __exit__(self, *exception):
        self._loop.call(self._bus.__aexit__(None, None, None), 20)
        self._loop.__exit__(None, None, None)

    def say(self):
        document = {"version": 1, "event": "here", "objective": "maximize free_bytes", "interval_s": 0.1}
        self._loop.call(self._bus.publish("session", document), 20)
