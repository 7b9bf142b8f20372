"""Redis servers that answer at once overflow a small queue and wait for timers; a window prevents it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.incast import UNLIMITED, turn

from ascar.testbed.namespace import lacks
from live_redis import redis_installed

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = Path(__file__).parents[2] / "examples" / "proxy" / "incast.toml"
MISSING = lacks() or (None if redis_installed() else "no redis-server is installed")
SERVERS, ATTEMPTS = 16, 3


@pytest.mark.slow
@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
def test_throughput_collapses_without_a_window_and_recovers_with_it(
    record_property: Callable[[str, object], None],
) -> None:
    for attempt in range(ATTEMPTS):
        found = turn(SERVERS, attempt, 3.0)
        record_property(f"attempt {attempt}", found)
        print(found)  # noqa: T201
        none, held = found[UNLIMITED], found["window 1"]
        assert min(one["rounds"] for one in found.values()) > 0
        assert none["lost_per_s"] > 0, found
        lost, fast, last = (held[name] / none[name] for name in ("lost_per_s", "mb_per_s", "round_ms_p99"))
        if lost < 0.1 and fast > 1.3 and last < 0.5:
            return
    pytest.fail(f"in none of {ATTEMPTS} attempts: {found}")


def test_the_example_is_a_file_of_the_proxy(ascard: Path, tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    command = [ascard, "proxy", "--check", "--config", tmp_path / EXAMPLE.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
