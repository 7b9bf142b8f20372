"""Libraries and workloads as commands name them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascar.library import Library
    from ascar.objective import Objective
    from ascar.simulation import Scenario


@dataclass(frozen=True, slots=True)
class Named:
    """A workload that was named on the command line.

    Attributes:
        name: the name of the workload.
        features: the features of the workload.
        source: the source of the features.
        scenario: the scenario of a simulated workload; None for others.
    """

    name: str
    features: dict[str, float]
    source: str
    scenario: Scenario | None = None


def path_of(library: Path | None) -> Path:
    """The library's file."""
    from ascar.library import default_path

    return default_path() if library is None else library


def opened(library: Path | None) -> Library:
    """The library, to be read.

    Raises:
        InputError: there is none, or it is damaged.
    """
    from ascar.library import Library

    return Library.read(path_of(library))


def objective_named(text: str) -> Objective:
    """The objective.

    Raises:
        InputError: it is none.
    """
    from ascar.sharp import objective_of

    return objective_of(text)


def seen(workload: str, library: Library | None = None) -> Named:
    """The workload and its features; a simulated one is run for as long as a signature.

    Raises:
        InputError: there is none of that name, or it cannot be read.
        WorkError: it does nothing.
    """
    from ascar.cli.workload.traces import read_trace
    from ascar.errors import InputError
    from ascar.sharp.matching import observed, workload_features
    from ascar.simulation import PRESETS, open_scenario

    if workload.startswith("lib:"):
        name = workload.removeprefix("lib:")
        if library is None or name not in library.workloads:
            raise InputError(f"{workload[:120]!r}: the library has no such workload; see `ascar library ls`")
        return Named(name, library.workloads[name].values, library.workloads[name].source)
    if workload in PRESETS or workload.endswith(".toml"):
        scenario = open_scenario(workload)
        return Named(scenario.name, observed(scenario), f"simulated: {scenario.name}", scenario)
    path = Path(workload)
    if not path.exists():
        raise InputError(
            f"workload {workload[:120]!r}: is not a file, and none of the presets {', '.join(PRESETS)}"
        )
    traced = read_trace(path, None)
    return Named(path.stem, workload_features(traced.trace), f"{traced.form} trace {path.name}")


def nullable(features: dict[str, float]) -> dict[str, Any]:
    """Features ready for JSON."""
    return {name: None if math.isnan(value) else value for name, value in features.items()}
