"""A fresh Debian with Python and pip in a directory, for what people install there."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).resolve().parents[1]
_PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MAKE_MAX_S = 1000
_KEPT = {"PIP_CERT", "PIP_DEFAULT_TIMEOUT"}
_ALWAYS = ("python3", "python3-pip", "ca-certificates")


@contextmanager
def fresh_debian(*packages: str) -> Generator[Path]:
    """Its directory, with what this machine needs to reach package registries; removed at the end.

    It is a copy of one in build/, which is made at the first time.

    Args:
        packages: names of further packages of Debian.

    Raises:
        RuntimeError: this is not root, there is no debootstrap, or it fails.
    """
    base = _base(packages)
    place = Path(mkdtemp(prefix="ascar-debian-", dir="/var/tmp"))
    try:
        subprocess.run(["cp", "-a", "--reflink=auto", f"{base}/.", place], check=True)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _base(packages: tuple[str, ...]) -> Path:
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise RuntimeError("needs root and debootstrap")
    base = ROOT / "build" / "-".join(("debian", *packages))
    base.parent.mkdir(exist_ok=True)
    with base.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / "ready").exists():
            shutil.rmtree(base, ignore_errors=True)
            _debootstrap(base / "root", packages)
            (base / "ready").touch()
    return base / "root"


def _debootstrap(place: Path, packages: tuple[str, ...]) -> None:
    include = f"--include={','.join((*_ALWAYS, *packages))}"
    words = ["debootstrap", "--variant=minbase", include, "bookworm", str(place)]
    try:
        made = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_MAKE_MAX_S)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"debootstrap: took longer than {_MAKE_MAX_S} s") from error
    if made.returncode != 0:
        raise RuntimeError(f"debootstrap: {(made.stdout + made.stderr).strip().splitlines()[-1:]}")
    certificates = Path("etc/ssl/certs/ca-certificates.crt")
    shutil.copy(Path("/", certificates), place / certificates)
    shutil.copy("/etc/resolv.conf", place / "etc/resolv.conf")
    cleaned = run_inside(place, "sh", "-ec", "apt-get clean; rm -rf /var/lib/apt/lists/*")
    if cleaned.returncode != 0:
        raise RuntimeError(f"apt-get clean: {cleaned.stderr.strip()}")


def run_inside(place: Path, *words: str, timeout_s: float = 300.0) -> subprocess.CompletedProcess[str]:
    """Run a program in it, in namespaces of its own."""
    prepare = 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"'
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "sh", "-ec", prepare, place, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        env={**kept, "PATH": _PATH, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"},
    )
