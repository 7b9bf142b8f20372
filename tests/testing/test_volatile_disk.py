"""A disk whose cut loses what was not flushed, block by block."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from ascar.testing import VolatileDisk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOCK = 4096
COUNT = 200


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.write_bytes(bytes(BLOCK * COUNT))
    return path


@pytest.fixture
def disk(image: Path) -> Iterator[VolatileDisk]:
    with VolatileDisk(image) as disk:
        yield disk


def blocks(disk: VolatileDisk) -> list[int]:
    content = disk.read(0, disk.size_bytes)
    parts = [content[at : at + BLOCK] for at in range(0, len(content), BLOCK)]
    assert all(part == part[:1] * BLOCK for part in parts), "a block is written as a whole"
    return [part[0] for part in parts]


def test_what_was_flushed_survives_and_the_rest_is_drawn_block_by_block(disk: VolatileDisk) -> None:
    disk.write(0, b"\1" * disk.size_bytes)
    disk.flush()
    disk.write(0, b"\2" * disk.size_bytes)
    disk.write(0, b"\3" * disk.size_bytes)
    assert blocks(disk) == [3] * COUNT
    assert disk.unflushed == COUNT
    lost = disk.cut(random.Random(1))
    found = blocks(disk)
    assert set(found) == {1, 2, 3}
    assert lost == COUNT - found.count(3)
    assert disk.unflushed == 0
    assert disk.cut(random.Random(2)) == 0 and blocks(disk) == found


def test_the_same_seed_loses_the_same(image: Path) -> None:
    found: list[list[int]] = []
    for _ in range(2):
        image.write_bytes(bytes(BLOCK * COUNT))
        with VolatileDisk(image) as disk:
            disk.write(BLOCK, b"\1" * BLOCK * 100)
            disk.cut(random.Random(7))
            found.append(blocks(disk))
    assert found[0] == found[1] and 0 < sum(found[0]) < 100


def test_a_proper_end_loses_nothing_and_a_disk_that_ignores_flushes_does(image: Path) -> None:
    with VolatileDisk(image, flushes=False) as disk:
        disk.write(0, b"\1" * disk.size_bytes)
    with VolatileDisk(image, flushes=False) as disk:
        assert blocks(disk) == [1] * COUNT
        disk.write(0, b"\2" * disk.size_bytes)
        disk.flush()
        assert disk.cut(random.Random(1)) > 0
        assert set(blocks(disk)) == {1, 2}


@pytest.mark.parametrize(("offset", "length"), [(1, BLOCK), (0, 1), (-BLOCK, BLOCK), (COUNT * BLOCK, BLOCK)])
def test_what_is_not_on_the_disk_is_refused(disk: VolatileDisk, offset: int, length: int) -> None:
    with pytest.raises(ValueError, match="are not whole sectors of a disk"):
        disk.write(offset, bytes(length))
    with pytest.raises(ValueError, match="are not whole sectors of a disk"):
        disk.read(offset, length)


def test_an_image_of_no_whole_blocks_is_refused(image: Path) -> None:
    image.write_bytes(bytes(BLOCK + 1))
    with pytest.raises(ValueError, match="has 4097 bytes"):
        VolatileDisk(image)


def test_a_write_of_a_part_is_lost_with_its_block(disk: VolatileDisk) -> None:
    disk.write(512, b"\1" * 512)
    disk.write(1024, b"\2" * 512)
    assert disk.unflushed == 1
    assert disk.read(0, 2048) == b"\0" * 512 + b"\1" * 512 + b"\2" * 512 + b"\0" * 512
    disk.cut(random.Random(1))
    parts = disk.read(512, 512)[:1] + disk.read(1024, 512)[:1]
    assert parts in {b"\0\0", b"\1\0", b"\1\2"}
