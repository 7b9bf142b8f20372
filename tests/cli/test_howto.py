"""The commands with which how-tos begin, one after the other, in a minute instead of ten."""

from __future__ import annotations

import random
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks
from ascar.program.account import Account
from ascar.program.postgresql import Programs
from ascar.program.redis import RedisPrograms
from own_servers import nothing_is_left, server_place
from volumes import volume_that_reads_ahead

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

HOWTO = Path(__file__).parents[2] / "docs/howto"
SHORTER = {
    'budget = "10 min"': 'budget = "60 s"',
    '#load_min = "3 s"': 'load_min = "1 s"',
    '#load_max = "10 s"': 'load_max = "2 s"',
    "#trials = 100": "trials = 4",
    "#runs_min = 5": "runs_min = 2",
    "#runs_max = 1000": "runs_max = 2",
}
EXPORTED = {
    "postgresql": ({"shared_buffers", "work_mem"}, ("postgresql.conf", "alter-system")),
    "redis": ({"hz", "appendonly"}, ("redis.conf", "config-set")),
}
"""Parameters that a configuration has, and the forms that it is exported in."""
LOAD = """#!/bin/sh
# Reads a file from the disk, three times.
for turn in 1 2 3; do
    dd if="PATH/data" iflag=nocache count=0 status=none
    dd if="PATH/data" of=/dev/null bs=64k 2>&1 | awk '/copied/ { printf "rate %.0f\\n", 32 / $(NF - 3) }'
done
"""


def commands_of(kind: str) -> list[list[str]]:
    """The commands of ascar in the block of the page that begins a study."""
    blocks = re.findall(r"(?:^    .*\n)+", (HOWTO / f"{kind}.md").read_text("utf-8"), re.MULTILINE)
    block = next(one for one in blocks if f"ascar init {kind}" in one)
    lines = (shlex.split(line, comments=True) for line in block.splitlines())
    return [words[1:] for words in lines if words and words[0] == "ascar"]


def followed(ascar: Callable[..., Any], kind: str, changes: dict[str, str]) -> list[str]:
    """Run them here, with changes of the study that the first one writes; returns which ones they were."""
    begun: list[str] = []
    for words in commands_of(kind):
        done = ascar(*words)
        assert done.status in ({0, 3} if words[0] == "tune" else {0}), f"{words}: {done.out}{done.err}"
        begun.append(words[0])
        if words[0] == "init":
            file = Path(f"{kind}.toml")
            text = file.read_text()
            for before, after in {**SHORTER, **changes}.items():
                assert text.count(before) == 1, before
                text = text.replace(before, after)
            file.write_text(text)
    return begun


@pytest.mark.parametrize("kind", ["postgresql", "redis"])
def test_a_server_s_first_study(
    ascar: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    try:
        if kind == "postgresql":
            Programs.find()
            account = Account.of(None, "PostgreSQL", "postgres")
        else:
            RedisPrograms.find()
            account = Account.of(None, "Redis", "redis")
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
    monkeypatch.chdir(tmp_path)
    with server_place(account, "ascar-how-") as place:
        changes = {'#directory = "..."': f'directory = "{place}"'}
        assert followed(ascar, kind, changes) == ["init", "check", "tune", "export"]
        assert nothing_is_left(Path(place), {"postgresql": "postgres", "redis": "redis-server"}[kind])
        outcome = ascar("history", "show", kind, "--json").document["outcome"]
        assert outcome["counts"]["complete"] >= 2
        parameters, forms = EXPORTED[kind]
        assert set(outcome["best"]["configuration"]) >= parameters
        for form in forms:
            exported = ascar("export", kind, "--as", form, "--json").document
            assert len(exported["lines"]) >= len(exported["chosen"])


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
