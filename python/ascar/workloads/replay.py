"""Replaying a workload file with a record of its operations, to compare it with what it stands for."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascar.errors import InputError, StageFailed
from ascar.features import Trace, at_native_pace, parse_load_record
from ascar.workloads.filebench import find_ascard

__all__ = ["replay"]

_FILL_S_MAX = 1800.0
_PACE_S_MAX = 5.0


def replay(wml: str, directory: Path, seconds: float) -> Trace:
    """Run a workload file by `ascard load`, and give back its record, at the pace it has without one.

    Recording takes time too: the fastest loads do a quarter less meanwhile. So a second run, of 5 s at most,
    goes without, and times are divided by what it was faster. The files are made in a fresh directory inside
    `directory`, and removed at the end.

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
        load = _Load(ascard, wml, Path(name))
        recorded = load.run(seconds, "--record", str(record))
        plain = load.run(min(seconds, _PACE_S_MAX), "--no-fill")
        trace = parse_load_record(record.read_bytes())
    slowdown = plain / recorded if recorded > 0 else 1.0
    return at_native_pace(trace, slowdown)


@dataclass(frozen=True, slots=True)
class _Load:
    """A workload file and where it runs."""

    ascard: Path
    wml: str
    directory: Path

    def run(self, seconds: float, *words: str) -> float:
        """Run it; operations on files a second."""
        command = [
            self.ascard,
            "load",
            "--wml",
            "-",
            "--dir",
            self.directory,
            "--seconds",
            f"{seconds:.3f}",
            *words,
        ]
        try:
            done = subprocess.run(
                command,
                input=self.wml.encode(),
                capture_output=True,
                timeout=seconds + _FILL_S_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise StageFailed("replay", f"ascard load took longer than {late.timeout:g} s") from late
        if done.returncode != 0:
            errors = done.stderr.decode("utf-8", "replace").strip()
            raise StageFailed("replay", " ".join(errors.split())[:500], errors)
        summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return float(summary["throughput_ops_per_s"])
