"""Replaying a workload file with a record of its operations, to compare it with what it stands for."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from ascar.errors import InputError, StageFailed
from ascar.features import Trace, parse_load_record
from ascar.workloads.filebench import find_ascard

__all__ = ["replay"]

_FILL_S_MAX = 1800.0


def replay(wml: str, directory: Path, seconds: float) -> Trace:
    """Run a workload file by `ascard load`, and give back its record.

    Its files are made in a fresh directory inside `directory`, and removed at the end.

    Raises:
        EnvironmentLacks: there is no `ascard`.
        InputError: `directory` is none, or cannot be written.
        StageFailed: the load failed.
    """
    ascard = find_ascard()
    try:
        place = tempfile.TemporaryDirectory(prefix="ascar-replay-", dir=directory)
    except OSError as error:
        raise InputError(f"{str(directory)!r}: no files can be made there: {error.strerror}") from error
    with place as name:
        record = Path(name) / "record.csv"
        words = ["--wml", "-", "--dir", name, "--seconds", f"{seconds:.3f}", "--record", str(record)]
        try:
            done = subprocess.run(
                [ascard, "load", *words],
                input=wml.encode(),
                capture_output=True,
                timeout=seconds + _FILL_S_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise StageFailed("replay", f"ascard load took longer than {late.timeout:g} s") from late
        if done.returncode != 0:
            errors = done.stderr.decode("utf-8", "replace").strip()
            raise StageFailed("replay", " ".join(errors.split())[:500], errors)
        return parse_load_record(record.read_bytes())
