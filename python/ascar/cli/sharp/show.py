"""`ascar sharp show`: which rules are in force where, and how they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.cli.epilog import examples
from ascar.cli.options import Connection, Force, Json, OutOrNone, WorkloadOrNone

if TYPE_CHECKING:
    from ascar.messaging import Settings
    from ascar.results.rule_deployment import ControllerProblem, SharpShowResult
    from ascar.sharp import RuleSet
    from ascar.sharp.deployment import Roster, RuleUse

EXAMPLES = examples(
    "ascar sharp show",
    "ascar sharp show --workload random --out used.txt",
)


def show(
    workload: WorkloadOrNone = None,
    out: OutOrNone = None,
    force: Force = False,
    connection: Connection = None,
    json: Json = False,
) -> int:
    """Show the rules in force, how often each was used since, and the mean of each indicator when it was.

    The exit status is 1 when a controller of a workload is missing, does not answer, or follows other rules
    than the rest.
    """
    from ascar.cli.connection import roster
    from ascar.cli.file_output import check_new, write_new
    from ascar.cli.output import emit, people
    from ascar.cli.statuses import DONE, FAILED
    from ascar.errors import InputError
    from ascar.messaging import find_settings, run_interruptible

    if out is not None:
        check_new(out, force=force)
    settings = find_settings("manager", connection)
    shown, problems = run_interruptible(_show(settings, workload, roster()))
    groups = _by_workload(shown)
    if out is not None:
        if len(groups) != 1 or groups[0]["merged"] is None:
            raise InputError("--out: needs one workload whose controllers all follow the same rules; name it")
        write_new(out, groups[0]["merged"].text(), force=force)
    if json:
        emit("sharp-show", _result(groups, problems))
    else:
        _print(people(), groups, problems)
    return FAILED if problems or any(len(one["ids"]) > 1 for one in groups) else DONE


async def _show(
    settings: Settings, workload: str | None, known: Roster
) -> tuple[tuple[RuleUse, ...], list[ControllerProblem]]:
    from ascar.results.rule_deployment import ControllerProblem
    from ascar.sharp.deployment import Manager, open_link

    names = known.workloads() if workload is None else (workload,)
    expected = [one for one in map(known.expected, names) if one is not None]
    async with await open_link(settings, name="ascar sharp show") as link:
        shown, problems = await Manager(link).show(workload, sum(len(one.controllers) for one in expected))
    silent = {one.controller for one in problems}
    missing: list[ControllerProblem] = []
    for one in expected:
        there = {at.controller for at in shown if at.workload == one.workload}
        gone = sorted(set(one.controllers) - there - silent)
        missing += [ControllerProblem(name, f"is missing; it was to follow {one.rules}") for name in gone]
    return shown, [*problems, *missing]


def _by_workload(shown: tuple[RuleUse, ...]) -> list[dict[str, Any]]:
    from ascar.sharp import RuleSet
    from ascar.sharp.trials.bench import merged

    groups: list[dict[str, Any]] = []
    for workload in sorted({one.workload for one in shown}):
        there = [one for one in shown if one.workload == workload]
        ids = sorted({one.rules or "none" for one in there})
        texts = [one.text for one in there if one.text is not None]
        together: RuleSet | None = None
        if len(ids) == 1 and len(texts) == len(there):
            together = merged([RuleSet.parse(text) for text in texts])
        groups.append({"workload": workload, "ids": ids, "controllers": there, "merged": together})
    return groups


def _result(groups: list[dict[str, Any]], problems: list[ControllerProblem]) -> SharpShowResult:
    from ascar.results.rule_deployment import ControllerRules, DeployedWorkload, SharpShowResult
    from ascar.sharp.rule_results import rule_set_result

    return SharpShowResult(
        workloads=tuple(
            DeployedWorkload(
                workload=one["workload"],
                controllers=tuple(
                    ControllerRules(
                        controller=at.controller, rules=at.rules, on_trial=at.on_trial, left_s=at.left_s
                    )
                    for at in one["controllers"]
                ),
                rule_set=None if one["merged"] is None else rule_set_result(one["merged"]),
            )
            for one in groups
        ),
        problems=tuple(problems),
    )


def _print(out: Any, groups: list[dict[str, Any]], problems: list[ControllerProblem]) -> None:
    from ascar.cli.sharp.found import rules_table
    from ascar.render import duration
    from ascar.sharp.deployment.messages import least_left_s

    if not groups:
        out.print("no controllers are there")
    for one in groups:
        names = [at.controller for at in one["controllers"]]
        trial = ", on trial" if any(at.on_trial for at in one["controllers"]) else ""
        left_s = least_left_s(one["controllers"])
        left = "" if left_s is None else f", for {duration(left_s)} more"
        out.print(
            f"{one['workload']}: {len(names)} controllers, rules {', '.join(one['ids'])}{trial}{left}",
            soft_wrap=True,
            markup=False,
        )
        if one["merged"] is not None:
            out.print(rules_table(one["merged"]))
    for problem in problems:
        out.print(f"{problem}", soft_wrap=True, markup=False)
