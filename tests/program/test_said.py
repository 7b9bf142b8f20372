"""What programs say when they are asked: nothing where there is none or it hangs; noise does no harm."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ascar.errors import EnvironmentLacks
from ascar.program.redis import RedisPrograms
from ascar.program.said import Said, said_by

if TYPE_CHECKING:
    from pathlib import Path


def test_a_program_that_is_none_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for words in ((str(tmp_path / "gone"),), (str(tmp_path / "text"),), ("a\0b",)):
        assert said_by(*words) == Said()


def test_one_that_hangs_is_given_up() -> None:
    begun_s = time.monotonic()
    assert said_by("sleep", "60", limit_s=0.2) == Said()
    assert time.monotonic() - begun_s < 30


def test_bytes_that_are_no_text_do_no_harm() -> None:
    told = said_by("sh", "-c", r"printf 'v\377 7.0'; echo wrong >&2; exit 3")
    assert told == Said("v\ufffd 7.0", "wrong\n", 3)
    assert said_by("sh", "-c", "cat; echo $LC_ALL", environment={"LC_ALL": "C"}).out == "C\n"


def test_a_server_that_says_noise_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("redis-server", "valkey-server"):
        (tmp_path / name).write_text("#!/bin/sh\nprintf '\\377\\376'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks):
        RedisPrograms.find()
