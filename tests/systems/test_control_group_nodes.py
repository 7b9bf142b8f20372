"""Control groups of version 2, of memory and processors, on the kernel of a node."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ascar
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_parts import KernelParts
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = KernelParts("one", memory_mib=512, visible=(str(Path(ascar.__file__).parents[2]), sys.prefix))
LACK = KernelNode.missing(PARTS)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(LACK is not None, reason=str(LACK))]
MIB = 1 << 20
GROUP = "app.slice/my.service"
START = f"""
cd /sys/fs/cgroup
mkdir -p {GROUP}
for place in . app.slice; do echo '+memory +cpu' > $place/cgroup.subtree_control; done
sleep 10000 > /dev/null 2>&1 &
echo $! > {GROUP}/cgroup.procs
"""
FILES = ("memory.high", "memory.low", "cpu.weight", "cpu.max")
STUDY = """
import json, os, sys
import numpy
from ascar.systems.linux import Linux
from ascar.errors import AscarError
told = []
try:
    with Linux(json.loads(sys.argv[1])) as target:
        for one in target.space.sample(numpy.random.default_rng(1), 8):
            target.apply(one)
            target.sample()
            told.append([dict(one), dict(target.read(target.space.names))])
        target.apply(target.space.default().replaced(**json.loads(sys.argv[2])))
        told.append([open(f"/sys/fs/cgroup/{sys.argv[3]}/{name}").read() for name in sys.argv[4].split()])
        if len(sys.argv) > 5:
            os.kill(os.getpid(), 9)
except AscarError as error:
    told.append(error.message)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelNode]:
    with KernelNode(PARTS, tmp_path_factory.mktemp("kept")) as node:
        node.boot(120)
        # Where the keeper of root's has its journal.
        assert node.run(["mount", "-t", "tmpfs", "tmpfs", "/var/lib"], 30).status == 0
        done = node.run(["sh", "-ec", START], 30)
        assert done.status == 0, done.err
        yield node


def state(node: KernelNode) -> list[str]:
    return (
        node.run(["cat", *(f"/sys/fs/cgroup/{GROUP}/{one}" for one in FILES)], 30).out.decode().splitlines()
    )


def studied(node: KernelNode, *more: str) -> tuple[int, Any]:
    names = ["cgroup.memory.high", "cgroup.memory.low", "cgroup.cpu.weight", "cgroup.cpu.max"]
    changes = {"cgroup_memory_high": 256 * MIB, "cgroup_cpu_weight": 300, "cgroup_cpu_max": 50000}
    given = (json.dumps({"cgroup": GROUP, "settings": names}), json.dumps(changes), GROUP, " ".join(FILES))
    environment = [
        f"PYTHONPATH={Path(ascar.__file__).parents[1]}",
        "XDG_STATE_HOME=/tmp/state",
        "HOME=/tmp",
        "PYTHONDONTWRITEBYTECODE=1",
    ]
    done = node.run(["env", *environment, sys.executable, "-c", STUDY, *given, *more], 300)
    assert done.status in (0, -signal.SIGKILL), done.err
    return done.status, json.loads(done.out.decode().strip().splitlines()[-1] if done.out.strip() else "null")


def test_settings_of_version_2_are_in_force_and_put_back(node: KernelNode) -> None:
    before = state(node)
    assert before == ["max", "0", "100", "max 100000"]
    _, (*drawn, last) = studied(node)
    assert len(drawn) == 8
    for wanted, found in drawn:
        assert wanted == found
    assert last == [f"{256 * MIB}\n", "0\n", "300\n", "50000 100000\n"]
    assert state(node) == before


def test_settings_of_a_killed_study_are_put_back(node: KernelNode) -> None:
    before = state(node)
    status, _ = studied(node, "die")
    assert status == -signal.SIGKILL
    until(lambda: state(node) == before, 60)
