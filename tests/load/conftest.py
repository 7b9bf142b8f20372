"""Running `ascard load` as a process: start, signals, exit statuses, lines."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Done:
    """What a load left behind."""

    status: int
    lines: list[dict[str, Any]]
    errors: str

    @property
    def summary(self) -> dict[str, Any]:
        """The last line."""
        assert self.lines, self.errors
        assert self.lines[-1]["kind"] == "summary", self.errors
        return self.lines[-1]


@pytest.fixture
def memory(in_memory: Path | None) -> Iterator[Path]:
    """A directory on tmpfs where there is one."""
    with TemporaryDirectory(prefix="ascar-load-", dir=in_memory) as directory:
        yield Path(directory)


@pytest.fixture
def load(ascard: Path) -> Callable[..., Done]:
    """Run a load to its end."""

    def run(*words: str | Path, timeout_s: float = 300) -> Done:
        command = [str(ascard), "load", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        return Done(done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr)

    return run
