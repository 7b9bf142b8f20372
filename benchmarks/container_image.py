"""The container image, built from the packages on a Debian that debootstrap makes, in its own directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from .fresh_debian import ROOT, fresh_debian

if TYPE_CHECKING:
    from collections.abc import Generator

IMAGE, BASE = "localhost/ascar:test", "localhost/debian:test"
_LIMIT_S = 1500


class Images:
    """Images in a directory of their own.

    Args:
        place: an empty directory.
        driver: "overlay", or "vfs" where there are no overlays: every step copies the one before.
    """

    def __init__(self, place: Path, driver: str) -> None:
        self._environment = {
            **os.environ,
            "STORAGE_DRIVER": driver,
            "BUILDAH_ISOLATION": "chroot",
            "CONTAINERS_STORAGE_CONF": str(place / "storage.conf"),
        }
        (place / "storage.conf").write_text(
            f'[storage]\ndriver = "{driver}"\ngraphroot = "{place}/graph"\nrunroot = "{place}/run"\n'
        )

    def run(self, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program that finds them."""
        # What it leaves mounted goes with the namespace.
        return subprocess.run(
            ["unshare", "--mount", *words],
            env={**self._environment, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )

    def said(self, *words: str | Path, **variables: str) -> str:
        """What a program says that has to succeed.

        Raises:
            RuntimeError: it fails.
        """
        done = self.run(*words, **variables)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: {(done.stdout + done.stderr).strip()[-500:]}")
        return done.stdout.strip()


@contextmanager
def container_image(packages: Path) -> Generator[Images]:
    """Images among which are `IMAGE`, of the packages in a folder, and its `BASE`; removed at the end.

    Raises:
        RuntimeError: this is not root, there is no buildah or no debootstrap, or the build fails.
    """
    if shutil.which("buildah") is None or os.geteuid() != 0:
        raise RuntimeError("needs root and the Debian package buildah; install it")
    place = Path(mkdtemp(prefix="ascar-image-", dir="/var/tmp"))
    try:
        images = Images(place, "overlay")
        if images.run("buildah", "info").returncode != 0:
            images = Images(place, "vfs")
        container = images.said("buildah", "from", "scratch")
        with fresh_debian() as debian:
            images.said("buildah", "add", "--quiet", container, debian, "/")
        images.said("buildah", "commit", "--quiet", "--rm", container, BASE)
        images.said(ROOT / "scripts/image", IMAGE, BASE=BASE, PACKAGES=str(packages))
        yield images
    finally:
        shutil.rmtree(place, ignore_errors=True)
