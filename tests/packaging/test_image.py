"""The container image: built on a Debian that debootstrap makes, run by a user without rights."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest

from built_packages import ROOT, debian_or_skip, packages_of_this_run

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
IMAGE, BASE = "localhost/ascar:test", "localhost/debian:test"


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
        # What it leaves mounted goes with the namespace.
        return subprocess.run(
            ["unshare", "--mount", *words],
            env={**self._environment, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=1500,
        )

    def said(self, *words: str | Path, **variables: str) -> str:
        done = self.run(*words, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    if shutil.which("buildah") is None or os.geteuid() != 0:
        pytest.skip("needs root and the Debian package buildah; install it")
    packages = packages_of_this_run(tmp_path_factory)
    place = Path(mkdtemp(prefix="ascar-image-", dir="/var/tmp"))
    try:
        found = Images(place, "overlay")
        if found.run("buildah", "info").returncode != 0:
            found = Images(place, "vfs")
        container = found.said("buildah", "from", "scratch")
        with debian_or_skip() as debian:
            found.said("buildah", "add", "--quiet", container, debian, "/")
        found.said("buildah", "commit", "--quiet", "--rm", container, BASE)
        found.said(ROOT / "scripts/image", IMAGE, BASE=BASE, PACKAGES=str(packages))
        yield found
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_sqlite_is_tuned_in_it_without_rights(images: Images) -> None:
    container = images.said("buildah", "from", IMAGE)
    script = (
        "id -un; ascar init sqlite --out study.toml >/dev/null && ascar tune study.toml --budget 20s --json"
    )
    done = images.run("buildah", "run", container, "--", "sh", "-ec", script)
    assert done.returncode in {0, 3}, done.stderr
    user, _, document = done.stdout.partition("\n")
    assert user == "ascar"
    assert json.loads(document)["verdict"]["kind"]


def test_what_it_says_of_itself(images: Images) -> None:
    config = json.loads(images.said("buildah", "inspect", "--type", "image", IMAGE))["OCIv1"]["config"]
    assert config["User"] == "ascar"
    assert config["Entrypoint"] == ["ascar"]
    assert config["WorkingDir"] == "/work"


def test_without_packages_nothing_is_built(tmp_path: Path) -> None:
    said = subprocess.run(
        [ROOT / "scripts/image"],
        env={**os.environ, "PACKAGES": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2
    assert "has no package ascar-node: make packages" in said.stderr
