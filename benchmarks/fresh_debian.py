"""A fresh Debian with Python and pip in a directory, for what people install there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MAKE_MAX_S = 1000
_KEPT = {"PIP_CERT", "PIP_DEFAULT_TIMEOUT"}


def make_debian(place: Path) -> None:
    """Make it, with what this machine needs to reach package registries.

    Raises:
        RuntimeError: this is not root, there is no debootstrap, or it fails.
    """
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise RuntimeError("needs root and debootstrap")
    include = "--include=python3,python3-pip,ca-certificates"
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
