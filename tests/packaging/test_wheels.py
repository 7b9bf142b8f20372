"""ascar as people install it: into a fresh Debian with Python and pip, without a compiler."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest

from elf_file import Elf, faults

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
GLIBC_OF_DEBIAN = (2, 36)


class Chroot:
    """A fresh Debian in a directory, with namespaces of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def run(self, *words: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a program in it."""
        prepare = 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"'
        passed = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        passed.pop("PIP_FIND_LINKS", None)
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "sh", "-ec", prepare, self.place, *words],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env={**passed, "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
        )


@contextmanager
def fresh_debian() -> Generator[Chroot]:
    place = Path(mkdtemp(prefix="ascar-debian-", dir="/var/tmp"))
    try:
        words = ["debootstrap", "--variant=minbase", "--include=python3,python3-pip,ca-certificates"]
        try:
            made = subprocess.run(
                [*words, "bookworm", str(place)], capture_output=True, text=True, check=False, timeout=1000
            )
        except subprocess.TimeoutExpired:
            pytest.skip("debootstrap: took longer than 1000 s")
        if made.returncode != 0:
            pytest.skip(f"debootstrap: {(made.stdout + made.stderr).strip().splitlines()[-1:]}")
        certificates = Path("etc/ssl/certs/ca-certificates.crt")
        shutil.copy(Path("/", certificates), place / certificates)
        shutil.copy("/etc/resolv.conf", place / "etc/resolv.conf")
        yield Chroot(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of this machine, from what is compiled already."""
    out = tmp_path_factory.mktemp("wheels")
    uv = shutil.which("uv") or str(ROOT / ".uv/bin/uv")
    for source in (ROOT, ROOT / "crates/ascard"):
        words = [uv, "build", "--quiet", "--wheel", "--python", sys.executable, "--out-dir", str(out)]
        built = subprocess.run(
            [*words, str(source)], capture_output=True, text=True, check=False, timeout=900
        )
        assert built.returncode == 0, built.stderr
    return out


@pytest.fixture(scope="module")
def debian(wheels: Path) -> Iterator[Chroot]:
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    with fresh_debian() as chroot:
        if newest_glibc(wheels, chroot.place / "unpacked") > GLIBC_OF_DEBIAN:
            pytest.skip(
                "this machine's C library is newer than that of Debian 12; `make wheels` makes wheels for it"
            )
        shutil.copytree(wheels, chroot.place / "wheels")
        yield chroot


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
    uv = shutil.which("uv") or str(ROOT / ".uv/bin/uv")
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


def test_pip_installs_it_where_no_compiler_is_and_sqlite_is_tuned(debian: Chroot) -> None:
    assert debian.run("sh", "-c", "command -v cc gcc rustc").returncode != 0
    # By their paths: whatever an index has of the same name is not meant.
    files = [f"/wheels/{file.name}" for file in (debian.place / "wheels").glob("*.whl")]
    words = ["python3", "-m", "pip", "install", "--quiet", "--break-system-packages"]
    done = debian.run(*words, *files, timeout_s=900)
    assert done.returncode == 0, done.stderr
    assert "ascar" in debian.run("ascar", "--help").stdout
    assert debian.run("ascard", "--version").returncode == 0
    begun = debian.run(
        "sh", "-ec", "cd /root && ascar init sqlite --out study.toml && ascar check study.toml"
    )
    assert begun.returncode == 0, begun.stderr
    told = debian.run("sh", "-c", "cd /root && ascar tune study.toml --budget 30s --json", timeout_s=300)
    assert told.returncode in {0, 3}, told.stderr
    assert json.loads(told.stdout)["verdict"]["kind"]
