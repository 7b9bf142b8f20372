"""Sizes and directories of a study's tables, refused by their key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ascar.errors import StudyError
from ascar.study import absolute, size

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def test_a_size_at_its_limits_is_taken() -> None:
    assert size("target.size", "1 MiB", MIB, MIB) == MIB
    assert size("target.size", "0") == 0


@pytest.mark.parametrize(
    ("text", "most", "said"),
    [
        ("much", None, "target.size = 'much': is not a size"),
        ("1023 KiB", None, "target.size = '1023 KiB': must be at least 1 MiB"),
        ("1 KiB", 1 << 30, "target.size = '1 KiB': must be from 1 MiB to 1 GiB"),
        ("1025 MiB", 1 << 30, "target.size = '1025 MiB': must be from 1 MiB to 1 GiB"),
    ],
)
def test_a_wrong_size_is_refused(text: str, most: int | None, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        size("target.size", text, MIB, most)
    assert said in caught.value.message


def test_a_directory_is_named_by_its_whole_path(tmp_path: Path) -> None:
    assert absolute("target.path", str(tmp_path), is_there=True) == tmp_path
    assert absolute("target.path", f"{tmp_path}/none") == tmp_path / "none"
    (tmp_path / "file").touch()
    for wrong in ("relative", "/nul\0", f"{tmp_path}/none", f"{tmp_path}/file"):
        with pytest.raises(StudyError, match=r"target\.path = .*: must be the absolute path of a directory"):
            absolute("target.path", wrong, is_there=True)
