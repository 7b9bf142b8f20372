"""The container image: built on a Debian that debootstrap makes, run by a user without rights."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from benchmarks.container_image import IMAGE, Images, container_image

from built_packages import ROOT, debian_or_skip, packages_of_this_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    if shutil.which("buildah") is None or os.geteuid() != 0:
        pytest.skip("needs root and the Debian package buildah; install it")
    packages = packages_of_this_run(tmp_path_factory)
    with debian_or_skip(), container_image(packages) as found:
        yield found


def test_sqlite_is_tuned_in_it_without_rights(images: Images) -> None:
    container = images.said("buildah", "from", IMAGE)
    script = (
        "id -un; ascar init sqlite --out study.toml >/dev/null && ascar tune study.toml --budget 12s --json"
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


def test_it_has_the_licences_of_its_packages(images: Images) -> None:
    container = images.said("buildah", "from", IMAGE)
    files = "/usr/share/doc/ascar-node/copyright /usr/share/doc/ascar/copyright"
    told = images.said("buildah", "run", container, "--", "cat", *files.split())
    for part in ("LICENSE", "THIRD-PARTY-LICENSES.txt", "crates/ascard/THIRD-PARTY-LICENSES.txt"):
        assert (ROOT / part).read_text().strip() in told, part


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
