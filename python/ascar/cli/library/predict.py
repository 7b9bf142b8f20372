"""`ascar library predict`: what rule sets would gain on a workload."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json, LibraryFile, LibraryWorkload, ObjectiveText, RuleSetId
from ascar.render import percentage

EXAMPLES = examples(
    "ascar library predict scenario.toml",
    "ascar library predict lib:random-write --rule-set 3f2a --json",
)
_SHOWN = 20


def predict(
    workload: LibraryWorkload,
    rules: RuleSetId = None,
    objective: ObjectiveText = "throughput",
    library: LibraryFile = None,
    json: Json = False,
) -> int:
    """Say what rule sets are expected to gain on a workload, and how sure that is."""
    from ascar.cli.library.workloads import objective_named, opened, seen
    from ascar.cli.output import emit, people
    from ascar.render import percent
    from ascar.results.library import LibraryPredictResult, PredictedGain
    from ascar.sharp.matching import Predictor

    wanted = objective_named(objective)
    kept = opened(library)
    ids = None if rules is None else [kept.solution_named(rules).id]
    named = seen(workload, kept)
    predictor = Predictor(kept, wanted.text)
    found = sorted(predictor.predict(named.features, ids), key=lambda one: (-one.gain, one.rules))
    if json:
        result = LibraryPredictResult(
            workload=named.name,
            objective=wanted.text,
            learned_from=len(predictor.gains),
            predicted=tuple(
                PredictedGain(
                    rules=one.rules, made_for=kept.solutions[one.rules].workload, gain=one.gain, sd=one.sd
                )
                for one in found
            ),
        )
        emit("library-predict", result)
        return 0
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("rules", "made for", "gain expected", "sd"):
        table.add_column(heading)
    for one in found[:_SHOWN]:
        table.add_row(one.rules, kept.solutions[one.rules].workload, percent(one.gain), percentage(one.sd, 1))
    out = people()
    out.print(table)
    out.print(
        f"{len(found)} rule sets; learned from {len(predictor.gains)} gains", soft_wrap=True, markup=False
    )
    return 0
