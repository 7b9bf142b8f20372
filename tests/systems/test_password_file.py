"""Files with passwords of servers that people use: one line, of whatever editor, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ascar.errors import StudyError
from ascar.systems.existing.address import PasswordAddress

if TYPE_CHECKING:
    from pathlib import Path


def of_file(path: Path, content: bytes) -> PasswordAddress:
    path.write_bytes(content)
    path.chmod(0o600)
    return PasswordAddress(host="localhost", port=1, user=None, password_file=str(path))


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\r"])
def test_one_line_end_is_no_part_of_a_password(tmp_path: Path, end: bytes) -> None:
    wanted = " open sesame \u00e9 "
    assert of_file(tmp_path / "password", wanted.encode() + end).password() == wanted


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must hold the password, in one line"),
        (b"\r\n", "must hold the password, in one line"),
        (b"secret\n\n", "must hold the password, in one line"),
        (b"secret\r\nmore\r\n", "must hold the password, in one line"),
        (b"sec\tret\n", r"has '\\t' as sign 4; must have no control characters"),
        (b"secret\0\n", r"has '\\x00' as sign 7; must have no control characters"),
        ("secret\u0085".encode(), r"has '\\x85' as sign 7; must have no control characters"),
    ],
)
def test_what_no_password_has_is_refused_by_name(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(StudyError, match=r"^target\.password_file = .*: " + words) as told:
        of_file(tmp_path / "password", content).password()
    assert "secret" not in told.value.message
