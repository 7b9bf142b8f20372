"""The memory limit of a server of the study's own: in force, and gone again whatever happens."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ascar.errors import EnvironmentLacks, StudyError
from ascar.systems import open_target
from ascar.systems.postgresql import PostgreSQL
from ascar.systems.redis import Redis
from own_servers import server_place
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = {"postgresql": PostgreSQL, "redis": Redis}
LIMIT_BYTES = 64 << 20


@pytest.fixture(params=sorted(KINDS))
def options(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    kind = request.param
    try:
        target: Any = open_target({"kind": kind})
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
    with server_place(target._account, "ascar-mem-") as folder:
        yield {"kind": kind, "directory": folder, "memory_limit": "64 MiB"}


def group_of(pid: int) -> Path | None:
    """The control group of memory that a process is in; None: that of the machine."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, name = line.split(":", 2)
        roots = {"memory": "/sys/fs/cgroup/memory", "": "/sys/fs/cgroup"}
        if controllers in roots and "/ascar-" in name:
            return Path(roots[controllers] + name)
    return None


def limit_of(group: Path) -> int:
    for name in ("memory.max", "memory.limit_in_bytes"):
        if (group / name).exists():
            return int((group / name).read_text())
    raise AssertionError(f"{group} has no limit")


@pytest.mark.root
@pytest.mark.machine
def test_a_filled_server_is_under_the_limit_and_the_group_goes_with_it(options: dict[str, Any]) -> None:
    with KINDS[options["kind"]]({name: value for name, value in options.items() if name != "kind"}) as target:
        default = target.space.default()
        target.apply(default)
        assert target._server is not None
        assert group_of(target._server._processes[0].pid) is None, "the fill is not limited"
        target.settle()
        group = group_of(target._server._processes[0].pid)
        assert group is not None
        assert limit_of(group) == LIMIT_BYTES
        target.apply(default)
        assert group_of(target._server._processes[0].pid) == group
        assert target.describe()["memory_limit_bytes"] == LIMIT_BYTES
        assert target.describe()["memory_bytes"] == LIMIT_BYTES
    assert not group.exists()


@pytest.mark.root
@pytest.mark.machine
def test_after_kill_9_neither_group_nor_server_is_left(options: dict[str, Any]) -> None:
    script = (
        "import json, sys, time\n"
        "from ascar.systems import open_target\n"
        "with open_target(json.loads(sys.argv[1])) as target:\n"
        "    target.apply(target.space.default())\n"
        "    target.settle()\n"
        "    print(target._server._processes[0].pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    argv = [sys.executable, "-c", script, msgspec.json.encode(options).decode()]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        group = group_of(int(process.stdout.readline()))
        assert group is not None
        process.send_signal(signal.SIGKILL)
    place = Path(options["directory"])
    until(lambda: not group.exists() and not list(place.iterdir()), 120)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"memory_limit": "much"}, "target.memory_limit = 'much': is not a size"),
        ({"memory_limit": "31 MiB"}, "target.memory_limit = '31 MiB': must be at least 32 MiB"),
        (
            {"memory_limit": "1 GiB", "memory": "2 GiB"},
            "target.memory = '2 GiB': must be at most target.memory_limit",
        ),
    ],
)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_wrong_limit_is_one_line(kind: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises((StudyError, EnvironmentLacks)) as told:
        KINDS[kind](given)
    if isinstance(told.value, EnvironmentLacks):
        pytest.skip(told.value.message)
    assert told.value.message == words or words in told.value.message
