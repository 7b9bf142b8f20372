"""Arrays and a header in one npz file, read without pickle and checked in every part."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from ascar import typed
from ascar.errors import InputError, WorkError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_BYTES_MAX: Final = 4 << 30
_HEADER: Final = "header"


def write_archive(path: Path, header: msgspec.Struct, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a header and arrays; the file is replaced atomically, and on disk afterwards.

    Raises:
        WorkError: it cannot be written.
    """
    whole: dict[str, Any] = {**arrays, _HEADER: np.frombuffer(msgspec.json.encode(header), np.uint8)}
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            np.savez(file, **whole)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_directory(path.parent)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise WorkError(
            f"checkpoint {str(path)!r}: {problem.strerror}; free space or name another"
        ) from problem


def sync_directory(path: Path) -> None:
    """Bring to the disk which files a directory has: else a crash of the machine undoes a renaming.

    Raises:
        OSError: the disk does not take it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_archive(path: Path, form: str, version_max: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header, an object, and the arrays.

    Args:
        path: the file to read.
        form: the value of `format` in its header.
        version_max: the greatest `version` that is understood.

    Raises:
        InputError: it cannot be read, is of another form, is newer, or is damaged.
    """
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise refused(path, f"is larger than {_BYTES_MAX} bytes")
        content = path.read_bytes()
    except OSError as problem:
        raise InputError(
            f"checkpoint {str(path)!r}: {problem.strerror}; name a file that can be read"
        ) from problem
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            sizes = sum(one.file_size for one in file.zip.infolist())
            arrays = {name: np.asarray(file[name]) for name in file.files} if sizes <= _BYTES_MAX else None
    except Exception as problem:  # numpy and zipfile have a dozen kinds of errors for damaged files
        raise refused(path, "is damaged, or no such file at all") from problem
    if arrays is None:
        raise refused(path, f"would unpack to {sizes} bytes")
    return _header(path, arrays, form, version_max), arrays


def refused(path: Path, why: str) -> InputError:
    """The error that refuses a file."""
    return InputError(f"checkpoint {str(path)!r}: {why}; name one that `ascar capes` saved for this system")


def _header(path: Path, arrays: Mapping[str, NDArray[Any]], form: str, version_max: int) -> dict[str, Any]:
    raw = arrays.get(_HEADER)
    if raw is None or raw.dtype != np.uint8:
        raise refused(path, "has no header")
    try:
        about = typed.decode(raw.tobytes(), dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise refused(path, "its header is damaged") from problem
    if about.get("format") != form:
        raise refused(path, "is of another program")
    version = about.get("version")
    if not isinstance(version, int) or version > version_max:
        raise InputError(
            f"checkpoint {str(path)!r}: has version {version}, newer than {version_max}; use a newer ascar"
        )
    return about
