"""Turns of streams win back what sequential readers lose that are more than a disk reads ahead for."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from data_plane_peers import Proxy, Starter, disk_of, needed

if TYPE_CHECKING:
    from collections.abc import Callable

    from modelled_disk import ModelledDisk

READERS, SECONDS = 12, 8


def read_mb_per_s(path: Path) -> float:
    """Of processes that read in sequence side by side, each in a part of its own."""
    command = [
        needed("fio", "fio"), "--name=load", "--ioengine=nbd", f"--uri=nbd+unix:///disk?socket={path}",
        "--rw=read", "--bs=128k", "--iodepth=2", f"--numjobs={READERS}", "--offset_increment=900M",
        "--size=800M", "--time_based", "--ramp_time=1", f"--runtime={SECONDS}", "--group_reporting",
        "--output-format=json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=path.parent)
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout[done.stdout.index("{") :])
    return found["jobs"][0]["read"]["bw_bytes"] / 1e6


def deployed(proxy: Proxy, text: str) -> None:
    """Put rules in force for as long as the proxy runs."""
    asked = {"message": "rules.load/1", "rules": "a1", "text": text, "within_s": 600.0}
    assert proxy.ask(asked)["rules"] == "a1"


@pytest.mark.slow
def test_turns_win_back_what_twelve_sequential_readers_lose(
    disk: Callable[..., ModelledDisk], start: Starter, record_property: Callable[[str, object], None]
) -> None:
    server = disk(Path("read-ahead-cliff"))
    proxy = start.proxy(server.socket)
    measured = {"any": read_mb_per_s(disk_of(proxy))}
    every = "0,2147483647,0,2147483647,100,2147483647,100,0,0"
    deployed(proxy, f"1,2,active_files=4\n{every}\n")
    measured["4, by rules"] = read_mb_per_s(disk_of(proxy))
    turned = start.proxy(server.socket, "active_streams = 4\n")
    measured["4, by the file"] = read_mb_per_s(disk_of(turned))
    record_property("mb_per_s", measured)
    print(measured)  # noqa: T201
    assert measured["4, by rules"] > 1.3 * measured["any"], measured
    assert measured["4, by the file"] > 1.3 * measured["any"], measured
    assert (proxy.log(), turned.log()) == ("", "")
