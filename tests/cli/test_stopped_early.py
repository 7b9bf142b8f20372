"""`ascar tune` that is interrupted while it reduces what is proven."""

from __future__ import annotations

import json
import os
import signal

import pytest

from ascar.campaign import Campaign
from ascar.results.trial import Purpose
from studies import HELPS_TOGETHER


@pytest.fixture
def signalled(monkeypatch):
    """A real SIGINT before the n-th run of the reduction."""

    def at(number: int) -> None:
        made = 0
        attempt = Campaign.attempt

        def attempted(self, proposal, purpose, **options):
            nonlocal made
            made += purpose is Purpose.REDUCE
            if made == number:
                os.kill(os.getpid(), signal.SIGINT)
            return attempt(self, proposal, purpose, **options)

        monkeypatch.setattr(Campaign, "attempt", attempted)

    return at


def changed(configuration):
    return {name for name, value in configuration.items() if value != 0}


def test_the_command_reports_what_is_proven_and_exits_with_3(ascar, tmp_path, signalled, monkeypatch):
    study = tmp_path / "study.toml"
    study.write_text(HELPS_TOGETHER)
    with monkeypatch.context():
        signalled(15)
        done = ascar("tune", study, "--json")
    assert done.status == 3
    assert f"go on with `ascar tune {study} --resume`" in done.err
    document = json.loads(done.out)
    assert document["verdict"]["kind"] == "improved"
    assert {"p2", "p5"} <= changed(document["recommended"])
    assert "the run was stopped before" in document["parsimony"]["note"]
    shown = ascar("history", "show", str(document["run_id"]), "--json")
    assert json.loads(shown.out)["outcome"]["recommended"] == document["recommended"]
    monkeypatch.undo()


def test_a_comparison_that_is_interrupted_names_the_command_that_goes_on(ascar, tmp_path, monkeypatch):
    study = tmp_path / "study.toml"
    study.write_text(HELPS_TOGETHER)
    run = json.loads(ascar("tune", study, "--json").out)["run_id"]

    def interrupted(self, proposal, purpose, **options):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Campaign, "attempt", interrupted)
    done = ascar("verify", run, "--trial", "3", "--against", "2")
    assert done.status == 130
    assert f"go on with `ascar verify {run} --trial 3 --against 2`" in done.err
