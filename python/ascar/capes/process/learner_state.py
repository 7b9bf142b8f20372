"""The state that a learner's process keeps from one start to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from ascar import typed
from ascar.capes.archive import read_archive, refused, write_archive
from ascar.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_FORMAT: Final = "ascar-capes-learner"
_VERSION: Final = 1


class LearnerState(msgspec.Struct, frozen=True, kw_only=True, rename={"policy": "brain"}):
    """The state beside the arrays.

    Attributes:
        format: always "ascar-capes-learner".
        version: the version of the format.
        algorithm: "modern" or "classic".
        objective: the objective, as text.
        keys: the keys of the knobs, in their order.
        nodes: the observed nodes.
        indicators: the observed indicators.
        tick: the last one that it has learnt from.
        starts: the number of starts of the process, this one included.
        changes: actions that were applied.
        refused: actions that were not.
        baselines: performance at the initial setting, tick by tick, for each workload.
        policy: the values that the policy has learned, beside the arrays.
    """

    format: str = _FORMAT
    version: int = _VERSION
    algorithm: str
    objective: str
    keys: tuple[str, ...]
    nodes: tuple[str, ...]
    indicators: tuple[str, ...]
    tick: int
    starts: int
    changes: int
    refused: int
    baselines: dict[str, tuple[float, ...]]
    policy: dict[str, Any]


def write_state(path: Path, state: LearnerState, arrays: dict[str, NDArray[Any]]) -> None:
    """Write a state; the file is replaced atomically.

    Raises:
        WorkError: it cannot be written.
    """
    write_archive(path, state, arrays)


def read_state(path: Path) -> tuple[LearnerState, dict[str, NDArray[Any]]] | None:
    """Read a state; None where there is no file.

    Raises:
        InputError: it cannot be read, is none, is newer, or is damaged.
    """
    if not path.exists():
        return None
    about, arrays = read_archive(path, _FORMAT, _VERSION)
    try:
        state = typed.convert(about, LearnerState)
    except msgspec.ValidationError as problem:
        raise refused(path, f"its header is wrong: {problem}") from problem
    usual = arrays.get("usual")
    if usual is None or usual.shape != (len(state.indicators),) or usual.dtype != np.float64:
        raise refused(path, "array usual is missing or has another shape")
    if not np.isfinite(usual).all() or (usual < 0).any():
        raise refused(path, "array usual holds impossible values")
    return state, arrays


def check_fits(path: Path, state: LearnerState, algorithm: str, objective: str) -> None:
    """Check that a state is of this algorithm and objective.

    Raises:
        InputError: it is of another algorithm or objective.
    """
    for what, there, here in (
        ("algorithm", state.algorithm, algorithm),
        ("objective", state.objective, objective),
    ):
        if there != here:
            raise InputError(
                f"state = {str(path)!r}: was learnt with {what} {there!r}, not {here!r}; name another file, "
                "or remove this one to learn anew"
            )
