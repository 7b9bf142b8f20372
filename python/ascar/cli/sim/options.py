"""What `ascar sim run` and `ascar sim sweep` are both told."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.simulation import Scenario

_NUMBERS_MAX = 1_000


def scenario_of(named: str, seconds: str | None, seed: int | None, settings: list[str] | None) -> Scenario:
    """The scenario that is meant, with what the command line changes.

    Raises:
        InputError: there is no such scenario, or a key or option is wrong.
    """
    from ascar.simulation import open_scenario, with_settings

    return timed(with_settings(open_scenario(named), settings or ()), seconds, seed)


def timed(scenario: Scenario, seconds: str | None, seed: int | None) -> Scenario:
    """The scenario with another duration or seed; None leaves each as it is.

    Raises:
        InputError: one of them is wrong.
    """
    import msgspec

    from ascar.simulation.reading import check
    from ascar.study import duration

    if seconds is None and seed is None:
        return scenario
    scenario = msgspec.structs.replace(
        scenario,
        duration_s=scenario.duration_s if seconds is None else duration("--duration", seconds),
        seed=scenario.seed if seed is None else seed,
    )
    check(scenario)
    return scenario


def check_plots(directory: Path | None, ending: str) -> None:
    """Refuse plots that cannot be written, before any work is done.

    Raises:
        InputError: the format is unknown, the folder is a file, or nothing is installed that draws.
    """
    from ascar.errors import InputError
    from ascar.extras import require

    if ending not in ("svg", "png"):
        raise InputError(f"--plot-format = {ending!r}: must be svg or png")
    if directory is None:
        return
    if directory.exists() and not directory.is_dir():
        raise InputError(f"--plots = {str(directory)!r}: is a file; name a folder")
    require("matplotlib")


def numbers(key: str, text: str) -> tuple[float, ...]:
    """Numbers of a list with commas, each once, in their order.

    Raises:
        InputError: one is not a number, there is none, or there are too many.
    """
    from ascar.errors import InputError

    found: list[float] = []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{key} = {text[:80]!r}: must be numbers from 0 on with commas between them")
        found.append(value)
    if len(found) > _NUMBERS_MAX:
        raise InputError(f"{key}: has {len(found)} numbers; at most {_NUMBERS_MAX}")
    return tuple(dict.fromkeys(found))
