"""A classic learner on disk: arrays in one npz file, read without pickle and believed in nothing."""

from __future__ import annotations

import io
import os
import zipfile
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from ascar.capes.deep import leaves_of, with_leaves
from ascar.capes.hyperparameters import Hyperparameters  # noqa: TC001  (msgspec reads it at run time)
from ascar.errors import InputError, WorkError

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.capes.classic import Classic

__all__ = ["Header", "read_header", "restore", "save"]

_VERSION: Final = 1
_BYTES_MAX: Final = 4 << 30


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a learner beside its arrays.

    Attributes:
        format: always "ascar-capes".
        version: of the format.
        hyper: how it learns.
        sizes: of the network's layers.
        indicators: names, in the order of the inputs; empty where nobody named them.
        knobs: names, in the order of the actions.
        ticks: that its exploration has seen.
        steps: of training.
        scale: of its rewards.
        prediction_error: None before the first step.
    """

    format: str = "ascar-capes"
    version: int = _VERSION
    hyper: Hyperparameters
    sizes: tuple[int, ...]
    indicators: tuple[str, ...] = ()
    knobs: tuple[str, ...]
    ticks: int
    steps: int
    scale: float
    prediction_error: float | None = None


def save(path: Path, learner: Classic, indicators: tuple[str, ...] = ()) -> None:
    """Write a learner; a file that was there is replaced as a whole, or not at all.

    Raises:
        WorkError: it cannot be written.
    """
    error = learner.prediction_error
    header = Header(
        hyper=learner.hyper,
        sizes=learner.sizes,
        indicators=indicators,
        knobs=learner.mind.knob_names,
        ticks=learner.mind.exploration.ticks,
        steps=learner.steps,
        scale=learner.mind.scale,
        prediction_error=None if np.isnan(error) else error,
    )
    leaves = leaves_of(learner.state)
    arrays: dict[str, Any] = {f"leaf{at:04d}": np.asarray(leaf) for at, leaf in enumerate(leaves)}
    arrays["header"] = np.frombuffer(msgspec.json.encode(header), np.uint8)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise WorkError(
            f"checkpoint {str(path)!r}: {problem.strerror}; free space or name another"
        ) from problem


def read_header(path: Path) -> Header:
    """What a checkpoint says of itself.

    Raises:
        InputError: it cannot be read, is no checkpoint of a learner, is newer, or is damaged.
    """
    return _read(path)[0]


def restore(path: Path, learner: Classic) -> Header:
    """Put a learner where a checkpoint was left.

    Args:
        path: of the checkpoint.
        learner: of the same knobs and inputs.

    Raises:
        InputError: see `read_header`; or it is of another network, or of other knobs.
    """
    header, arrays = _read(path)
    if header.sizes != learner.sizes:
        raise _refused(path, f"its layers are {header.sizes}, here they are {learner.sizes}")
    if header.knobs != learner.mind.knob_names:
        raise _refused(
            path, f"its knobs are {', '.join(header.knobs)}, not {', '.join(learner.mind.knob_names)}"
        )
    if header.hyper.optimizer != learner.hyper.optimizer:
        raise _refused(path, f"its optimizer is {header.hyper.optimizer}, not {learner.hyper.optimizer}")
    own = leaves_of(learner.state)
    leaves: list[Any] = []
    for at, leaf in enumerate(own):
        array = arrays.get(f"leaf{at:04d}")
        shape, dtype = np.shape(leaf), np.asarray(leaf).dtype
        if array is None or array.shape != shape or array.dtype != dtype:
            raise _refused(path, f"array {at} of {len(own)} is missing or has another shape")
        if dtype.kind == "f" and not np.isfinite(array).all():
            raise _refused(path, f"array {at} has values that are not finite")
        leaves.append(array)
    learner.state = with_leaves(learner.state, leaves)
    learner.steps = header.steps
    learner.mind.scale = header.scale
    learner.mind.exploration.ticks = header.ticks
    learner.prediction_error = float("nan") if header.prediction_error is None else header.prediction_error
    return header


def _read(path: Path) -> tuple[Header, dict[str, np.ndarray[Any, Any]]]:
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise _refused(path, f"is larger than {_BYTES_MAX} bytes")
        content = path.read_bytes()
    except OSError as problem:
        raise InputError(
            f"checkpoint {str(path)!r}: {problem.strerror}; name a file that can be read"
        ) from problem
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            sizes = sum(one.file_size for one in file.zip.infolist())
            if sizes > _BYTES_MAX:
                raise _refused(path, f"would unpack to {sizes} bytes")
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except (ValueError, OSError, EOFError, KeyError, AttributeError, zipfile.BadZipFile) as problem:
        raise _refused(path, "is damaged, or no such file at all") from problem
    return _header(path, arrays), arrays


def _header(path: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> Header:
    raw = arrays.get("header")
    if raw is None or raw.dtype != np.uint8:
        raise _refused(path, "has no header")
    try:
        about = msgspec.json.decode(raw.tobytes(), type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError) as problem:
        raise _refused(path, "its header is damaged") from problem
    if about.get("format") != "ascar-capes":
        raise _refused(path, "is of another program")
    version = about.get("version")
    if not isinstance(version, int) or version > _VERSION:
        raise InputError(
            f"checkpoint {str(path)!r}: has version {version}, newer than {_VERSION}; use a newer ascar"
        )
    try:
        return msgspec.convert(about, Header, strict=False)
    except (msgspec.ValidationError, InputError) as problem:
        raise _refused(path, f"its header is wrong: {problem}") from problem


def _refused(path: Path, why: str) -> InputError:
    return InputError(f"checkpoint {str(path)!r}: {why}; name one that `ascar capes` saved for this system")
