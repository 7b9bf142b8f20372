"""`ascar sharp library show`: a rule set or a workload of a library, or what it has learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ascar.cli.options import Json, LibraryFile, ObjectiveText, examples

if TYPE_CHECKING:
    from ascar.sharp.library import Library, WorkloadEntry

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
    from ascar.cli.sharp.library.workloads import nullable, objective_named, opened

    wanted = objective_named(objective).text
    kept = opened(library)
    document: dict[str, Any] = {"objective": wanted, "workload": None, "rules": None, "learned": None}
    out = people()
    if entry is None:
        document["learned"] = _learned(kept, wanted)
    elif entry in kept.workloads:
        one = kept.workloads[entry]
        document["workload"] = {
            "name": one.name,
            "source": one.source,
            "at": one.at,
            "features": nullable(one.values),
            "gains": _gains(kept, one, wanted),
        }
    else:
        rules = kept.rules[kept.rules_named(entry)]
        document["rules"] = {
            "id": rules.id,
            "text": rules.text,
            "workload": rules.workload,
            "objective": rules.objective,
            "how": rules.how,
            "at": rules.at,
        }
    if json:
        emit("sharp-library-show", document)
    elif document["rules"] is not None:
        out.out(document["rules"]["text"], end="")
    elif document["workload"] is not None:
        for line in _workload_lines(document["workload"]):
            out.print(line, soft_wrap=True, markup=False)
    else:
        for line in _learned_lines(document["learned"]):
            out.print(line, soft_wrap=True, markup=False)
    return 0


def _gains(kept: Library, workload: WorkloadEntry, objective: str) -> list[dict[str, Any]]:
    found = [
        {"rules": one.rules, "gain": one.gain, "gain_low": one.low, "gain_high": one.high, "pairs": one.pairs}
        for (_, name, aim), one in kept.gains.items()
        if name == workload.name and aim == objective
    ]
    return sorted(found, key=lambda one: -float(one["gain"] or 0))


def _learned(kept: Library, objective: str) -> dict[str, Any]:
    from ascar.sharp.library import Chooser, lines

    chooser = Chooser(kept, objective)
    columns = chooser.predictor.columns
    return {
        "pairs": chooser.similarity.pairs,
        "gains": len(chooser.predictor.gains),
        "features": [
            {"feature": one.feature, "bits": one.bits, "share": one.share}
            for one in chooser.similarity.informative
        ],
        "tree": list(lines(chooser.predictor.tree(), columns, _threshold)),
    }


def _threshold(name: str, value: float) -> str:
    """A threshold of a feature in its own unit."""
    from ascar.render import number
    from ascar.sharp.library import ABSENT, EFFECTS, TRAITS

    if name.endswith(("_share", "_relative_sd")) or name in TRAITS or name in EFFECTS:
        return f"{value:.3g}"
    return "none" if value <= ABSENT / 2 else number(2.0**value, 3)


def _workload_lines(workload: dict[str, Any]) -> list[str]:
    from ascar.render import number, percent

    found = [f"{workload['name']} ({workload['source']}, {workload['at']})", ""]
    found += [
        f"  {name}: {number(value)}" for name, value in workload["features"].items() if value is not None
    ]
    found += ["", f"{len(workload['gains'])} rule sets were tried; the best:"]
    for one in workload["gains"][:5]:
        low, high = one["gain_low"], one["gain_high"]
        interval = "" if low is None else f" ({percent(low)} to {percent(high)})"
        found.append(f"  {one['rules']}: {percent(one['gain'])}{interval}")
    return found


def _learned_lines(learned: dict[str, Any]) -> list[str]:
    found = [f"what a change of each feature tells of a gain, from {learned['pairs']} pairs of workloads:"]
    found += [
        f"  {one['feature']}: {one['bits']:.3f} bits, {one['share']:.0%}"
        for one in learned["features"][:_FEATURES_SHOWN]
    ]
    found += ["", f"gains by workload and rules, from {learned['gains']} gains:"]
    return [*found, *(f"  {line}" for line in learned["tree"])]
