"""Help for the tests of localfs: patience with others' locks, and what is left on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ascar.errors import AscarError, Refused
from ascar.program.node_binary import find_ascard
from ascar.systems.localfs import LocalFileSystem

PROGRAMS = ("mke2fs", "mkfs.xfs", "mkfs.btrfs", "losetup", "dumpe2fs", "xfs_info", "btrfs", "fio")
SIZE = "640 MiB"


def missing() -> str:
    """Why these tests cannot run here; empty where they can."""
    if os.geteuid() != 0:
        return "needs root: loop devices, mounts and control groups"
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    if lacking:
        return f"needs {', '.join(lacking)}"
    try:
        find_ascard()
    except AscarError as error:
        return error.message
    return ""


ROOT = [pytest.mark.root, pytest.mark.skipif(bool(missing()), reason=missing() or "everything is there")]


class Patient(LocalFileSystem):
    """Waits while another session on this machine holds a lock that it needs."""

    def __enter__(self) -> Patient:
        deadline_s = time.monotonic() + 100
        while True:
            try:
                super().__enter__()
            except Refused as refused:
                if "is locked by" not in refused.message or time.monotonic() > deadline_s:
                    raise
                time.sleep(0.3)
            else:
                return self


def entered(**options: Any) -> Patient:
    """A target, to be entered."""
    return Patient({"size": SIZE, **options})


def traces(directory: Path) -> list[str]:
    """What of an image in a directory is left on the machine."""
    found = [str(path) for path in directory.iterdir()]
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if str(directory) in backing.read_text():
                found.append(backing.parts[3])
        except OSError:
            continue  # detached by its owner meanwhile
    return found


def run(*arguments: str, **options: Any) -> str:
    return subprocess.run(
        arguments, capture_output=True, text=True, check=True, timeout=300, **options
    ).stdout
