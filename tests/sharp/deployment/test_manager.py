"""The same rules everywhere or nowhere, whoever is missing, refuses, hangs or dies in the middle."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import nats
import numpy as np
import pytest

from ascar.errors import InputError, MessagingError
from ascar.features import Trace
from ascar.messaging import Link, Message, MessageServer, RequestRefused, controller_user, manager_user
from ascar.messaging.rule_subjects import FIND, ask, beat
from ascar.sharp import Action, RuleSet, split
from ascar.sharp.deployment import (
    ControllerEndpoint,
    DeploymentFailed,
    Manager,
    ManagerTimeouts,
    rules_id,
)
from ascar.sharp.deployment.messages import Back, Find, Here, InForce, Keep, LoadRules, RecordingPart, Stop
from ascar.sharp.deployment.recording import PART_ROWS, ControllerTrace, recorded_of, together

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ONE = RuleSet.uniform(Action(100, 0, 20_000))
TWO = split(RuleSet.uniform(Action(100, 50, 0)))
PATIENCE = ManagerTimeouts(find_s=0.3, answer_s=60.0, trial_s=60.0, find_most_s=60.0)


def trace(length: int, thread: int = 0) -> Trace:
    seconds = [at / 10 for at in range(length)]
    return Trace.of({"seconds": seconds, "operation": [1] * length, "thread": [thread] * length})


class Notebook:
    """A plane that writes down what it was told to follow, and refuses on demand."""

    def __init__(self) -> None:
        self.followed: list[RuleSet | None] = []
        self.refuses = ""
        self.recorded = asyncio.Event()
        self.traces = (trace(3), trace(0))

    async def follow(self, rules: RuleSet | None) -> None:
        if self.refuses:
            raise InputError(self.refuses)
        self.followed.append(rules)

    async def used(self) -> RuleSet | None:
        return self.followed[-1] if self.followed else None

    async def record(self, seconds: float) -> ControllerTrace:
        if self.refuses:
            raise InputError(self.refuses)
        await self.recorded.wait()
        return ControllerTrace(*self.traces, begin_s=0.0, end_s=seconds)


class Site:
    """Controllers on links of their own, and a manager."""

    def __init__(self, manager: Manager, link: Link, endpoints: dict[str, ControllerEndpoint]) -> None:
        self.manager = manager
        self.link = link
        self.endpoints = endpoints
        self.planes: dict[str, Notebook] = {}
        self.links: dict[str, Link] = {}

    @property
    def in_force(self) -> dict[str, str | None]:
        return {name: one.rules for name, one in self.endpoints.items()}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.endpoints)


@asynccontextmanager
async def site(
    server: MessageServer, *workloads: str, patience: ManagerTimeouts = PATIENCE
) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(await Link.open(server.settings("manager"), name="manager"))
        found = Site(Manager(link, patience), link, {})
        for number, workload in enumerate(workloads):
            name = f"c{number}"
            own = await Link.open(server.settings("controller"), name=name)
            await stack.enter_async_context(own)
            plane = Notebook()
            endpoint = ControllerEndpoint(own, name, workload, plane)
            await endpoint.serve()
            await own.flush()
            stack.push_async_callback(endpoint.close)
            found.endpoints[name], found.planes[name], found.links[name] = endpoint, plane, own
        yield found


def test_rules_come_into_force_on_all(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a", "a", "a") as at:
            done = await at.manager.deploy(ONE, "a", at.names)
            assert done.rules == rules_id(ONE)
            assert done.controllers == ("c0", "c1", "c2")
            assert set(at.in_force.values()) == {rules_id(ONE)}
            assert all(plane.followed == [ONE] for plane in at.planes.values())
            shown, problems = await at.manager.show("a", 3)
            assert [one.controller for one in shown] == ["c0", "c1", "c2"]
            assert problems == ()
            assert not any(one.on_trial for one in shown)
            assert RuleSet.parse(shown[0].text or "") == ONE

    asyncio.run(run())


def test_workloads_have_their_own_rules_at_once(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a", "b", "a") as at:
            await asyncio.gather(
                at.manager.deploy(ONE, "a", ["c0", "c2"]), at.manager.deploy(TWO, "b", ["c1"])
            )
            assert at.in_force == {"c0": rules_id(ONE), "c1": rules_id(TWO), "c2": rules_id(ONE)}
            await at.manager.stop("a", ["c0", "c2"])
            assert at.in_force == {"c0": None, "c1": rules_id(TWO), "c2": None}

    asyncio.run(run())


def test_one_that_refuses_leaves_all_as_they_were(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a", "a", "a") as at:
            await at.manager.deploy(ONE, "a", at.names)
            at.planes["c1"].refuses = "no room for rules"
            with pytest.raises(DeploymentFailed) as caught:
                await at.manager.deploy(TWO, "a", at.names)
            assert caught.value.exit_status == 1
            assert caught.value.message == (
                f"rules {rules_id(TWO)}: c1: refused: no room for rules; "
                "the rules from before are in force again"
            )
            assert set(at.in_force.values()) == {rules_id(ONE)}
            assert at.planes["c0"].followed == [ONE, TWO, ONE]
            assert at.planes["c1"].followed == [ONE]

    asyncio.run(run())


def test_rules_that_are_deployed_again_in_vain_stay_in_force(server: MessageServer) -> None:
    """They are taken back to what they were before this deployment, not to what was before them."""

    async def run() -> None:
        async with site(server, "a", "a") as at:
            for rules in (ONE, TWO):
                await at.manager.deploy(rules, "a", at.names)
            at.planes["c1"].refuses = "no room for rules"
            with pytest.raises(DeploymentFailed) as caught:
                await at.manager.deploy(TWO, "a", at.names)
            assert caught.value.message.endswith("; the rules from before are in force again")
            assert set(at.in_force.values()) == {rules_id(TWO)}
            assert at.planes["c0"].followed == [ONE, TWO, TWO, TWO]
            assert at.planes["c1"].followed == [ONE, TWO]

    asyncio.run(run())


def test_one_that_is_missing_is_named_and_nothing_is_touched(server: MessageServer) -> None:
    async def run() -> None:
        patience = ManagerTimeouts(find_s=1.0, answer_s=1.0, find_most_s=2.0)
        async with site(server, "a", "a", patience=patience) as at:
            for expected, least, words in (
                ((*at.names, "c7"), 1, "c7: does not answer; nothing was changed"),
                ((), 3, "controllers of workload a: 2 are there, not 3; nothing was changed"),
            ):
                with pytest.raises(DeploymentFailed, match=words):
                    await at.manager.deploy(ONE, "a", expected, least)
            assert all(plane.followed == [] for plane in at.planes.values())
            with pytest.raises(DeploymentFailed, match="controllers of workload b: 0 are there"):
                await at.manager.deploy(ONE, "b")

    asyncio.run(run())


@pytest.mark.parametrize("before", [ONE, TWO], ids=["other rules", "the same rules"])
def test_one_that_dies_between_trial_and_end_of_it(server: MessageServer, before: RuleSet) -> None:
    """It takes the rules on trial and is gone: the others go back, and it is named."""

    async def run() -> None:
        async with site(server, "a", "a", patience=ManagerTimeouts(0.3, 10.0, 60.0, 60.0)) as at:
            await at.manager.deploy(ONE, "a", at.names)
            await at.manager.deploy(before, "a", at.names)
            mortal = await Link.open(server.settings("controller"), name="mortal")

            async def here(_: Find) -> Here:
                return Here(controller="mortal", workload="a", instance="x")

            async def load(message: LoadRules) -> InForce:
                for subscription in subscriptions:
                    await subscription.unsubscribe()
                await mortal.flush()
                return InForce(controller="mortal", rules=message.rules)

            async def no(_: Message) -> None:
                return None

            subscriptions = [
                await mortal.serve(ask("keep", "mortal"), Keep, no),
                await mortal.serve(ask("back", "mortal"), Back, no),
            ]
            await mortal.serve(FIND, Find, here)
            await mortal.serve(ask("load", "mortal"), LoadRules, load)
            await mortal.flush()
            async with mortal:
                with pytest.raises(DeploymentFailed) as caught:
                    await at.manager.deploy(TWO, "a", [*at.names, "mortal"], kept_for_s=3600.0)
            assert [one.controller for one in caught.value.problems] == ["mortal"]
            assert [one.controller for one in caught.value.unrestored] == ["mortal"]
            assert "puts them back by itself" in caught.value.message
            assert set(at.in_force.values()) == {rules_id(before)}
            shown, _ = await at.manager.shown(at.names)
            assert [(one.on_trial, one.left_s) for one in shown] == [(False, None)] * 2

    asyncio.run(run())


def test_a_trial_that_nobody_ends_ends_by_itself(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a", "a") as at:
            await at.manager.deploy(ONE, "a", at.names)
            await at.manager.try_out(TWO, at.names, 0.2)
            async with asyncio.timeout(60):
                while set(at.in_force.values()) != {rules_id(ONE)}:
                    await asyncio.sleep(0.01)
            assert at.planes["c0"].followed == [ONE, TWO, ONE]
            with pytest.raises(DeploymentFailed, match="are not on trial here"):
                await at.manager.keep(TWO, at.names)
            assert set(at.in_force.values()) == {rules_id(ONE)}

    asyncio.run(run())


def test_kept_rules_end_at_their_limit_and_are_kept_longer_when_that_is_said_again(
    server: MessageServer,
) -> None:
    async def run() -> None:
        async with site(server, "a") as at:
            await at.manager.deploy(TWO, "a")
            await at.manager.deploy(ONE, "a", kept_for_s=1.0)
            await at.manager.keep(ONE, at.names)
            await asyncio.sleep(1.5)  # longer than the limit that is no more
            assert at.in_force == {"c0": rules_id(ONE)}
            await at.manager.deploy(ONE, "a", kept_for_s=0.5)
            async with asyncio.timeout(30):
                while at.in_force["c0"] is not None:
                    await asyncio.sleep(0.01)
            # Not what was kept before them either.
            assert at.planes["c0"].followed == [TWO, ONE, ONE, None]
            with pytest.raises(DeploymentFailed, match="within_s = 40000000: must be above 0, and at most"):
                await at.manager.deploy(ONE, "a", kept_for_s=4e7)
            assert at.in_force == {"c0": None}

    asyncio.run(run())


def test_a_trial_that_is_renewed_goes_on(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a", "a") as at:
            await at.manager.deploy(ONE, "a", at.names)
            await at.manager.try_out(TWO, at.names, 4.0)
            await at.manager.renew(TWO, at.names, 60.0)
            await asyncio.sleep(4.5)  # longer than the first one
            assert set(at.in_force.values()) == {rules_id(TWO)}
            assert at.planes["c0"].followed == [ONE, TWO]  # streams did not begin anew
            with pytest.raises(DeploymentFailed, match="are not on trial here"):
                await at.manager.renew(ONE, at.names, 60.0)
            await at.manager.back(TWO, at.names)

    asyncio.run(run())


def test_what_clients_did_is_read_in_parts(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a", "a") as at:
            long = trace(2 * PART_ROWS + 1)
            at.planes["c1"].traces = (long, trace(5))
            first, second = await at.manager.record(at.names, 3_600)
            assert await at.manager.read(second) == ()  # it is not over
            for plane in at.planes.values():
                plane.recorded.set()
            found: list[ControllerTrace] = []
            async with asyncio.timeout(60):
                for one in (first, second):
                    while not (parts := await at.manager.read(one)):
                        await asyncio.sleep(0.01)
                    found.append(recorded_of(parts))
            assert [len(one.operations) for one in found] == [3, 2 * PART_ROWS + 1]
            assert np.array_equal(found[1].operations.seconds, long.seconds)
            assert np.all(np.isnan(found[1].operations.latency_s))
            assert len(found[1].requests) == 5
            again, _ = await at.manager.record(at.names, 5.0)
            with pytest.raises(RequestRefused, match="there is no such recording here"):
                await at.manager.read(first)
            at.planes["c0"].refuses = "this client tells nothing"
            again, _ = await at.manager.record(at.names, 5.0)
            with pytest.raises(RequestRefused, match="this client tells nothing"):
                async with asyncio.timeout(60):
                    while True:
                        await at.manager.read(again)
            with pytest.raises(MessagingError, match="seconds = 0: must be above 0"):
                await at.manager.record(at.names, 0.0)

    asyncio.run(run())


def test_threads_of_different_clients_are_different_ones() -> None:
    one = ControllerTrace(trace(4, 7), trace(0), 0.05, 9.0, 1.0)
    other = ControllerTrace(trace(4, 7), trace(2), 0.0, 0.25, 3.0)
    found = together([one, other])
    assert len(set(found.operations.thread.tolist())) == 2
    assert found.operations.seconds.tolist() == [0.1, 0.1, 0.2, 0.2]  # while both were recorded
    assert (found.begin_s, found.end_s, found.waiting_mean) == (0.05, 0.25, 2.0)


@pytest.mark.parametrize(
    "part",
    [
        RecordingPart(controller="c", parts=1, seconds=(1.0,), operation=(1,)),
        RecordingPart(
            controller="c", parts=1, seconds=(1.0,), operation=(99,), thread=(0,), file=(0,),
            offset_bytes=(0,), size_bytes=(0,), latency_s=(None,),
        ),
        RecordingPart(
            controller="c", parts=1, seconds=(1.0,), operation=(1,), thread=(0,), file=(0,),
            offset_bytes=(-1,), size_bytes=(0,), latency_s=(None,),
        ),
        RecordingPart(
            controller="c", parts=1, seconds=(1.0,), operation=(1,), thread=(2**70,), file=(0,),
            offset_bytes=(0,), size_bytes=(0,), latency_s=(None,),
        ),
    ],
)  # fmt: skip
def test_an_impossible_recording_is_refused(part: RecordingPart) -> None:
    with pytest.raises(MessagingError, match="c: a recording with"):
        recorded_of([part])


def test_two_managers_do_not_mix_their_rules(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a", "a") as at:
            await at.manager.try_out(ONE, at.names, 60.0)
            with pytest.raises(DeploymentFailed, match=f"rules {rules_id(ONE)} are on trial here"):
                await at.manager.deploy(TWO, "a", at.names)
            assert set(at.in_force.values()) == {rules_id(ONE)}
            await at.manager.keep(ONE, at.names)
            await at.manager.keep(ONE, at.names)  # an answer that was lost is asked for again
            await at.manager.deploy(TWO, "a", at.names)
            await at.manager.back(TWO, at.names)
            assert set(at.in_force.values()) == {rules_id(ONE)}

    asyncio.run(run())


def test_two_controllers_of_one_name_are_told(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a", patience=ManagerTimeouts(2.0, 60.0, 60.0, 60.0)) as at:
            own = await Link.open(server.settings("controller"), name="twin")
            twin = ControllerEndpoint(own, "c0", "a", Notebook())
            async with own:
                await twin.serve()
                await own.flush()
                with pytest.raises(DeploymentFailed, match="c0: several controllers have this name"):
                    await at.manager.deploy(ONE, "a", least=1)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (LoadRules(rules=rules_id(ONE), text="1,2\n0,1,0,1,100,101,-1,0,0\n", within_s=1), "no rule holds"),
        (LoadRules(rules="0" * 12, text=ONE.text(), within_s=1), f"the text is that of {rules_id(ONE)}"),
        (LoadRules(rules=rules_id(ONE), text="x", within_s=1), "rule set: "),
        (LoadRules(rules=rules_id(ONE), text=ONE.text(), within_s=0), "within_s = 0"),
        (LoadRules(rules=rules_id(ONE), text=ONE.text(), within_s=1e9), "within_s = 1000000000"),
    ],
)
def test_a_controller_refuses_what_it_cannot_follow(
    server: MessageServer, message: LoadRules, words: str
) -> None:
    async def run() -> None:
        async with site(server, "a") as at:
            with pytest.raises(RequestRefused, match=words):
                await at.link.request(ask("load", "c0"), message, InForce, 60.0)
            assert at.planes["c0"].followed == []

    asyncio.run(run())


def test_garbage_changes_nothing_and_is_counted(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a") as at:
            await at.manager.deploy(ONE, "a", at.names)
            settings = server.settings("manager")
            raw = await nats.connect(settings.url, user=settings.user, password=settings.password)
            subjects = [FIND, *(ask(verb, "c0") for verb in ("load", "keep", "back", "stop", "show"))]
            for subject in subjects:
                for payload in (b"", b"x", b'{"message":"rules.load/1"}', b"[" * 50_000):
                    await raw.publish(subject, payload)
            await raw.flush()
            await raw.close()
            async with asyncio.timeout(60):
                while at.links["c0"].counts.unreadable < 4 * len(subjects):
                    await asyncio.sleep(0.01)
            assert at.in_force == {"c0": rules_id(ONE)}
            assert at.planes["c0"].followed == [ONE]

    asyncio.run(run())


def test_a_controller_cannot_speak_as_a_manager(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a", "a") as at:
            with pytest.raises(MessagingError, match="no answer"):
                await at.links["c0"].request(ask("stop", "c1"), Stop(), InForce, 0.5)
            assert at.planes["c1"].followed == []
            async with asyncio.timeout(60):
                while not at.links["c0"].counts.lost:
                    await asyncio.sleep(0.01)

    asyncio.run(run())


def test_the_server_dies_in_the_middle(tmp_path: Path) -> None:
    """Controllers go on with their rules; what was on trial is put back; then deployments work again."""

    async def run(server: MessageServer) -> None:
        async with site(server, "a", "a", patience=ManagerTimeouts(0.5, 60.0, 60.0, 60.0)) as at:
            await at.manager.deploy(ONE, "a", at.names)
            await at.manager.try_out(TWO, at.names, 1.0)
            pid = server.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            async with asyncio.timeout(60):
                while set(at.in_force.values()) != {rules_id(ONE)}:
                    await asyncio.sleep(0.01)
                while not all(link.counts.reconnects for link in (at.link, *at.links.values())):
                    await asyncio.sleep(0.01)
            await at.manager.deploy(TWO, "a", at.names)
            assert set(at.in_force.values()) == {rules_id(TWO)}

    with MessageServer(tmp_path, [manager_user(), controller_user("controller")]) as server:
        asyncio.run(run(server))


def test_an_interrupted_deployment_is_put_back(server: MessageServer) -> None:
    async def run() -> None:
        async with site(server, "a", "a") as at:
            await at.manager.deploy(ONE, "a", at.names)
            slow = asyncio.Event()
            follow = at.planes["c1"].follow

            async def wait(rules: RuleSet | None) -> None:
                if rules == TWO:
                    await slow.wait()
                await follow(rules)

            at.planes["c1"].follow = wait  # type: ignore[method-assign]
            deploying = asyncio.create_task(at.manager.deploy(TWO, "a", at.names))
            async with asyncio.timeout(60):
                while at.in_force["c0"] != rules_id(TWO):
                    await asyncio.sleep(0.01)
            deploying.cancel()
            slow.set()
            with pytest.raises(asyncio.CancelledError):
                await deploying
            assert set(at.in_force.values()) == {rules_id(ONE)}

    asyncio.run(run())


def test_rules_that_leave_a_gap_never_leave_the_manager(server: MessageServer) -> None:
    gap = TWO.with_rules(0, ())

    async def run() -> None:
        async with site(server, "a") as at:
            with pytest.raises(InputError, match="rule set"):
                await at.manager.deploy(gap, "a", at.names)

    asyncio.run(run())


def test_beats_are_heard_by_the_manager(server: MessageServer) -> None:
    from ascar.sharp.deployment.messages import Beat

    async def run() -> None:
        heard: list[Beat] = []

        async def hear(one: Beat) -> None:
            heard.append(one)

        async with site(server, "a") as at:
            await at.link.serve(beat("*"), Beat, hear)
            await at.link.flush()
            await at.endpoints["c0"].beat(3, 1.0, 12.5, None)
            async with asyncio.timeout(60):
                while not heard:
                    await asyncio.sleep(0.01)
            assert (heard[0].controller, heard[0].tick, heard[0].mb_per_s) == ("c0", 3, 12.5)

    asyncio.run(run())
