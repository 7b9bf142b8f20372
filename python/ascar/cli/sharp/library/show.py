"""`ascar sharp library show`: a rule set or a workload of a library, or what it has learned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import Json, LibraryFile, ObjectiveText

if TYPE_CHECKING:
    from ascar.results.sharp import LearnedMetric, RuleDetail, WorkloadDetail
    from ascar.sharp.library import Library, RulesEntry, WorkloadEntry

EXAMPLES = examples(
    "ascar sharp library show                     which features count, and a tree that predicts gains",
    "ascar sharp library show random-write",
    "ascar sharp library show 3f2a > rules.txt    a rule set, by the begin of its id",
)
_FEATURES_SHOWN = 15


def show(
    entry: Annotated[
        str | None, typer.Argument(metavar="[NAME|ID]", help="A workload, or a rule set.")
    ] = None,
    objective: ObjectiveText = "throughput",
    library: LibraryFile = None,
    json: Json = False,
) -> int:
    """Show a workload's features and gains, a rule set's text, or, without a name, what was learned.

    What was learned: how many bits a change of each feature tells about what becomes of a gain (Li, section
    3.1.7), and a regression tree of gains as ASCAR's slides show one.
    """
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.library.workloads import objective_named, opened
    from ascar.results.sharp import SharpLibraryShowResult

    wanted = objective_named(objective).text
    kept = opened(library)
    workload = kept.workloads.get(entry or "")
    rules = None if entry is None or workload is not None else kept.rules[kept.rules_named(entry)]
    result = SharpLibraryShowResult(
        objective=wanted,
        workload=None if workload is None else _workload(kept, workload, wanted),
        rules=None if rules is None else _rules(rules),
        learned=_learned(kept, wanted) if entry is None else None,
    )
    if json:
        emit("sharp-library-show", result)
        return 0
    out = people()
    if result.rules is not None:
        out.out(result.rules.text, end="")
    for line in (*_workload_lines(result.workload), *_learned_lines(result.learned)):
        out.print(line, soft_wrap=True, markup=False)
    return 0


def _workload(kept: Library, workload: WorkloadEntry, objective: str) -> WorkloadDetail:
    from ascar.results.sharp import WorkloadDetail, WorkloadGain

    gains = [
        WorkloadGain(rules=one.rules, gain=one.gain, gain_low=one.low, gain_high=one.high, pairs=one.pairs)
        for (_, name, aim), one in kept.gains.items()
        if name == workload.name and aim == objective
    ]
    return WorkloadDetail(
        name=workload.name,
        source=workload.source,
        at=workload.at,
        features=workload.values,
        gains=tuple(sorted(gains, key=lambda one: -one.gain)),
    )


def _rules(entry: RulesEntry) -> RuleDetail:
    from ascar.results.sharp import RuleDetail

    return RuleDetail(
        id=entry.id,
        text=entry.text,
        workload=entry.workload,
        objective=entry.objective,
        how=entry.how,
        at=entry.at,
    )


def _learned(kept: Library, objective: str) -> LearnedMetric:
    from ascar.results.sharp import FeatureShare, LearnedMetric
    from ascar.sharp.library import Chooser, lines

    chooser = Chooser(kept, objective)
    columns = chooser.predictor.columns
    return LearnedMetric(
        pairs=chooser.similarity.pairs,
        gains=len(chooser.predictor.gains),
        features=tuple(
            FeatureShare(feature=one.feature, bits=one.bits, share=one.share)
            for one in chooser.similarity.informative
        ),
        tree=tuple(lines(chooser.predictor.tree(), columns, _threshold)),
    )


def _threshold(name: str, value: float) -> str:
    """A threshold of a feature in its own unit."""
    from ascar.render import number
    from ascar.sharp.library import ABSENT, EFFECTS, TRAITS

    if name.endswith(("_share", "_relative_sd")) or name in TRAITS or name in EFFECTS:
        return f"{value:.3g}"
    return "none" if value <= ABSENT / 2 else number(2.0**value, 3)


def _workload_lines(workload: WorkloadDetail | None) -> list[str]:
    from ascar.render import estimate, number

    if workload is None:
        return []
    found = [f"{workload.name} ({workload.source}, {workload.at})", ""]
    known = {name: value for name, value in workload.features.items() if math.isfinite(value)}
    found += [f"  {name}: {number(value)}" for name, value in known.items()]
    found += ["", f"{len(workload.gains)} rule sets were tried; the best:"]
    for one in workload.gains[:5]:
        found.append(f"  {one.rules}: {estimate(one.gain, one.gain_low, one.gain_high)}")
    return found


def _learned_lines(learned: LearnedMetric | None) -> list[str]:
    if learned is None:
        return []
    found = [f"what a change of each feature tells of a gain, from {learned.pairs} pairs of workloads:"]
    found += [
        f"  {one.feature}: {one.bits:.3f} bits, {one.share:.0%}" for one in learned.features[:_FEATURES_SHOWN]
    ]
    found += ["", f"gains by workload and rules, from {learned.gains} gains:"]
    return [*found, *(f"  {line}" for line in learned.tree)]
