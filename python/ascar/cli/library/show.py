"""`ascar library show`: a solution or a workload of a library, or what it has learned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import Json, LibraryFile, ObjectiveText
from ascar.render import percentage

if TYPE_CHECKING:
    from ascar.library import Library, SolutionEntry, WorkloadEntry
    from ascar.results.library import LearnedMetric, SolutionDetail, WorkloadDetail

EXAMPLES = examples(
    "ascar library show                     which features count, and a tree that predicts gains",
    "ascar library show random-write",
    "ascar library show 3f2a > rules.txt    a rule set, by the begin of its id",
)
_FEATURES_SHOWN = 15


def show(
    entry: Annotated[
        str | None, typer.Argument(metavar="[NAME|ID]", help="A workload, or the start of a solution's id.")
    ] = None,
    objective: ObjectiveText = "throughput",
    library: LibraryFile = None,
    json: Json = False,
) -> int:
    """Show a workload's features and gains, a solution's content, or, without a name, what was learned.

    What was learned from gains of rules: how many bits a change of each feature tells about what becomes of a
    gain (Li, section 3.1.7), and a regression tree of gains as ASCAR's slides show one.
    """
    from ascar.cli.library.workloads import objective_named, opened
    from ascar.cli.output import emit, people
    from ascar.results.library import LibraryShowResult

    wanted = objective_named(objective).text
    kept = opened(library)
    workload = kept.workloads.get(entry or "")
    solution = None if entry is None or workload is not None else kept.solution_named(entry)
    result = LibraryShowResult(
        objective=wanted,
        workload=None if workload is None else _workload(kept, workload, wanted),
        solution=None if solution is None else _detail(solution),
        learned=_learned(kept, wanted) if entry is None else None,
    )
    if json:
        emit("library-show", result)
        return 0
    out = people()
    for line in _solution_lines(result.solution):
        out.out(line, highlight=False)
    for line in (*_workload_lines(result.workload), *_learned_lines(result.learned)):
        out.print(line, soft_wrap=True, markup=False)
    return 0


def _workload(kept: Library, workload: WorkloadEntry, objective: str) -> WorkloadDetail:
    from ascar.results.library import WorkloadDetail, WorkloadGain

    gains = [
        WorkloadGain(
            solution=one.solution, gain=one.gain, gain_low=one.low, gain_high=one.high, pairs=one.pairs
        )
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


def _detail(entry: SolutionEntry) -> SolutionDetail:
    from ascar.results.library import SolutionDetail

    return SolutionDetail(
        id=entry.id,
        kind=entry.kind,
        content=entry.content,
        system=entry.system,
        workload=entry.workload,
        objective=entry.objective,
        how=entry.how,
        at=entry.at,
    )


def _learned(kept: Library, objective: str) -> LearnedMetric:
    from ascar.library import lines
    from ascar.results.library import FeatureShare, LearnedMetric
    from ascar.sharp.matching import Chooser

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
    from ascar.library import ABSENT
    from ascar.render import number
    from ascar.sharp.matching import EFFECTS, TRAITS

    if name.endswith(("_share", "_relative_sd")) or name in TRAITS or name in EFFECTS:
        return f"{value:.3g}"
    return "none" if value <= ABSENT / 2 else number(2.0**value, 3)


def _solution_lines(solution: SolutionDetail | None) -> list[str]:
    """A rule file as it is, or values as `[start] configurations` takes them."""
    if solution is None:
        return []
    if isinstance(solution.content, str):
        return solution.content.splitlines()
    import tomli_w

    return tomli_w.dumps(solution.content).splitlines()


def _workload_lines(workload: WorkloadDetail | None) -> list[str]:
    from ascar.render import estimate, number

    if workload is None:
        return []
    found = [f"{workload.name} ({workload.source}, {workload.at})", ""]
    known = {name: value for name, value in workload.features.items() if math.isfinite(value)}
    found += [f"  {name}: {number(value)}" for name, value in known.items()]
    found += ["", f"{len(workload.gains)} solutions were tried; the best:"]
    for one in workload.gains[:5]:
        found.append(f"  {one.solution}: {estimate(one.gain, one.gain_low, one.gain_high)}")
    return found


def _learned_lines(learned: LearnedMetric | None) -> list[str]:
    if learned is None:
        return []
    found = [f"what a change of each feature tells of a gain, from {learned.pairs} pairs of workloads:"]
    found += [
        f"  {one.feature}: {one.bits:.3f} bits, {percentage(one.share, 0)}"
        for one in learned.features[:_FEATURES_SHOWN]
    ]
    found += ["", f"gains by workload and rules, from {learned.gains} gains:"]
    return [*found, *(f"  {line}" for line in learned.tree)]
