"""Installs: what people download, what it takes on the disk, how soon it answers; beside that of others.

    python -m benchmarks.installs --budget 40min        (root, debootstrap, a network)

Each is installed into a fresh Debian with Python and pip, from files that are downloaded before, so that the
network's speed does not count. ascar is that of this checkout; `make wheels packages` builds it. The answer's
time is the median of ten runs after a first one, beyond that of `true`. Whoever has just installed ascar then
tunes SQLite for two minutes by the study that `ascar init` writes: that is the time to a verdict, with the
install's. The container image is what buildah makes of the packages; its download has the Debian below it.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from .container_image import IMAGE, Images, container_image
from .fresh_debian import fresh_debian, run_inside
from .harness import Benchmark, Piece, build, called, table

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
WHEELS = ROOT / "build/wheels"
PACKAGES = ROOT / "build/packages"
MEASURED_RUNS = 10
FIRST_STUDY = "ascar init sqlite --out study.toml >&2 && ascar tune study.toml --budget 2min --json"
DECIDED = (0, 3)  # 3: no decision
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Install:
    """Something that people install.

    Attributes:
        packages: of PyPI, or of Debian; or names of our own packages of Debian, with `ours`.
        answers: a command that answers at once, to time.
        debian: whether they are packages of Debian.
        ours: whether they are those of build/packages.
        tunes: whether SQLite is tuned by it, up to a verdict.
    """

    packages: tuple[str, ...]
    answers: str
    debian: bool = False
    ours: bool = False
    tunes: bool = False


INSTALLS = {
    "ascar": Install(("ascar",), "ascar --help", tunes=True),
    "ascar, to use as a module": Install(("ascar",), "python3 -c 'import ascar'"),
    "ascar[explore]": Install(("ascar[explore]",), "ascar --help"),
    "ascar[online]": Install(("ascar[online]",), "ascar --help"),
    "ascar[drl]": Install(("ascar[drl]",), "ascar --help"),
    "ascar[gym]": Install(("ascar[gym]",), "ascar --help"),
    "ascar[postgres]": Install(("ascar[postgres]",), "ascar --help"),
    "ascar[rivals]": Install(("ascar[rivals]",), "ascar --help"),
    "ascard alone": Install(("ascard",), "ascard --version"),
    "ascar, ascar-node (.deb)": Install(
        ("ascar", "ascar-node"), "ascar --help", debian=True, ours=True, tunes=True
    ),
    "ascar-node alone (.deb)": Install(("ascar-node",), "ascard --version", debian=True, ours=True),
    "Optuna": Install(("optuna",), "optuna --help"),
    "MLOS": Install(("mlos-core",), "python3 -c 'import mlos_core'"),
    "SMAC3": Install(("smac",), "python3 -c 'import smac'"),  # builds pyrfr, which takes a compiler
    "TuneD": Install(("tuned",), "tuned-adm --help", debian=True),
}


def main() -> None:
    """Measure, and print a table."""
    given = Benchmark.parser(__doc__ or "", "40min").parse_args()
    benchmark = Benchmark.of(given, build(*sorted(WHEELS.glob("*.whl")), *sorted(PACKAGES.glob("*.deb"))))
    pieces = [Piece(name, partial(_measured, one)) for name, one in INSTALLS.items()]
    found = benchmark.run([*pieces, Piece("container image", _image)])
    rows = [
        (
            name,
            f"{one['download_mb']:.1f}",
            f"{one['installed_mb']:.0f}",
            str(one["packages"] or "-"),
            f"{one['install_s']:.1f}",
            f"{one['answers_s']:.3f}",
            f"{one['verdict_s']:.0f} ({one['verdict']})" if "verdict_s" in one else "-",
        )
        for name, one in found.items()
    ]
    heads = ("download, MB", "on disk, MB", "packages", "install, s", "answers in, s", "to a verdict, s")
    table(("install", *heads), rows)


def _measured(install: Install) -> dict[str, Any]:
    with fresh_debian() as place:
        # What pip would compile of itself at its first run belongs to nobody's install.
        _inside(place, "python3", "-m", "compileall", "-q", "/usr/lib/python3", "/usr/lib/python3.11")
        before = _bytes(place)
        found = (_by_apt if install.debian else _by_pip)(place, install)
        shutil.rmtree(place / "files", ignore_errors=True)
        found["installed_mb"] = (_bytes(place) - before) / _MB
        found["answers_s"] = _answer_s(partial(_inside, place), install.answers)
        if install.tunes:
            begun_s = time.perf_counter()
            told = run_inside(place, "sh", "-ec", f"cd /root; {FIRST_STUDY}", timeout_s=900.0)
            if told.returncode not in DECIDED:
                raise RuntimeError(told.stderr.strip()[-300:])
            found["verdict_s"] = found["install_s"] + time.perf_counter() - begun_s
            found["verdict"] = json.loads(told.stdout)["verdict"]["kind"]
    return found


def _image() -> dict[str, Any]:
    begun_s = time.perf_counter()
    with container_image(PACKAGES) as images, TemporaryDirectory(dir="/var/tmp") as folder:
        install_s = time.perf_counter() - begun_s
        archive = Path(folder, "image.tar")
        images.said("buildah", "push", "--quiet", IMAGE, f"oci-archive:{archive}")
        container = images.said("buildah", "from", IMAGE)
        size = f'du -sxb "$(buildah mount {container})"'
        return {
            "download_mb": archive.stat().st_size / _MB,
            "installed_mb": int(images.said("sh", "-ec", size).split()[0]) / _MB,
            "packages": 0,
            "install_s": install_s,
            "answers_s": _answer_s(partial(_in_container, images, container), "ascar --help"),
        }


def _answer_s(run: Callable[..., object], command: str) -> float:
    """The seconds of a command beyond those of `true`."""
    return _median_s(run, command) - _median_s(run, "true")


def _median_s(run: Callable[..., object], command: str) -> float:
    """Seconds of a command, the first run left out."""
    times: list[float] = []
    for _ in range(MEASURED_RUNS + 1):
        begun_s = time.perf_counter()
        run("sh", "-ec", f"{command} >/dev/null")
        times.append(time.perf_counter() - begun_s)
    return statistics.median(times[1:])


def _in_container(images: Images, container: str, *words: str) -> None:
    images.said("buildah", "run", container, "--", *words)


def _by_pip(place: Path, install: Install) -> dict[str, Any]:
    if not list(WHEELS.glob("ascar-*.whl")):
        raise RuntimeError("build/wheels has no wheel of ascar: make wheels")
    shutil.copytree(WHEELS, place / "wheels")
    pip = ("python3", "-m", "pip")
    _inside(place, *pip, "download", "--quiet", "-d", "/files", *_files(install.packages))
    shutil.rmtree(place / "wheels")
    files = list((place / "files").iterdir())
    begun_s = time.perf_counter()
    options = ("--quiet", "--no-cache-dir", "--break-system-packages", "--no-index", "-f", "/files")
    _inside(place, *pip, "install", *options, *install.packages)
    return {
        "install_s": time.perf_counter() - begun_s,
        "download_mb": sum(file.stat().st_size for file in files) / _MB,
        "packages": len(files),
    }


def _files(packages: tuple[str, ...]) -> list[str]:
    """What pip is given: ours by their files, whatever an index has of the same name."""
    ours = {name: next(WHEELS.glob(f"{name}-*.whl")).name for name in ("ascar", "ascard")}
    found: list[str] = []
    for package in packages:
        name, bracket, extra = package.partition("[")
        found.append(f"/wheels/{ours[name]}{bracket}{extra}" if name in ours else package)
        if name == "ascar":
            found.append(f"/wheels/{ours['ascard']}")
    return found


def _by_apt(place: Path, install: Install) -> dict[str, Any]:
    apt = ("apt-get", "-qq", "-y", "--no-install-recommends")
    _inside(place, "apt-get", "-qq", "update")
    packages = _debs(place, install.packages) if install.ours else install.packages
    _inside(place, *apt, "--download-only", "install", *packages)
    files = [*(place / "var/cache/apt/archives").glob("*.deb"), *(place / "files").glob("*.deb")]
    found = {"download_mb": sum(file.stat().st_size for file in files) / _MB, "packages": len(files)}
    begun_s = time.perf_counter()
    _inside(place, *apt, "install", *packages)
    found["install_s"] = time.perf_counter() - begun_s
    _inside(place, "sh", "-ec", "apt-get clean; rm -rf /var/lib/apt/lists/*")
    return found


def _debs(place: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Copies of our own packages, for apt by their files."""
    (place / "files").mkdir()
    found: list[str] = []
    for name in names:
        file = next(PACKAGES.glob(f"{name}_*.deb"), None)
        if file is None:
            raise RuntimeError(f"build/packages has no package {name}: make packages")
        shutil.copy(file, place / "files")
        found.append(f"/files/{file.name}")
    return tuple(found)


def _inside(place: Path, *words: str) -> None:
    """Run a program in it that must succeed."""
    done = run_inside(place, *words, timeout_s=900.0)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()[-300:]}")


def _bytes(place: Path) -> int:
    return int(called("du", "-sxb", place).split()[0])


if __name__ == "__main__":
    main()
