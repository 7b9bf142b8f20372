"""`ascar measure -- ascard load`: its lines are unit readings, its summary is the round's reading."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WML = """
define fileset name=f,size=1m,prealloc
define process name=p { thread name=t {
  flowop read name=fetch,filesetname=f,iosize=4k,random
  flowop opslimit name=limit } }
eventgen rate=2000
"""


def measured(*words: str | float | Path) -> dict:
    """The document of a session of `ascar measure`."""
    command = [sys.executable, "-m", "ascar", "measure", "--json", "--rounds-max", "2", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


def test_every_second_is_a_unit_reading_and_the_summary_none(ascard: Path, memory: Path) -> None:
    wml = memory / "paced.f"
    wml.write_text(WML)
    names = {"ops_per_s", "fetch_ms"}
    # A busy machine may skip a reading that came late; it never makes one more.
    for seconds in (1.05, 4.05, 16.05):
        load = [ascard, "load", "--wml", wml, "--dir", memory, "--seconds", seconds, "--reading-ms", "100"]
        document = measured(
            *("--metric", "ops_per_s=json:throughput_ops_per_s"),
            *("--metric", "fetch_ms=json:flowops.fetch.latency_ms_p99"),
            *("--preset", "strict", "--", *load),
        )
        told = [one["unit_readings"].get(name, 0) for one in document["rounds"] for name in names]
        assert max(told) <= 10 * seconds
        if min(told) >= 2:
            break
    assert min(told) >= 2, told
    by_name = {indicator["name"]: indicator for indicator in document["indicators"]}
    assert set(by_name) == names
    # A busy machine may slow one of two rounds; then they are compared, each by its unit readings.
    assert {indicator["basis"] for indicator in by_name.values()} <= {"unit readings", "rounds"}
    for one in document["rounds"]:
        assert 200 < one["readings"]["ops_per_s"] < 2600  # paced: a busy machine does less, none more
