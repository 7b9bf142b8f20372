"""`ascar workload features`: how workloads press on storage, and how alike they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import Json, TraceForm
from ascar.render import percentage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.cli.workload.traces import TracedFile

EXAMPLES = examples(
    "ascar workload features trace.txt",
    "ascar workload features original.trace replay.csv      also how alike they are",
    "ascar workload features traces/ --json",
)


def features(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|DIR...", help="Files of traces, or directories whose files are all read."
        ),
    ],
    form: TraceForm = None,
    json: Json = False,
) -> int:
    """Tell the features of traces: mix of operations, sizes, positional and temporal gaps.

    Of several traces also their distances, from 0 (alike) to 1 (nothing in common); of two, each feature's
    difference. Positional gap: from the end of an operation to the begin of the next of its type by the same
    thread. Temporal gap: between the begins of consecutive operations of a type.
    """
    from ascar.cli.workload.traces import read_trace

    traced = [read_trace(path, form) for path in _all(files)]
    _emit(traced) if json else _print(traced)
    return 0


def _all(files: Sequence[Path]) -> list[Path]:
    """The files, and those in directories."""
    from ascar.errors import InputError

    found: list[Path] = []
    for path in files:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
        if not inside:
            raise InputError(f"{str(path)!r}: no file is in it; give a directory of traces")
        found += inside
    return found


def _differences(features: Sequence[dict[str, float]]) -> dict[str, float] | None:
    """Of two workloads, how far each feature of the second lies from that of the first."""
    from ascar.features import relative_differences
    from ascar.features.distance import SHARE_MIN

    return relative_differences(*features, share_min=SHARE_MIN) if len(features) == 2 else None


def _emit(traced: Sequence[TracedFile]) -> None:
    from ascar.cli.output import emit
    from ascar.features import CAO_FEATURES, cao_features, features_of, relative_distance
    from ascar.results.encode import extended
    from ascar.results.workload import WorkloadFeatures, WorkloadFeaturesResult

    features = [features_of(one.trace) for one in traced]
    result = WorkloadFeaturesResult(
        workloads=tuple(
            extended(
                WorkloadFeatures,
                one.facts,
                file=str(one.path),
                form=one.form,
                features=found,
                cao_features=dict(zip(CAO_FEATURES, map(float, cao_features(one.trace)), strict=True)),
            )
            for one, found in zip(traced, features, strict=True)
        ),
        distances=tuple(tuple(relative_distance(a, b) for b in features) for a in features),
        differences=_differences(features),
    )
    emit("workload-features", result)


def _print(traced: Sequence[TracedFile]) -> None:
    from rich.table import Table

    from ascar.cli.output import people
    from ascar.features import features_of, relative_distance
    from ascar.render import number
    from ascar.results.workload import TraceFacts

    features = [features_of(one.trace) for one in traced]
    differences = _differences(features)
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for one in traced:
        table.add_column(one.path.name, justify="right", overflow="fold")
    if differences is not None:
        table.add_column("difference", justify="right")
    for fact in TraceFacts.__struct_fields__:
        table.add_row(fact, *(number(getattr(one.facts, fact)) for one in traced))
    for name in features[0]:
        values = [number(found[name]) for found in features]
        if all(value == "-" for value in values):
            continue
        difference = (
            [] if differences is None else [percentage(differences[name], 1) if name in differences else "-"]
        )
        table.add_row(name, *values, *difference)
    console = people()
    console.print(table)
    if len(traced) > 1:
        console.print("\ndistances, from 0 (alike) to 1 (nothing in common):")
        for place, one in enumerate(traced):
            row = "  ".join(f"{relative_distance(features[place], b):.3f}" for b in features)
            console.print(f"  {row}  {one.path.name}", markup=False, soft_wrap=True)
