"""Files of a machine, read here or by programs of a node; both tell the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ascar.errors import EnvironmentLacks
from ascar.nodes.local import LocalNode
from ascar.systems.counters import Counters
from ascar.systems.kernel_files import KernelFiles

if TYPE_CHECKING:
    from pathlib import Path

WAYS = pytest.mark.parametrize("files", [KernelFiles(), KernelFiles(LocalNode("there"))])


@WAYS
def test_several_files_are_read_at_once_and_those_that_cannot_be_are_empty(
    files: KernelFiles, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "a; touch broken"
    one.write_text("1\n")
    other.write_text("no\u0308\n\n")
    missing = tmp_path / "missing"
    assert files.texts([one, missing, other]) == {one: "1\n", missing: "", other: "no\u0308\n\n"}
    assert files.texts([]) == {}
    assert sorted(tmp_path.iterdir()) == sorted([one, other])


@WAYS
def test_bytes_below_a_directory_are_those_of_its_files(files: KernelFiles, tmp_path: Path) -> None:
    assert files.bytes_below(tmp_path) == 0
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a").write_bytes(b"x" * 1000)
    (tmp_path / "-b").write_bytes(b"x" * 10)
    (tmp_path / "link").symlink_to("12345")
    assert files.bytes_below(tmp_path) == 1015


def test_a_node_that_mixes_up_its_files_is_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a\0b")
    with pytest.raises(EnvironmentLacks, match=f"node there: {file}: cannot be read"):
        KernelFiles(LocalNode("there")).texts([file])
    with pytest.raises(EnvironmentLacks, match=f"node there: {tmp_path}/none: .*No such file"):
        KernelFiles(LocalNode("there")).bytes_below(tmp_path / "none")


def test_counters_of_a_node_are_those_of_its_kernel() -> None:
    here, there = (
        Counters({"disk": "none"}),
        Counters({"disk": "none"}, files=KernelFiles(LocalNode("there"))),
    )
    assert set(there.read()) == set(here.read()) - {"energy_j"}
    assert there.read()["cpu_busy_s"] > 0
