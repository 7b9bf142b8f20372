"""An application's disk by the commands: tuned from a bad start, killed; everything is put back."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.volumes import READ_LIMIT

from ascar.systems.mount_table import mount_around
from killed_studies import comes_back, killed_study
from volumes import read_ahead_of, volume_that_reads_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.root, pytest.mark.machine, pytest.mark.slow]

READ_AHEAD_KB = 4
TEXT = """
[study]
name = "streams"
objective = "maximize throughput_bytes_per_s"
budget = "80 s"
[target]
kind = "linux"
path = "PATH"
[space]
tuned = ["block_read_ahead_kb", "block_nomerges", "block_rq_affinity", "ext4_mb_stream_req"]
[workload]
kind = "command"
argv = ["./stream.sh", "PATH/data"]
[workload.metrics]
throughput_bytes_per_s = 'regex:^rate ([0-9]+)'
[verify]
p_value = 0.05
"""
STREAM = """#!/bin/sh
# Reads a file from the disk in small pieces, four times; prints bytes per second.
for turn in 1 2 3 4; do
    dd if="$1" iflag=nocache count=0 status=none
    dd if="$1" of=/dev/null bs=4k 2>&1 | awk '/copied/ { printf "rate %.0f\\n", $1 / $(NF - 3) }'
done
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A volume of 1,000 reads a second, which reads too little ahead, with a file."""
    if not READ_LIMIT.exists():
        pytest.skip("the kernel has no limit of reads for control groups of version 1")
    with volume_that_reads_ahead(tmp_path, read_ahead_kb=READ_AHEAD_KB, reads_per_s=1000) as mounted:
        (mounted / "data").write_bytes(random.Random(1).randbytes(2 << 20))
        subprocess.run(["sync", mounted / "data"], check=True)
        yield mounted
        assert names_in(mounted) == {"data", "lost+found"}


@pytest.fixture
def study(tmp_path: Path, place: Path) -> Path:
    load = tmp_path / "stream.sh"
    load.write_text(STREAM)
    load.chmod(0o755)
    path = tmp_path / "streams.toml"
    path.write_text(TEXT.replace("PATH", str(place)))
    return path


def names_in(place: Path) -> set[str]:
    return {one.name for one in place.iterdir()}


def rates(load: Path, place: Path, read_ahead_kb: int) -> list[float]:
    """The rates of a load with a read-ahead."""
    queue = read_ahead_of(place)
    before = queue.read_text()
    queue.write_text(str(read_ahead_kb))
    done = subprocess.run([load, place / "data"], capture_output=True, text=True, check=True)
    queue.write_text(before)
    return [float(line.split()[1]) for line in done.stdout.splitlines()]


def test_what_a_bad_read_ahead_costs_is_won_back(
    ascar: Callable[..., Any], study: Path, place: Path, tmp_path: Path
) -> None:
    tuned = ascar("tune", study, "--json")
    assert tuned.status == 0, tuned.err
    assert tuned.document["verdict"]["kind"] == "improved"
    found = tuned.document["recommended"]["block_read_ahead_kb"]
    load, turns = tmp_path / "stream.sh", {READ_AHEAD_KB: [], found: [], 1024: []}
    for read_ahead_kb, seen in turns.items():
        seen.extend(rates(load, place, read_ahead_kb))
    bad, won, best = (median(turns[one]) for one in (READ_AHEAD_KB, found, 1024))
    assert best > 5 * bad, "the effect is known"
    assert won > 5 * bad
    lines = ascar("export", "streams", "--as", "shell", "--json").document["lines"]
    assert any(line.endswith("queue/read_ahead_kb") for line in lines), lines


def test_an_application_that_is_at_work_is_the_load(
    ascar: Callable[..., Any], study: Path, place: Path, tmp_path: Path
) -> None:
    text = study.read_text()
    study.write_text(text[: text.index("[workload]")] + text[text.index("[verify]") :])
    words = f"while :; do {tmp_path}/stream.sh {place}/data; done"
    with subprocess.Popen(
        ["sh", "-c", words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as application:
        try:
            tuned = ascar("tune", study, "--json")
        finally:
            os.killpg(application.pid, signal.SIGKILL)
    assert tuned.status == 0, tuned.err
    assert tuned.document["verdict"]["kind"] == "improved"
    assert tuned.document["recommended"]["block_read_ahead_kb"] >= 64
    metrics = tuned.document["best"]["metrics"]
    assert {"throughput_ops_per_s", "latency_ms_mean_read"} <= set(metrics)


def test_killed_at_any_moment_the_disk_is_as_before(study: Path, place: Path, seed: int) -> None:
    draw, queue = random.Random(seed), read_ahead_of(place)

    def state() -> tuple[str, set[str]]:
        return queue.read_text().strip(), names_in(place)

    before = str(READ_AHEAD_KB), {"data", "lost+found"}
    for _ in range(3):
        killed_study(study, draw.uniform(1.0, 12.0), queue.read_text)
        assert comes_back(state, before) == before


def test_killed_at_any_moment_the_mount_is_as_before(study: Path, place: Path, seed: int) -> None:
    draw, options = random.Random(seed), mount_around(str(place)).options
    text = study.read_text().replace(
        "[space]", 'remounts = "allowed"\n[space]\nallow_weaker = ["durability"]'
    )
    study.write_text(re.sub("tuned = .*", 'tuned = ["mount_atime", "mount_ext4_commit"]', text))

    def state() -> tuple[tuple[str, ...], set[str]]:
        return mount_around(str(place)).options, names_in(place)

    before, seen = (options, {"data", "lost+found"}), set[tuple[str, ...]]()
    for _ in range(4):
        seen |= killed_study(study, draw.uniform(2.0, 12.0), lambda: mount_around(str(place)).options)
        assert comes_back(state, before) == before
    assert len(seen) > 1, "the study has remounted it"
