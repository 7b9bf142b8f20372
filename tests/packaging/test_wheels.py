"""ascar as people install it: into a fresh Debian with Python and pip, without a compiler."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from benchmarks.fresh_debian import run_inside

from built_packages import debian_or_skip
from elf_file import Elf, faults

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
GLIBC_OF_DEBIAN = (2, 36)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of this machine, from what is compiled already."""
    out = tmp_path_factory.mktemp("wheels")
    uv = str(ROOT / "scripts/uv")
    for source in (ROOT, ROOT / "crates/ascard"):
        words = [uv, "build", "--quiet", "--wheel", "--python", sys.executable, "--out-dir", str(out)]
        built = subprocess.run(
            [*words, str(source)], capture_output=True, text=True, check=False, timeout=900
        )
        assert built.returncode == 0, built.stderr
    return out


@pytest.fixture(scope="module")
def debian(wheels: Path) -> Iterator[Path]:
    """A fresh Debian, with the wheels in it."""
    with debian_or_skip() as place, TemporaryDirectory() as unpacked:
        if newest_glibc(wheels, Path(unpacked)) > GLIBC_OF_DEBIAN:
            pytest.skip("the C library is newer than Debian 12's; `make wheels` makes wheels for it")
        shutil.copytree(wheels, place / "wheels")
        yield place


def programs_of(wheels: Path, folder: Path) -> list[Path]:
    """The compiled files in the wheels, unpacked into a folder."""
    for file in wheels.glob("*.whl"):
        shutil.unpack_archive(file, folder / file.name, "zip")
    return [*folder.rglob("_core*.so"), *folder.rglob("scripts/ascard")]


def newest_glibc(wheels: Path, folder: Path) -> tuple[int, ...]:
    """The version of the C library that the wheels need."""
    return max(Elf(program.read_bytes()).newest(b"GLIBC") for program in programs_of(wheels, folder))


def test_wheels_fit_every_python_and_need_the_c_library_alone(wheels: Path, tmp_path: Path) -> None:
    names = sorted(file.name for file in wheels.glob("*.whl"))
    assert len(names) == 2
    assert names[0].startswith("ascar-")
    assert "-cp311-abi3-" in names[0]
    assert "-py3-none-" in names[1]
    programs = programs_of(wheels, tmp_path)
    assert len(programs) == 2
    for program in programs:
        elf = Elf(program.read_bytes())
        assert elf.libraries() <= {
            *("libc.so.6", "libm.so.6", "libgcc_s.so.1"),
            *("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"),
        }
        assert not faults(elf, is_program=program.name == "ascard")


def test_the_source_distribution_has_the_list_that_the_keeper_is_built_from(tmp_path: Path) -> None:
    uv = str(ROOT / "scripts/uv")
    words = [uv, "build", "--quiet", "--sdist", "--python", sys.executable, "--out-dir", str(tmp_path)]
    built = subprocess.run(
        [*words, str(ROOT / "crates/ascard")], capture_output=True, text=True, check=False, timeout=300
    )
    assert built.returncode == 0, built.stderr
    [file] = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        [found] = [one for one in archive if one.name.endswith("crates/keeper/linux.toml")]
        content = archive.extractfile(found)
        assert content is not None
        assert content.read() == (ROOT / "python/ascar/catalogues/linux.toml").read_bytes()


def test_pip_installs_it_where_no_compiler_is_and_sqlite_is_tuned(debian: Path) -> None:
    assert run_inside(debian, "sh", "-c", "command -v cc gcc rustc").returncode != 0
    # By their paths: whatever an index has of the same name is not meant.
    files = [f"/wheels/{file.name}" for file in (debian / "wheels").glob("*.whl")]
    words = ["python3", "-m", "pip", "install", "--quiet", "--break-system-packages"]
    done = run_inside(debian, *words, *files, timeout_s=900.0)
    assert done.returncode == 0, done.stderr
    assert "ascar" in run_inside(debian, "ascar", "--help").stdout
    assert run_inside(debian, "ascard", "--version").returncode == 0
    begun = run_inside(
        debian, "sh", "-ec", "cd /root && ascar init sqlite --out study.toml && ascar check study.toml"
    )
    assert begun.returncode == 0, begun.stderr
    told = run_inside(debian, "sh", "-c", "cd /root && ascar tune study.toml --budget 30s --json")
    assert told.returncode in {0, 3}, told.stderr
    assert json.loads(told.stdout)["verdict"]["kind"]
