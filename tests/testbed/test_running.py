"""Nodes that take their time: nobody waits for one without need."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from ascar.errors import WorkError
from ascar.testbed import running
from ascar.testbed.file import testbed_of as bed_of
from ascar.testbed.folder import TestbedFolder as Folder
from ascar.testbed.running import RunningTestbed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT_S = 60.0


class SlowNode:
    """A node that boots when its gate is open."""

    def __init__(self, name: str) -> None:
        self.name, self.alive = name, False
        self.gate, self.boots, self._was_cut = threading.Event(), threading.Event(), threading.Event()
        self.at_boot: Callable[[], None] = lambda: None
        self.gate.set()

    def boot(self, limit_s: float) -> None:
        self._was_cut.clear()
        self.boots.set()
        self.at_boot()
        while not self.gate.wait(0.01):
            if self._was_cut.is_set():
                raise WorkError(f"node {self.name}: was cut")
        self.alive = True

    def cut(self) -> None:
        self.alive = False
        self._was_cut.set()

    close = cut


class SlowKind:
    """Their kind, which has nothing to share."""

    boots_disks = True

    def __init__(self) -> None:
        self.nodes = {name: SlowNode(name) for name in ("a", "b")}

    def begin(self, stack: ExitStack, limit_s: float) -> None: ...
    def join(self, name: str) -> None: ...
    def part(self, name: str) -> None: ...
    def settle(self) -> None: ...

    def machine(self, node: Any) -> SlowNode:
        return self.nodes[node.name]

    def folder(self, name: str) -> Path:
        return Path("/")

    def address(self, name: str) -> None:
        return None


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> SlowKind:
    kind = SlowKind()
    monkeypatch.setattr(running, "kind_of", lambda *_: kind)
    return kind


@pytest.fixture
def place(in_memory: Path | None) -> Iterator[Folder]:
    with TemporaryDirectory(prefix="ascar-", dir=in_memory) as path, Folder(Path(path) / "bed") as place:
        yield place


BED = bed_of({"testbed": {"name": "bed"}, "node": [{"name": "a"}, {"name": "b"}]}, Path("/"))


def booting(up: RunningTestbed, node: SlowNode, failed: list[str]) -> threading.Thread:
    """A thread that waits for the node to boot."""

    def boot() -> None:
        try:
            up.boot(node.name)
        except WorkError as error:
            failed.append(error.message)

    node.gate.clear()
    up.cut(node.name)
    node.boots.clear()
    thread = threading.Thread(target=boot, daemon=True)
    thread.start()
    assert node.boots.wait(LIMIT_S)
    return thread


def test_a_node_boots_while_another_waits_for_it(kind: SlowKind, place: Folder) -> None:
    with RunningTestbed(BED, place) as up:
        failed: list[str] = []
        up.cut("b")
        thread = booting(up, kind.nodes["a"], failed)
        up.look()
        assert [node.alive for node in up.nodes()] == [False, False]
        kind.nodes["b"].at_boot = kind.nodes["a"].gate.set
        up.boot("b")
        thread.join(LIMIT_S)
        assert not thread.is_alive() and failed == []
        up.look()
        assert [node.alive for node in up.nodes()] == [True, True]


def test_a_node_is_cut_while_it_boots(kind: SlowKind, place: Folder) -> None:
    with RunningTestbed(BED, place) as up:
        failed: list[str] = []
        thread = booting(up, kind.nodes["a"], failed)
        up.cut("a")
        thread.join(LIMIT_S)
        assert failed == ["node a: was cut"]
        assert [node.alive for node in up.nodes()] == [False, True]
        kind.nodes["a"].gate.set()
        up.boot("a")
        assert [node.alive for node in up.nodes()] == [True, True]


def test_the_end_waits_for_no_boot(kind: SlowKind, place: Folder) -> None:
    failed: list[str] = []
    with RunningTestbed(BED, place) as up:
        thread = booting(up, kind.nodes["a"], failed)
    thread.join(LIMIT_S)
    assert failed == ["node a: was cut"]
    assert not any(node.alive for node in kind.nodes.values())


def test_disks_end_side_by_side(kind: SlowKind, place: Folder) -> None:
    met = threading.Barrier(3, timeout=LIMIT_S)
    with RunningTestbed(BED, place) as up:
        up._disks = {name: cast("Any", SimpleNamespace(end=met.wait)) for name in "xyz"}
    assert not met.broken


def test_a_node_that_fails_is_told_before_those_that_wait_for_it(kind: SlowKind, place: Folder) -> None:
    def fail() -> None:
        raise WorkError("node a: has no disk")

    kind.nodes["a"].at_boot = fail
    kind.nodes["b"].gate.clear()
    with pytest.raises(WorkError, match="node a: has no disk"), RunningTestbed(BED, place):
        pass
    assert not any(node.alive for node in kind.nodes.values())


def test_a_node_that_cannot_be_connected_is_off(
    kind: SlowKind, place: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> None:
        raise WorkError(f"node {name}: no such device")

    with RunningTestbed(BED, place) as up:
        up.cut("a")
        monkeypatch.setattr(kind, "join", refuse)
        with suppress(WorkError):
            up.boot("a")
        up.look()
        assert [node.alive for node in up.nodes()] == [False, True]
