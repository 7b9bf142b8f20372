"""Cao's spaces on a real device: their counts; configurations drawn at random are made, mounted, loaded."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from localfs_support import ROOT, entered, traces

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.space import Guarantee, preset
from ascar.systems.administration import command_lines
from ascar.systems.localfs import LocalFileSystem
from ascar.systems.localfs_options import FILE_SYSTEMS
from ascar.systems.localfs_space import localfs_space
from ascar.systems.published_spaces import present_words, published_space
from ascar.systems.recipe import recipe_of

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from ascar.space import Configuration

GIB = 2**30
PUBLISHED = {"storage-v1": 2074, "storage-v2": 6222, "storage-v3": 3888, "storage-v4": 5184}
LARGE = 40 * GIB  # 512 allocation groups of XFS, each of which holds the log
CONFIGURATIONS = 5
WITHOUT_CHECKSUMS = "Deprecated V4 format (crc=0) not supported by kernel"
LACKING = ("nilfs2", "reiserfs")


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items())
def test_there_are_as_many_configurations_as_published(name: str, count: int) -> None:
    assert published_space(name).permit_weaker(Guarantee).count() == count


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items())
def test_a_large_device_offers_all_that_its_file_systems_have(
    name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ascar.systems.localfs_space.available_file_systems",
        lambda: tuple(fs for fs in FILE_SYSTEMS if fs not in LACKING),
    )
    space = localfs_space(LARGE, None, name)
    whole = preset(name).permit_weaker(Guarantee)
    here = [fs for fs in whole.domain("fs").each() if fs not in LACKING]
    assert space.count() == (whole.only("fs", here) if len(here) > 1 else whole).count() <= count


def test_every_parameter_of_every_space_is_said() -> None:
    for name in (*PUBLISHED, "storage-v5"):
        space = published_space(name).permit_weaker(Guarantee)
        for configuration in space.sample(np.random.default_rng(1), 300):
            recipe_of(configuration, space)


@pytest.mark.parametrize(
    ("name", "value", "fs", "words"),
    [
        ("inode_size_bytes", 256, "xfs", {"xfs_inode_size_bytes": 256, "xfs_checksums": False}),
        ("inode_size_bytes", 8192, "btrfs", {"btrfs_node_size_bytes": 8192}),
        ("inode_size_bytes", 128, "ext3", {"ext_inode_size_bytes": 128}),
        ("block_size_k", 2, "ext2", {"block_size_bytes": 2048}),
        ("block_size_k", 4, "btrfs", {}),
        ("block_group", 8, "ext4", {"ext_blocks_per_group": 8192}),
        ("block_group", 8, "xfs", {"xfs_allocation_groups": 8}),
        ("block_group", "n/a", "xfs", {}),
        ("block_group", 8, "nilfs2", {"nilfs2_blocks_per_segment": 8192}),
        ("block_size_k", 1, "nilfs2", {"block_size_bytes": 1024}),
        ("journal_option", "order=strict", "nilfs2", {"nilfs2_order": "strict"}),
        ("journal_option", "data=journal", "reiserfs", {"reiserfs_journal_mode": "journal"}),
        ("journal_option", "n/a", "reiserfs", {}),
        ("special_option", "notail", "reiserfs", {"reiserfs_tail_packing": False}),
        ("journal_option", "data=journal", "ext4", {"ext_journal_mode": "journal"}),
        ("journal_option", "writeback", "ext4", {"ext_journal_mode": "writeback"}),
        ("special_option", "compress", "btrfs", {"btrfs_compression": "zlib"}),
        ("special_option", "nodatasum", "btrfs", {"btrfs_data_mode": "nodatasum"}),
        ("allocation_groups", 512, "xfs", {"xfs_allocation_groups": 512}),
    ],
)
def test_a_parameter_in_present_words(name: str, value: int | str, fs: str, words: dict[str, object]) -> None:
    assert present_words(name, value, fs) == words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"preset": "storage-v3", "file_systems": ["xfs"]},
            "xfs: must be some of ext4, which storage-v3 has",
        ),
        ({"preset": "storage-v6"}, "storage-v6"),
        ({"preset": "storage-v1", "file_systems": ["jfs"]}, "'jfs': must be some of"),
    ],
)
def test_mistakes_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises((StudyError, EnvironmentLacks)) as caught:
        LocalFileSystem(options)
    assert words in caught.value.message


def test_an_export_is_in_the_words_of_mkfs() -> None:
    target = LocalFileSystem({"preset": "storage-v3"})
    configuration = target.space.validate(
        {
            **target.space.default(),
            "flex_group_size": 64,
            "inode_size_bytes": 512,
            "journal_option": "journal",
        }
    )
    lines = target.commands(configuration, ("flex_group_size", "inode_size_bytes", "journal_option"))["shell"]
    assert lines[0] == "mkfs.ext4 -I 512 -G 64 /dev/DEVICE"
    assert lines[1].startswith("mount -t ext4 -o data=journal")


@pytest.mark.parametrize(
    ("fs", "wanted", "making", "options"),
    [
        (
            "nilfs2",
            {"block_size_k": 1, "block_group": 8, "journal_option": "order=strict"},
            "mkfs.nilfs2 -b 1024 -B 8192 /dev/DEVICE",
            "order=strict",
        ),
        (
            "reiserfs",
            {"journal_option": "data=journal", "special_option": "notail"},
            "mkfs.reiserfs /dev/DEVICE",
            "data=journal,notail",
        ),
    ],
)
def test_an_export_of_what_few_kernels_have(
    fs: str, wanted: dict[str, int | str], making: str, options: str
) -> None:
    space = published_space("storage-v1").permit_weaker(Guarantee)
    configuration = space.nearest({**space.default(), "fs": fs, **wanted})
    lines = command_lines(configuration, space, ("fs", *wanted))["shell"]
    assert lines == [making, f"mount -t {fs} -o {options} /dev/DEVICE /MOUNTPOINT"]


def test_nilfs2_has_more_than_16_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """As mkfs.nilfs2 2.2.9 wants it: 16 segments and a block are the least."""
    monkeypatch.setattr("ascar.systems.localfs_space.available_file_systems", lambda: FILE_SYSTEMS)
    for size, groups in ((GIB + 4096, 64), (GIB, 32)):
        space = localfs_space(size, ("nilfs2",), "storage-v1")
        found = [one["block_group"] for one in space.enumerate() if one["block_size_k"] == 1]
        assert max(int(one) for one in found if one != "n/a") == groups


def load(directory: Path) -> None:
    """Files of some sizes, each on the device before the next, and read back."""
    for number, size in enumerate((1, 4096, 100_000)):
        path = directory / f"file{number}"
        content = os.urandom(size)
        with path.open("wb") as file:
            file.write(content)
            os.fsync(file.fileno())
        assert path.read_bytes() == content


def said(target: LocalFileSystem, configuration: Configuration) -> str:
    changed = target.space.departures(configuration)
    return ", ".join(f"{name} = {configuration[name]}" for name in ("fs", *changed))


@ROOT[0]
@ROOT[1]
@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize("name", PUBLISHED)
def test_configurations_drawn_at_random_are_made_mounted_and_loaded(
    name: str, tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture, figures: Counter[str]
) -> None:
    size = "40 GiB" if name == "storage-v4" else "2560 MiB"  # ext's tables of inodes are written
    refused: list[str] = []
    with (
        caplog.at_level(logging.WARNING),
        entered(preset=name, image=str(tmp_path / "image"), size=size, step_limit="5 min") as target,
    ):
        assert ("nilfs2, reiserfs cannot be made or mounted here" in caplog.text) == (name < "storage-v3")
        for configuration in target.space.sample(np.random.default_rng(seed), CONFIGURATIONS):
            try:
                target.apply(configuration)
                load(target.workspace.directory)
                target.settle()
                figures["made"] += 1
            except StageFailed as failure:
                if WITHOUT_CHECKSUMS in failure.message + failure.stderr:
                    figures["of a format that this kernel lacks"] += 1
                    continue
                refused.append(f"{said(target, configuration)}: {failure.message} {failure.stderr}")
    assert traces(tmp_path) == []
    assert target.restored is not None
    assert target.restored.failed == ()
    assert not refused, refused
