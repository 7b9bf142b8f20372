"""Disks and proxies of network block devices, and what stands on their two sides."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from data_plane_peers import Starter
from modelled_disk import ModelledDisk
from s3_site import s3_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def disk_binary(ascard: Path) -> Path:
    """The node binary, where disks are among its roles."""
    done = subprocess.run([ascard, "disk", "--help"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(done.stderr.strip())
    return ascard


@pytest.fixture
def folder(in_memory: Path | None) -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with TemporaryDirectory(prefix="ascar-", dir=in_memory) as path:
        yield Path(path)


@pytest.fixture
def disk(disk_binary: Path, folder: Path) -> Iterator[Callable[..., ModelledDisk]]:
    """Start a disk, which ends with the test."""
    with ExitStack() as started:

        def start(scenario: str | Path, *words: str | Path) -> ModelledDisk:
            return started.enter_context(ModelledDisk(disk_binary, folder, scenario, *words))

        yield start


@pytest.fixture
def start(folder: Path) -> Iterator[Starter]:
    """Starts programs that end with the test: `start.proxy(...)` and `start.nbdkit(...)`."""
    with ExitStack() as stack:
        yield Starter(folder, stack)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[int]:
    """The port of an S3 server that ends with the test."""
    objects = tmp_path / "objects"
    objects.mkdir()
    with s3_server(objects) as port:
        yield port
