"""The commands with which the how-to of an application's disk begins."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from howtos import followed
from volumes import volume_that_reads_ahead

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

LOAD = """#!/bin/sh
# Reads a file from the disk, three times.
for turn in 1 2 3; do
    dd if="PATH/data" iflag=nocache count=0 status=none
    dd if="PATH/data" of=/dev/null bs=64k 2>&1 | awk '/copied/ { printf "rate %.0f\\n", 32 / $(NF - 3) }'
done
"""


@pytest.mark.root
@pytest.mark.machine
def test_the_first_study_of_an_application_s_disk(
    ascar: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kernel = [*Path("/proc/sys/vm").glob("dirty*"), Path("/proc/sys/vm/swappiness")]
    before = {file: file.read_text() for file in kernel}
    (tmp_path / "volume").mkdir()
    with volume_that_reads_ahead(tmp_path / "volume", read_ahead_kb=16) as place:
        (place / "data").write_bytes(random.Random(1).randbytes(2 << 20))
        subprocess.run(["sync", place / "data"], check=True)
        load = tmp_path / "my-load"
        load.write_text(LOAD.replace("PATH", str(place)))
        load.chmod(0o755)
        argv = 'argv = ["./my-load"]'
        metrics = "metrics = { throughput_ops_per_s = 'regex:^rate ([0-9]+)' }"
        changes = {'path = "/srv"': f'path = "{place}"', argv: f"{argv}\n{metrics}"}
        assert followed(ascar, "linux", changes) == ["init", "check", "tune"]
        assert {one.name for one in place.iterdir()} == {"data", "lost+found"}
    assert {file: file.read_text() for file in kernel} == before
