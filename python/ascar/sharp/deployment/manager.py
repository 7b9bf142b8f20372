"""The manager's side: the same rules on all controllers of a workload, or on none of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ascar.errors import MessagingError
from ascar.messaging import Message, RequestRefused
from ascar.messaging.rule_subjects import FIND, ask
from ascar.results.rule_deployment import ControllerProblem, SharpDeployResult, SharpDownResult
from ascar.sharp.deployment.messages import (
    Back,
    Find,
    Here,
    InForce,
    Keep,
    LoadRules,
    Read,
    RecordingPart,
    RecordingState,
    Renew,
    RuleUse,
    Show,
    StartRecording,
    Stop,
)
from ascar.sharp.deployment.naming import rules_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from ascar.messaging import Link
    from ascar.rules import RuleSet
    from ascar.sharp.deployment.controller_socket import ControllerSocket

_AT_ONCE = 64
_NAMED_MAX = 8
_PARTS_MAX = 1_000
_AGAIN_S = 0.2
Answer = TypeVar("Answer", bound=Message)


@dataclass(frozen=True, slots=True)
class ManagerTimeouts:
    """How long is waited.

    Attributes:
        find_s: the time for controllers to announce themselves.
        answer_s: the time for each answer of a controller. One that is not there is asked again until then:
            it, or the agent that speaks for it, may be started just now.
        trial_s: the time after which a controller puts back rules that were not kept.
        find_most_s: the time for controllers that are known to run to announce themselves.
    """

    find_s: float = 0.5
    answer_s: float = 5.0
    trial_s: float = 30.0
    find_most_s: float = 10.0


class DeploymentFailed(MessagingError):
    """Not all controllers follow the rules, so none does: those from before are in force again.

    Args:
        what: was to be done.
        problems: the controllers that failed, with their reasons.
        unrestored: the controllers that did not confirm that they put back the previous rules.
        touched: whether any controller was asked to change its rules.
    """

    def __init__(
        self,
        what: str,
        problems: Sequence[ControllerProblem],
        unrestored: Sequence[ControllerProblem] = (),
        *,
        touched: bool = True,
    ) -> None:
        after = "the rules from before are in force again" if touched else "nothing was changed"
        if unrestored:
            after = (
                "the rules from before are in force again but for "
                f"{_listed(unrestored)}; a controller puts them back by itself when it hears nothing more"
            )
        super().__init__(f"{what}: {_listed(problems)}; {after}")
        self.problems = tuple(problems)
        self.unrestored = tuple(unrestored)


class Manager:
    """Puts rules in force, and asks how they are used.

    Args:
        link: the connection to the message server, as a user who may ask controllers, or to one controller.
        patience: the time limits.
    """

    def __init__(self, link: Link | ControllerSocket, patience: ManagerTimeouts = ManagerTimeouts()) -> None:
        self._link = link
        self._patience = patience
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def find(self, workload: str | None = None, least: int = 0) -> tuple[Here, ...]:
        """The live controllers, by name.

        Args:
            workload: the workload whose controllers are wanted; None: all controllers.
            least: wait longer when fewer than so many have answered.

        Raises:
            DeploymentFailed: two of them have the same name.
        """
        asked = Find(workload=workload)
        found = set(await self._link.gather(FIND, asked, Here, self._patience.find_s))
        if len(found) < least:
            found |= set(await self._link.gather(FIND, asked, Here, self._patience.find_most_s, least))
        named = Counter(name for name, _ in {(one.controller, one.instance) for one in found})
        twice = [name for name, count in named.items() if count > 1]
        if twice:
            problems = [
                ControllerProblem(name, "several controllers have this name") for name in sorted(twice)
            ]
            raise DeploymentFailed("controllers", problems, touched=False)
        by_name = {one.controller: one for one in found}
        return tuple(by_name[name] for name in sorted(by_name))

    async def deploy(
        self,
        rules: RuleSet,
        workload: str | None,
        expected: Iterable[str] = (),
        least: int = 1,
        *,
        ends_after_s: float | None = None,
        kept_for_s: float | None = None,
    ) -> SharpDeployResult:
        """Put rules in force on all controllers of a workload, or leave all as they are.

        Args:
            rules: the rules to follow.
            workload: the workload whose controllers follow them; None: all controllers.
            expected: controllers that must be there.
            least: the number of controllers that must be there.
            ends_after_s: the time after which controllers put back what was in force; None: these are kept.
            kept_for_s: the time limit of kept rules, after which none are in force; None: they stay.

        Raises:
            InputError: the rules leave a gap.
            DeploymentFailed: one is missing, refuses, or does not answer.
        """
        name = rules_id(rules)
        found = await self._present(rules, workload, expected, least)
        names = tuple(sorted(found))
        deployment = _Deployment(name, names, {one.controller for one in found.values() if one.rules == name})
        within_s = self._patience.trial_s if ends_after_s is None else ends_after_s
        load = LoadRules(rules=name, text=rules.bare().text(), within_s=within_s)
        try:
            keep = Keep(rules=name, within_s=kept_for_s) if ends_after_s is None else None
            await self._all_or_none(deployment, load, keep)
        except BaseException:
            # Interrupted: what can be said still is; those that cannot be reached put back by themselves.
            await self._ask_all(deployment.begun, "back", Back(rules=name), InForce)
            raise
        return SharpDeployResult(
            rules=name,
            workload=workload,
            controllers=names,
            ends_after_s=ends_after_s,
            kept_for_s=kept_for_s,
        )

    async def try_out(self, rules: RuleSet, names: Sequence[str], within_s: float) -> None:
        """Put rules in force on trial: each controller puts back its own unless they are kept in time.

        Raises:
            DeploymentFailed: a controller refuses or does not answer; none is on trial any more.
        """
        name = rules_id(rules)
        load = LoadRules(rules=name, text=rules.bare().text(), within_s=within_s)
        _, problems = await self._ask_all(names, "load", load, InForce)
        if problems:
            raise DeploymentFailed(f"rules {name}", problems, await self._put_back(names, name))

    async def renew(self, rules: RuleSet, names: Sequence[str], within_s: float) -> None:
        """Let a trial go on for so long from now.

        Raises:
            DeploymentFailed: a controller does not; none is on trial any more.
        """
        name = rules_id(rules)
        _, problems = await self._ask_all(names, "renew", Renew(rules=name, within_s=within_s), InForce)
        if problems:
            raise DeploymentFailed(f"rules {name}", problems, await self._put_back(names, name))

    async def keep(self, rules: RuleSet, names: Sequence[str], within_s: float | None = None) -> None:
        """End a trial: its rules stay.

        Args:
            rules: the rules on trial.
            names: the controllers.
            within_s: the time limit, after which no rules are in force; None: they stay.

        Raises:
            DeploymentFailed: a controller does not; none follows them any more.
        """
        name = rules_id(rules)
        _, problems = await self._ask_all(names, "keep", Keep(rules=name, within_s=within_s), InForce)
        if problems:
            raise DeploymentFailed(f"rules {name}", problems, await self._put_back(names, name))

    async def back(self, rules: RuleSet, names: Sequence[str]) -> None:
        """End a trial: what was in force before is so again.

        Raises:
            DeploymentFailed: a controller does not say so.
        """
        name = rules_id(rules)
        if problems := await self._put_back(names, name):
            raise DeploymentFailed(f"rules {name}", problems, problems)

    async def stop(self, workload: str | None, expected: Iterable[str] = ()) -> SharpDownResult:
        """Put no rules in force on any controller of a workload that is there.

        Raises:
            DeploymentFailed: one is missing or does not answer; the others have no rules any more.
        """
        wanted = set(expected)
        found = await self.find(workload, len(wanted))
        names = tuple(one.controller for one in found)
        done, problems = await self._ask_all(names, "stop", Stop(), InForce)
        missing = sorted(wanted - set(names))
        problems += [ControllerProblem(name, "does not answer") for name in missing]
        if problems:
            at = f"stopped on {len(done)}" if done else "stop"
            raise MessagingError(f"{at}; but not: {_listed(problems)}")
        return SharpDownResult(workload=workload, controllers=names)

    async def take_off(self, names: Sequence[str]) -> None:
        """Put no rules in force on these controllers.

        Raises:
            MessagingError: one does not say so; the others have no rules any more.
        """
        done, problems = await self._ask_all(names, "stop", Stop(), InForce)
        if problems:
            raise MessagingError(f"stopped on {len(done)}; but not: {_listed(problems)}")

    async def show(
        self, workload: str | None = None, least: int = 0
    ) -> tuple[tuple[RuleUse, ...], tuple[ControllerProblem, ...]]:
        """What is in force and how it was used, of all controllers of a workload; and who did not say."""
        found = await self.find(workload, least)
        return await self.shown([one.controller for one in found])

    async def shown(self, names: Sequence[str]) -> tuple[tuple[RuleUse, ...], tuple[ControllerProblem, ...]]:
        """What is in force and how it was used, of these controllers; and who did not say."""
        done, problems = await self._ask_all(names, "show", Show(), RuleUse)
        return tuple(done[name] for name in sorted(done)), tuple(problems)

    async def record(self, names: Sequence[str], seconds: float) -> tuple[RecordingState, ...]:
        """Have controllers write down what their clients do.

        Raises:
            MessagingError: one does not.
        """
        done, problems = await self._ask_all(names, "record", StartRecording(seconds=seconds), RecordingState)
        if problems:
            raise MessagingError(f"a recording: {_listed(problems)}")
        return tuple(done[name] for name in sorted(done))

    async def read(self, recording: RecordingState) -> tuple[RecordingPart, ...]:
        """What a controller has written down, in parts; none while it is not over.

        Raises:
            MessagingError: it does not say, or has nothing.
        """
        name, parts = recording.controller, list[RecordingPart]()
        while not parts or len(parts) < (parts[0].parts or 0):
            asked = Read(number=recording.number, part=len(parts))
            part = await self._asked(name, "read", asked, RecordingPart)
            if part.parts is None:
                return ()
            if not 0 < part.parts <= _PARTS_MAX:
                raise MessagingError(f"{name}: a recording of {part.parts} parts; at most {_PARTS_MAX}")
            parts.append(part)
        return tuple(parts)

    async def present(
        self, rules: RuleSet, workload: str | None, expected: Iterable[str], least: int
    ) -> tuple[str, ...]:
        """Names of the controllers that rules would go to, when all that must be there are.

        Raises:
            DeploymentFailed: one is missing; nothing was changed.
        """
        return tuple(sorted(await self._present(rules, workload, expected, least)))

    async def _present(
        self, rules: RuleSet, workload: str | None, expected: Iterable[str], least: int
    ) -> dict[str, Here]:
        """The same by name, with what each has said."""
        wanted = set(expected)
        found = {one.controller: one for one in await self.find(workload, max(least, len(wanted)))}
        problems = [ControllerProblem(name, "does not answer") for name in sorted(wanted - found.keys())]
        if len(found) < max(least, 1):
            of = "" if workload is None else f" of workload {workload}"
            problems.append(
                ControllerProblem(f"controllers{of}", f"{len(found)} are there, not {max(least, 1)}")
            )
        if problems:
            raise DeploymentFailed(f"rules {rules_id(rules)}", problems, touched=False)
        return found

    async def _all_or_none(self, deployment: _Deployment, load: LoadRules, keep: Keep | None) -> None:
        steps = (("load", load), *((("keep", keep),) if keep is not None else ()))
        for verb, message in steps:
            done, problems = await self._ask_all(deployment.names, verb, message, InForce)
            deployment.untouched -= done.keys()
            if problems:
                unrestored = await self._put_back(deployment.begun, deployment.rules, deployment.followed)
                raise DeploymentFailed(f"rules {deployment.rules}", problems, unrestored)

    async def _put_back(
        self, names: Sequence[str], name: str, followed: Set[str] = frozenset()
    ) -> list[ControllerProblem]:
        """Ask for what was before; who did not say that it is so, but for those who had followed the same."""
        done, problems = await self._ask_all(names, "back", Back(rules=name), InForce)
        still = [
            ControllerProblem(one.controller, "still follows them")
            for one in done.values()
            if one.rules == name and one.controller not in followed
        ]
        return problems + still

    async def _asked(self, name: str, verb: str, message: Message, reply: type[Answer]) -> Answer:
        """The answer of a controller. All that is asked may be asked twice.

        Raises:
            RequestRefused: it says no.
            MessagingError: it does not answer in time.
        """
        end_s = time.monotonic() + self._patience.answer_s
        while True:
            left_s = max(end_s - time.monotonic(), _AGAIN_S)
            try:
                return await self._link.request(ask(verb, name), message, reply, left_s)
            except RequestRefused:
                raise
            except MessagingError:
                if time.monotonic() + 2 * _AGAIN_S > end_s:
                    raise
                await asyncio.sleep(_AGAIN_S)

    async def _ask_all(
        self, names: Iterable[str], verb: str, message: Message, reply: type[Answer]
    ) -> tuple[dict[str, Answer], list[ControllerProblem]]:
        """Answers by name, and who gave none."""

        async def one(name: str) -> Answer | ControllerProblem:
            async with self._slots:
                try:
                    return await self._asked(name, verb, message, reply)
                except RequestRefused as error:
                    return ControllerProblem(name, f"refused: {error.reason}")
                except MessagingError as error:
                    return ControllerProblem(name, error.message.partition(": ")[2] or error.message)

        asked = list(names)
        answers = await asyncio.gather(*(one(name) for name in asked))
        found: Mapping[str, Answer | ControllerProblem] = dict(zip(asked, answers, strict=True))
        problems = [answer for answer in found.values() if isinstance(answer, ControllerProblem)]
        return {
            name: said for name, said in found.items() if not isinstance(said, ControllerProblem)
        }, problems


class _Deployment:
    """Who is to follow rules, and has begun to.

    Args:
        rules: their id.
        names: the controllers.
        followed: those of them that follow the same rules already.
    """

    def __init__(self, rules: str, names: Sequence[str], followed: Set[str]) -> None:
        self.rules = rules
        self.names = names
        self.followed = followed
        self.untouched = set(followed)
        """Those that follow them from before, and did not say that they begin anew: these go too far back."""

    @property
    def begun(self) -> list[str]:
        """Who may be asked to go back to what was before this deployment."""
        return [name for name in self.names if name not in self.untouched]


def _listed(problems: Sequence[ControllerProblem]) -> str:
    named = [str(one) for one in problems[:_NAMED_MAX]]
    more = len(problems) - len(named)
    return ", ".join(named) + (f", and {more} more" if more else "")
