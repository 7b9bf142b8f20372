"""The rule manager reaches proxies through the agents of their nodes, on a message server."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from ascar.messaging import Link, MessageServer, RequestRefused, manager_user
from ascar.messaging.rule_subjects import beat
from ascar.program.node_binary import find_ascard
from ascar.sharp.deployment.messages import Beat, InForce, LoadRules, Show
from data_plane_peers import disk_of
from nbd_peers import RawClient, RawServer, Session
from proxy_site import RULES, Site, agent_user
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from data_plane_peers import Starter


def serve(session: Session) -> None:
    """Answers every request at once."""
    session.negotiate()
    for asked in session.requests():
        session.answer(asked)


@pytest.fixture
def site(start: Starter, folder: Path) -> Iterator[Site]:
    with (
        RawServer(folder / "server.sock", serve) as target,
        MessageServer(folder / "messages", [manager_user(), agent_user()]) as server,
    ):
        made = Site(start, folder, server)
        for _ in range(2):
            made.node(target.path)
        until(lambda: all("reaches controller client" in made.log(number) for number in (1, 2)))
        yield made


DEPLOY = ("deploy", "rules.txt", "--floor", "0%")


def test_rules_come_into_force_on_the_proxies_of_all_nodes(site: Site):
    done = site.sharp(*DEPLOY, "--least", "2", "--keep-for", "1 h")
    assert (done["controllers"], done["workload"]) == (["client1", "client2"], "blocks")
    assert site.in_force() == [done["rules"]] * 2
    with RawClient(disk_of(site.proxies[1])) as client:
        client.negotiate()
        for at in range(50):
            assert client.read(at, 4096) == bytes(4096)
    (workload,) = site.sharp("show")["workloads"]
    assert [one["controller"] for one in workload["controllers"]] == ["client1", "client2"]
    assert workload["rule_set"]["rules"][0]["used_times"] >= 1
    assert site.sharp("down")["controllers"] == ["client1", "client2"]
    assert site.in_force() == [None, None]


def test_a_proxy_that_is_gone_leaves_the_others_as_they_were_and_is_found_again(site: Site):
    done = site.sharp(*DEPLOY, "--least", "2")
    site.proxies[1].stop()
    until(lambda: "has ended" in site.log(2))
    (site.folder / "others.txt").write_text(RULES.replace(",300,0", ",400,0"))
    site.sharp("deploy", "others.txt", "--floor", "0%", fails="does not answer")
    assert site.proxies[0].ask({"message": "rules.show/1"})["rules"] == done["rules"]
    site.proxies[1].again(signal.SIGKILL)
    until(lambda: site.log(2).count("reaches controller client2") == 2)
    other = site.sharp("deploy", "others.txt", "--floor", "0%")
    assert site.in_force() == [other["rules"]] * 2


def test_rules_outlast_the_message_server_and_the_agent_until_their_limit(site: Site):
    ends_s = time.monotonic() + 8
    done = site.sharp(*DEPLOY, "--keep-for", "8 s")
    for agent in site.agents:
        agent.kill()
    site.server.stop()
    time.sleep(1)
    if time.monotonic() < ends_s - 1:
        assert site.in_force() == [done["rules"]] * 2
    until(lambda: site.in_force() == [None, None])


def asked(site: Site, ask: Callable[[Link], Any]) -> Any:
    """As somebody who may ask controllers."""

    async def run() -> Any:
        async with await Link.open(site.server.settings("manager"), name="test") as link:
            return await ask(link)

    return asyncio.run(run())


def test_a_message_under_another_subject_is_refused_and_changes_nothing(site: Site):
    load = LoadRules(rules="a1", text=RULES, within_s=600.0)

    async def show(link: Link) -> Any:
        return await link.request("ascar.rules.show.client1", load, InForce, 20.0)

    with pytest.raises(RequestRefused, match="as its subject says"):
        asked(site, show)

    async def garbage(link: Link) -> list[bytes]:
        return [
            await link.request_payload("ascar.rules.stop.client1", payload, 20.0)
            for payload in (b"", b"\xff\n", b'{"message": "rules.stop/1"}\n{"message": "rules.stop/1"}',
                            b'{"message": "rules.stop/1", "x": 1}', b'{"message": "rules.stop/7"}')
        ]  # fmt: skip

    answers = [json.loads(one) for one in asked(site, garbage)]
    assert {one["message"] for one in answers} == {"refusal/1"}
    assert not any("\n" in one["reason"] for one in answers)
    assert site.in_force() == [None, None]

    async def stop(link: Link) -> bytes:
        return await link.request_payload("ascar.rules.stop.client1", b'{\n"message": "rules.stop/1"}', 20.0)

    assert json.loads(asked(site, stop))["message"] == "rules.in-force/1"


def test_a_proxy_that_stands_still_is_said_to_do_so_and_works_on(site: Site):
    site.proxies[0].process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(RequestRefused, match="does not answer: no answer within 4 s"):
            asked(site, lambda link: link.request("ascar.rules.show.client1", Show(), InForce, 20.0))
    finally:
        site.proxies[0].process.send_signal(signal.SIGCONT)
    assert site.sharp(*DEPLOY, "--least", "2")["controllers"] == ["client1", "client2"]


def test_beats_of_proxies_are_heard(site: Site):
    async def hear(link: Link) -> Beat:
        heard = asyncio.Queue[Beat]()

        async def on_beat(said: Beat) -> None:
            await heard.put(said)

        await link.serve(beat("*"), Beat, on_beat)
        async with asyncio.timeout(30):
            while (said := await heard.get()).controller != "client2":
                pass
            return said

    assert asked(site, hear).workload == "blocks"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("[[proxy]]\n", "control"),
        ('[[proxy]]\ncontrol = "a"\nsocket = "b"\n', "socket"),
        ('monitor_only = true\n[[proxy]]\ncontrol = "a"\n', "monitor_only = true"),
        ('[[proxy]]\ncontrol = "a"\n' * 17, "17 are given; allowed are 16 at most"),
    ],
)
def test_a_wrong_file_is_told_in_a_line(tmp_path: Path, keys: str, words: str):
    (tmp_path / "agent.toml").write_text(f'{keys}[messaging]\nurl = "nats://127.0.0.1:4222"\n')
    command = [find_ascard(), "agent", "--config", tmp_path / "agent.toml", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n"), words in done.stderr) == (2, 1, True), done.stderr
