"""Checkpoints of the classic learner: networks, replay and counters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from ascar import typed
from ascar.capes.archive import read_archive, refused, write_archive
from ascar.capes.classic.hyperparameters import DeepQHyperparameters  # noqa: TC001  (msgspec reads it at run time)
from ascar.capes.classic.steps import leaves_of, with_leaves
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from ascar.capes.classic.learner import Classic

_FORMAT: Final = "ascar-capes"
_VERSION: Final = 1


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint's values beside its arrays.

    Attributes:
        format: always "ascar-capes".
        version: the version of the format.
        hyper: the hyperparameters of the learner.
        sizes: the sizes of the network's layers.
        indicators: names, in the order of the inputs; empty where nobody named them.
        knobs: names, in the order of the actions.
        ticks: the number of ticks that the exploration has seen.
        steps: the number of training steps.
        scale: the scale of the rewards.
        prediction_error: None before the first step.
    """

    format: str = _FORMAT
    version: int = _VERSION
    hyper: DeepQHyperparameters
    sizes: tuple[int, ...]
    indicators: tuple[str, ...] = ()
    knobs: tuple[str, ...]
    ticks: int
    steps: int
    scale: float
    prediction_error: float | None = None


def parts_of(learner: Classic, indicators: tuple[str, ...] = ()) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Header and arrays of a learner's checkpoint."""
    error = learner.prediction_error
    header = Header(
        hyper=learner.hyper,
        sizes=learner.sizes,
        indicators=indicators,
        knobs=learner.experience.knob_names,
        ticks=learner.experience.exploration.ticks,
        steps=learner.steps,
        scale=learner.experience.scale,
        prediction_error=None if math.isnan(error) else error,
    )
    return header, {f"leaf{at:04d}": np.asarray(leaf) for at, leaf in enumerate(leaves_of(learner.state))}


def leaves_into(learner: Classic, header: Header, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Set a learner to the state of a checkpoint's header and arrays.

    Raises:
        InputError: that one is of another network or of other knobs, or an array is not as it must be.
    """
    if header.sizes != learner.sizes:
        raise InputError(f"its layers are {header.sizes}, here they are {learner.sizes}")
    if header.knobs != learner.experience.knob_names:
        raise InputError(
            f"its knobs are {', '.join(header.knobs)}, not {', '.join(learner.experience.knob_names)}"
        )
    if header.hyper.optimizer != learner.hyper.optimizer:
        raise InputError(f"its optimizer is {header.hyper.optimizer}, not {learner.hyper.optimizer}")
    own = leaves_of(learner.state)
    leaves: list[Any] = []
    for at, leaf in enumerate(own):
        array = arrays.get(f"leaf{at:04d}")
        shape, dtype = np.shape(leaf), np.asarray(leaf).dtype
        if array is None or array.shape != shape or array.dtype != dtype:
            raise InputError(f"array {at} of {len(own)} is missing or has another shape")
        if dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"array {at} has values that are not finite")
        leaves.append(array)
    learner.state = with_leaves(learner.state, leaves)
    learner.steps = header.steps
    learner.experience.scale = header.scale
    learner.experience.exploration.ticks = header.ticks
    learner.prediction_error = math.nan if header.prediction_error is None else header.prediction_error


def save(path: Path, learner: Classic, indicators: tuple[str, ...] = ()) -> None:
    """Write a learner's checkpoint; the file is replaced atomically.

    Raises:
        WorkError: it cannot be written.
    """
    write_archive(path, *parts_of(learner, indicators))


def read_header(path: Path) -> Header:
    """The header of a checkpoint.

    Raises:
        InputError: it cannot be read, is no checkpoint of a learner, is newer, or is damaged.
    """
    return _read(path)[0]


def restore(path: Path, learner: Classic) -> Header:
    """Set a learner to the state of a checkpoint file.

    Args:
        path: the file of the checkpoint.
        learner: a learner with the same knobs and inputs.

    Raises:
        InputError: see `read_header`; or it is of another network, or of other knobs.
    """
    header, arrays = _read(path)
    try:
        leaves_into(learner, header, arrays)
    except InputError as problem:
        raise refused(path, problem.message) from problem
    return header


def _read(path: Path) -> tuple[Header, dict[str, NDArray[Any]]]:
    about, arrays = read_archive(path, _FORMAT, _VERSION)
    try:
        return typed.convert(about, Header, strict=False), arrays
    except (msgspec.ValidationError, InputError) as problem:
        raise refused(path, f"its header is wrong: {problem}") from problem
