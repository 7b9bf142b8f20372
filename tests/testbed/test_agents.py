"""What an agent of a testbed is given: its file, and no more rights than its own."""

from __future__ import annotations

import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ascar.errors import StudyError
from ascar.testbed.agents import AgentKnob, AgentTable, AgentWindows, agent_text, check_text, users

AGENT = AgentTable(
    "client1",
    contact_s=5,
    knobs=(AgentKnob("vm.dirty_ratio", 5, 60), AgentKnob("block.nbd15.scheduler", choices=("none", "bfq"))),
    windows=AgentWindows(("nbd15",), maximum=64),
)


def test_its_file_says_what_its_table_does_and_is_allowed(ascard: Path) -> None:
    del ascard
    text = agent_text(AGENT, "bed", "a word", None)
    found = tomllib.loads(text)
    assert (found["session"], found["node"], found["contact_s"]) == ("bed", "client1", 5)
    assert found["messaging"] == {
        "url": "nats://127.0.0.1:4222",
        "user": "agent-client1",
        "password": "a word",
    }
    assert found["knob"][1] == {"name": "block.nbd15.scheduler", "choices": ["none", "bfq"]}
    assert found["windows"] == {"devices": ["nbd15"], "minimum": 4, "maximum": 64, "workload": "blocks"}
    with TemporaryDirectory() as folder:
        check_text("agent[0] (client1)", text, Path(folder))
        assert list(Path(folder).iterdir()) == [], "the password does not stay"


def test_a_knob_that_nobody_has_is_refused_in_one_line(ascard: Path, tmp_path: Path) -> None:
    del ascard
    text = agent_text(AgentTable("client1", knobs=(AgentKnob("vm.dirty_ration"),)), "bed", "x", None)
    with pytest.raises(StudyError) as caught:
        check_text("agent[0] (client1)", text, tmp_path)
    assert caught.value.message.startswith("agent[0] (client1): ")
    assert "vm.dirty_ration" in caught.value.message and str(tmp_path) not in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_its_proxy_is_reached_through_it() -> None:
    found = tomllib.loads(agent_text(AgentTable("client1"), "bed", "x", Path("/tmp/proxy.control.sock")))
    assert found["proxy"] == [{"control": "/tmp/proxy.control.sock"}]
    assert "windows" not in found


def test_no_agent_may_speak_for_another() -> None:
    known = {user.name: user for user in users("bed", ["client1", "client2"])}
    assert set(known) == {
        *("manager", "interface", "learner", "session", "operator", "viewer"),
        *("agent-client1", "agent-client2"),
    }
    one = known["agent-client1"]
    assert one.publish == ("ascar.capes.bed.agents.client1.*", "ascar.rules.beat.client1")
    assert one.subscribe == (
        *("ascar.capes.bed.nodes.client1", "ascar.capes.bed.nodes.all"),
        *("ascar.rules.find", "ascar.rules.*.client1"),
    )
