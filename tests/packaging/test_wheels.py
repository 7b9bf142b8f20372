"""ascar as people install it: into a fresh Debian with Python and pip, without a compiler.

The wheels are those of this run, that of ascar the one that its packages are made from; with WHEELS=FOLDER
(`make check-wheels`) those of a folder, also of other processors, whose programs QEMU runs.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from benchmarks.fresh_debian import run_inside

from built_packages import debian_or_skip, packages_of_this_run
from elf_file import EM_AARCH64, EM_X86_64, Elf, faults

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
GLIBC_OF_DEBIAN = (2, 36)
GIVEN = os.environ.get("WHEELS")
OF_FILE = re.compile(r"-(?:manylinux_(\d+)_(\d+)|linux)_(x86_64|aarch64)\.whl$")
PROCESSORS = {"x86_64": EM_X86_64, "aarch64": EM_AARCH64}
EMULATION_COSTS = 20.0
"""How much longer programs may take that are emulated."""
FIRST_VERDICT_S = 180.0
"""From `pip install` to a verdict, on the machine's own processor."""


def tags(folder: Path) -> list[re.Match[str]]:
    """What the names of the wheels in a folder say of glibc's version and the processor."""
    return [match for file in folder.iterdir() if (match := OF_FILE.search(file.name))]


def machines() -> list[str]:
    """The processors that the wheels are for."""
    if GIVEN is None:
        return [platform.machine()]
    found = {match[3] for match in tags(Path(GIVEN))}
    assert found, f"WHEELS = {GIVEN}: has no wheels: make wheels"
    return sorted(found)


@pytest.fixture(scope="module", params=machines())
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def wheels(machine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheels for a processor; that of ascar is the one in the packages of this run."""
    out = tmp_path_factory.mktemp("wheels")
    if GIVEN is not None:
        for file in Path(GIVEN).glob(f"*_{machine}.whl"):
            shutil.copy(file, out)
        return out
    [packaged] = (packages_of_this_run(tmp_path_factory) / "stage/wheel").glob("ascar-*.whl")
    shutil.copy(packaged, out)
    words = [ROOT / "scripts/uv", "build", "--quiet", "--wheel", "--python", sys.executable, "--out-dir", out]
    built = subprocess.run(
        [*words, ROOT / "crates/ascard"], capture_output=True, text=True, check=False, timeout=900
    )
    assert built.returncode == 0, built.stderr
    return out


@pytest.fixture(scope="module")
def debian(wheels: Path, machine: str) -> Iterator[Path]:
    """A fresh Debian for that processor, with the wheels in it."""
    with debian_or_skip(machine=machine) as place, TemporaryDirectory() as unpacked:
        if newest_glibc(programs_of(wheels, Path(unpacked))) > GLIBC_OF_DEBIAN:
            pytest.skip("the C library is newer than Debian 12's; `make wheels` makes wheels for it")
        shutil.copytree(wheels, place / "wheels")
        yield place


def programs_of(wheels: Path, folder: Path) -> list[Path]:
    """The compiled files in the wheels, unpacked into a folder."""
    for file in wheels.glob("*.whl"):
        shutil.unpack_archive(file, folder / file.name, "zip")
    return [*folder.rglob("_core*.so"), *folder.rglob("scripts/ascard")]


def newest_glibc(programs: list[Path]) -> tuple[int, ...]:
    """The version of the C library that compiled files need."""
    return max(Elf(program.read_bytes()).newest(b"GLIBC") for program in programs)


def test_wheels_fit_every_python_and_need_the_c_library_alone(
    wheels: Path, machine: str, tmp_path: Path
) -> None:
    names = sorted(file.name for file in wheels.glob("*.whl"))
    assert len(names) == 2
    assert names[0].startswith("ascar-")
    assert "-cp311-abi3-" in names[0]
    assert "-py3-none-" in names[1]
    programs = programs_of(wheels, tmp_path)
    assert len(programs) == 2
    for program in programs:
        elf = Elf(program.read_bytes())
        assert elf.processor == PROCESSORS[machine]
        assert elf.libraries() <= {
            # Parts of the C library; the two last are one with it since 2.34.
            *("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0"),
            *("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"),
        }
        assert not faults(elf, is_program=program.name == "ascard")


def test_wheels_need_no_newer_c_library_than_they_say(wheels: Path, tmp_path: Path) -> None:
    said = {match.groups()[:2] for match in tags(wheels)}
    assert len(said) == 1
    [version] = said
    if version == (None, None):
        pytest.skip("these wheels are for this machine alone")
    assert newest_glibc(programs_of(wheels, tmp_path)) <= tuple(map(int, version))


def test_wheels_do_not_say_where_they_were_built(wheels: Path, tmp_path: Path) -> None:
    programs_of(wheels, tmp_path)
    told = [file for file in tmp_path.rglob("*.dist-info/**/*") if file.is_file()]
    assert told
    for file in told:
        assert b"file://" not in file.read_bytes(), file


def test_the_source_distribution_has_the_list_that_the_keeper_is_built_from(sources: Path) -> None:
    [file] = sources.glob("ascard-*.tar.gz")
    with tarfile.open(file) as archive:
        [found] = [one for one in archive if one.name.endswith("crates/keeper/linux.toml")]
        content = archive.extractfile(found)
        assert content is not None
        assert content.read() == (ROOT / "python/ascar/catalogues/linux.toml").read_bytes()


# How quick what is built from a source distribution would be is not asked here, and minutes are saved.
QUICKLY = {
    f"CARGO_PROFILE_RELEASE_{key}": value
    for key, value in (("OPT_LEVEL", "0"), ("LTO", "off"), ("CODEGEN_UNITS", "16"))
} | {"CFLAGS": "-O0"}  # SQLite has an optimization of its own


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with both source distributions."""
    if GIVEN is not None:
        return Path(GIVEN)
    out = tmp_path_factory.mktemp("sources")
    uv = str(ROOT / "scripts/uv")
    for source in (ROOT, ROOT / "crates/ascard"):
        words = [uv, "build", "--quiet", "--sdist", "--python", sys.executable, "--out-dir", str(out)]
        built = subprocess.run(
            [*words, str(source)], capture_output=True, text=True, check=False, timeout=300
        )
        assert built.returncode == 0, built.stderr
    return out


def test_whatever_is_handed_on_has_its_licence(wheels: Path, sources: Path) -> None:
    """As Apache-2.0 asks of who hands it on (section 4)."""
    for name, place in (("ascar", ROOT), ("ascard", ROOT / "crates/ascard")):
        # The second has those of the parts that others wrote, each of which asks for the same.
        for file in ("LICENSE", "THIRD-PARTY-LICENSES.txt"):
            ours = (place / file).read_bytes()
            [wheel] = wheels.glob(f"{name}-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                [kept] = [one for one in archive.namelist() if one.endswith(f".dist-info/licenses/{file}")]
                assert archive.read(kept) == ours
                [metadata] = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
                assert f"\nLicense-File: {file}\n" in archive.read(metadata).decode()
            [source] = sources.glob(f"{name}-*.tar.gz")
            with tarfile.open(source) as archive:
                content = archive.extractfile(f"{source.name.removesuffix('.tar.gz')}/{file}")
                assert content is not None
                assert content.read() == ours


def test_source_distributions_build_where_there_is_no_checkout(
    sources: Path, wheels: Path, machine: str, tmp_path: Path
) -> None:
    """Without git, without crates from the network; what comes of it has every file that the wheels have."""
    if machine != platform.machine():
        pytest.skip("what a source distribution has is the same for every processor")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "bin/git").chmod(0o755)
    environment = {
        **os.environ,
        **QUICKLY,
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(tmp_path / "target"),
        "CARGO_NET_OFFLINE": "true",
    }
    out = tmp_path / "out"
    found = sorted(sources.glob("*.tar.gz"))
    assert len(found) == 2
    for source in found:
        words = [str(ROOT / "scripts/uv"), "build", "--quiet", "--wheel", "--python", sys.executable]
        built = subprocess.run(
            [*words, "--out-dir", str(out), str(source)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=1500,
        )
        assert built.returncode == 0, built.stderr
    for ours in wheels.glob("*.whl"):
        [again] = out.glob(f"{ours.name.split('-')[0]}-*.whl")
        with zipfile.ZipFile(ours) as first, zipfile.ZipFile(again) as second:
            assert sorted(second.namelist()) == sorted(first.namelist())
            second.extractall(tmp_path / "unpacked")
    [ascard] = (tmp_path / "unpacked").rglob("scripts/ascard")
    ascard.chmod(0o755)
    told = subprocess.run([ascard, "--version"], capture_output=True, text=True, check=True).stdout
    assert "agent" in told and "interface" in told
    loaded = "import ascar, ascar._core; print(ascar._core.__file__)"
    said = subprocess.run(
        [sys.executable, "-c", loaded],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "unpacked")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.startswith(str(tmp_path))


def test_pip_installs_it_where_no_compiler_is_and_sqlite_is_tuned(debian: Path, machine: str) -> None:
    costs = 1.0 if machine == platform.machine() else EMULATION_COSTS
    begun_s = time.monotonic()
    assert run_inside(debian, "uname", "-m").stdout.strip() == machine
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
    told = run_inside(
        debian, "sh", "-c", "cd /root && ascar tune study.toml --budget 12s --json", timeout_s=300.0 * costs
    )
    assert told.returncode in {0, 3}, told.stderr
    assert json.loads(told.stdout)["verdict"]["kind"]
    assert time.monotonic() - begun_s < FIRST_VERDICT_S * costs


def test_uv_installs_it_as_a_tool_and_runs_it_without_an_install(debian: Path, machine: str) -> None:
    """As by `uv tool install ascar` and `uvx ascar`, with files instead of names."""
    if machine != platform.machine():
        pytest.skip("what uv does is the same for every processor")
    got = run_inside(debian, "python3", "-m", "pip", "install", "--quiet", "--break-system-packages", "uv")
    assert got.returncode == 0, got.stderr
    both = "--no-managed-python --with /wheels/ascard-*.whl"
    # The node binary is found beside the Python of the tool's own environment.
    beside = re.compile(r"^ascard [\d.]+ \(.*keeper.*\) \(/root/.*/bin/ascard\)$", re.MULTILINE)
    uvx = f"uvx --quiet {both} --from /wheels/ascar-*.whl ascar"
    for words in (
        f"{uvx} --version",
        f"uv tool install --quiet {both} /wheels/ascar-*.whl && /root/.local/bin/ascar --version",
    ):
        done = run_inside(debian, "sh", "-ec", words, timeout_s=900.0)
        assert done.returncode == 0, done.stderr
        assert beside.search(done.stdout), done.stdout
    tune = (
        f"cd /root && {uvx} init sqlite --out by-uvx.toml >&2 && {uvx} tune by-uvx.toml --budget 12s --json"
    )
    told = run_inside(debian, "sh", "-ec", tune, timeout_s=300.0)
    assert told.returncode in {0, 3}, told.stderr
    assert json.loads(told.stdout)["verdict"]["kind"]
