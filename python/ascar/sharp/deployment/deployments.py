"""Rule sets on the controllers of a workload, and the roster of controllers that must follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, InputError, MessagingError
from ascar.messaging import token
from ascar.rules import RuleSet
from ascar.sharp.deployment.controller_socket import open_link
from ascar.sharp.deployment.manager import Manager
from ascar.sharp.deployment.messages import least_left_s
from ascar.sharp.deployment.roster import ExpectedDeployment
from ascar.sharp.rule_knobs import with_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.messaging import Settings
    from ascar.results.rule_deployment import SharpDeployResult, SharpDownResult
    from ascar.sharp.deployment.roster import Roster


_LIMIT_MIN_S = 1.0


class Deployments:
    """Deploys rules and takes them off, and remembers which controllers follow them.

    Args:
        settings: the connection to the message server, as a user who may ask controllers.
        roster: what this machine has put in force.
    """

    def __init__(self, settings: Settings, roster: Roster) -> None:
        self._settings = settings
        self._roster = roster

    async def deploy(
        self,
        rules: RuleSet,
        workload: str | None,
        least: int = 1,
        *,
        forget: bool = False,
        ends_after_s: float | None = None,
        kept_for_s: float | None = None,
    ) -> SharpDeployResult:
        """Put rules in force on all controllers of a workload, or leave all as they are.

        Args:
            rules: the rules to follow.
            workload: the workload; None: the only one that controllers run.
            least: the number of controllers that must be there.
            forget: whether controllers that followed rules before may be missing.
            ends_after_s: the time after which controllers put back what was in force; None: these are kept.
            kept_for_s: the time limit of kept rules, after which none are in force; None: they stay.

        Raises:
            InputError: the rules leave a gap, or several workloads run and none is named.
            EnvironmentLacks: no workload is named and no controller is there.
            DeploymentFailed: a controller is missing, refuses, or does not answer.
        """
        async with await open_link(self._settings, name="ascar sharp deploy") as link:
            manager = Manager(link)
            name = await self._named(manager, workload)
            expected = () if forget else self._expected(name)
            done = await manager.deploy(
                rules, name, expected, least, ends_after_s=ends_after_s, kept_for_s=kept_for_s
            )
            if ends_after_s is None:
                self._remember(name, done)
            return done

    async def ready(
        self, rules: RuleSet, workload: str | None, least: int = 1, *, forget: bool = False
    ) -> str:
        """The workload that is meant, once all controllers are there that `deploy` would ask.

        Raises:
            InputError: several workloads run and none is named.
            EnvironmentLacks: no workload is named and no controller is there.
            DeploymentFailed: a controller is missing.
        """
        async with await open_link(self._settings, name="ascar sharp deploy") as link:
            manager = Manager(link)
            name = await self._named(manager, workload)
            await manager.present(rules, name, () if forget else self._expected(name), least)
            return name

    async def change(self, workload: str, values: Mapping[str, int]) -> tuple[SharpDeployResult, RuleSet]:
        """Change numbers of the rules in force on all controllers of a workload, or leave all as they are.

        A time limit of theirs goes on.

        Args:
            workload: the workload.
            values: the new numbers, by knob of `ascar.sharp.rule_knobs`.

        Returns:
            What is in force, and its rules.

        Raises:
            InputError: no rules are in force, or a value is none that its knob takes.
            MessagingError: controllers follow different rules or do not answer.
            DeploymentFailed: a controller is missing, refuses, or does not answer.
        """
        expected = self._expected(token("--workload", workload))
        async with await open_link(self._settings, name="ascar sharp set") as link:
            manager = Manager(link)
            shown, problems = await manager.show(workload, len(expected))
            if problems:
                raise MessagingError("; ".join(str(one) for one in problems))
            if len({one.rules for one in shown}) > 1:
                raise MessagingError("controllers follow different rules; deploy a rule set first")
            text = shown[0].text if shown else None
            if text is None:
                raise InputError(
                    f"rules: no rules are in force for {workload}; deploy some with "
                    "`ascar sharp deploy` first"
                )
            rules = with_values(RuleSet.parse(text).bare(), values)
            left_s = least_left_s(one for one in shown if not one.on_trial)
            limit_s = None if left_s is None else max(left_s, _LIMIT_MIN_S)
            done = await manager.deploy(rules, workload, expected, len(shown), kept_for_s=limit_s)
            self._remember(workload, done)
            return done, rules

    async def take_down(self, workload: str | None, *, forget: bool = False) -> SharpDownResult:
        """Take the rules off every controller of a workload.

        Args:
            workload: the workload; None: the only one that controllers run.
            forget: whether controllers that followed rules before may be missing.

        Raises:
            InputError: several workloads run and none is named.
            EnvironmentLacks: no controller runs the workload, and none is known to have followed rules.
            MessagingError: a controller is missing or does not answer; the others have no rules any more.
        """
        async with await open_link(self._settings, name="ascar sharp down") as link:
            manager = Manager(link)
            name = await self._named(manager, workload)
            known = self._roster.expected(name) is not None
            expected = () if forget else self._expected(name)
            done = await manager.stop(name, expected)
            if not done.controllers and not known:
                raise EnvironmentLacks(f"workload {name!r}: no controller runs it; {await _running(manager)}")
            self._roster.forget(name)
            return done

    def _expected(self, workload: str) -> tuple[str, ...]:
        known = self._roster.expected(workload)
        return () if known is None else known.controllers

    def _remember(self, workload: str, done: SharpDeployResult) -> None:
        self._roster.write(
            ExpectedDeployment(workload=workload, rules=done.rules, controllers=done.controllers)
        )

    async def _named(self, manager: Manager, workload: str | None) -> str:
        if workload is not None:
            return token("--workload", workload)
        there = await _workloads(manager) or list(self._roster.workloads())
        if not there:
            raise EnvironmentLacks("controllers: none answers; start them, then deploy rules")
        if len(there) > 1:
            raise InputError(f"--workload: is missing; controllers run {', '.join(there)}")
        return there[0]


async def _workloads(manager: Manager) -> list[str]:
    return sorted({one.workload for one in await manager.find()})


async def _running(manager: Manager) -> str:
    there = await _workloads(manager)
    return f"controllers run {', '.join(there)}" if there else "none answers"
