"""A fresh Debian with Python and pip in a directory, for what people install there.

Programs of another processor run in it by QEMU, which the kernel starts for them in a user namespace of their
own (Linux 6.7): the machine itself knows nothing of it.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import struct
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
_KEPT = {"PIP_CERT", "PIP_DEFAULT_TIMEOUT", "SSL_CERT_FILE"}
_ALWAYS = ("python3", "python3-pip", "ca-certificates")
_CLEAN = "apt-get clean; rm -rf /var/lib/apt/lists/*"
_NATIVE = platform.machine()
_OF_DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
"""What Debian calls the processors that `uname -m` names so."""
_PROCESSORS = {62: "x86_64", 183: "aarch64"}
"""By the number in an ELF file (elf.h: EM_X86_64, EM_AARCH64)."""

_KNOWN = "/proc/sys/fs/binfmt_misc"
"""Where the kernel is told what runs files with a header; a user namespace has its own."""
_OF_USER = ("--user", "--map-root-user")


@contextmanager
def fresh_debian(*packages: str, machine: str = _NATIVE) -> Generator[Path]:
    """Its directory, with what this machine needs to reach package registries; removed at the end.

    It is a copy of one in build/, which is made at the first time. That of another processor is unpacked, but
    not configured: Python and pip work in it, `apt-get` does not.

    Args:
        packages: names of further packages of Debian.
        machine: its processor, as `uname -m` names it.

    Raises:
        RuntimeError: this is not root, there is no debootstrap or no emulator, or debootstrap fails.
    """
    base = _base(packages, machine)
    place = Path(mkdtemp(prefix="ascar-debian-", dir="/var/tmp"))
    try:
        _copy(base, place)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _base(packages: tuple[str, ...], machine: str) -> Path:
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise RuntimeError("needs root and debootstrap")
    foreign = () if machine == _NATIVE else (machine,)
    if foreign:
        _check_emulation(machine)
    base = ROOT / "build" / "-".join(("debian", *foreign, *packages))
    base.parent.mkdir(exist_ok=True)
    with base.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / "ready").exists():
            shutil.rmtree(base, ignore_errors=True)
            if packages and not foreign:
                # Most of it is the same, and a copy of that takes a second.
                (base / "root").mkdir(parents=True)
                _copy(_base((), machine), base / "root")
                _install(base / "root", packages)
            else:
                _debootstrap(base / "root", packages, machine)
            (base / "ready").touch()
    return base / "root"


def _check_emulation(machine: str) -> None:
    if shutil.which(_emulator(machine)) is None:
        raise RuntimeError(f"programs of {machine} need Debian's qemu-user-static")
    words = ["unshare", *_OF_USER, "--mount", "sh", "-ec", _emulation(machine)]
    tried = subprocess.run(words, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        raise RuntimeError(f"programs of {machine} need Linux 6.7 or newer: {tried.stderr.strip()}")


def _copy(base: Path, place: Path) -> None:
    subprocess.run(["cp", "-a", "--reflink=auto", f"{base}/.", place], check=True)


def _install(place: Path, packages: tuple[str, ...]) -> None:
    _do(place, "apt-get -qq update")
    _do(place, f"apt-get -qq -y --no-install-recommends install {' '.join(packages)}")
    _do(place, _CLEAN)


def _do(place: Path, script: str) -> None:
    done = run_inside(place, "sh", "-ec", script, timeout_s=_MAKE_MAX_S)
    if done.returncode != 0:
        raise RuntimeError(f"{script}: {done.stderr.strip()[-300:]}")


def _debootstrap(place: Path, packages: tuple[str, ...], machine: str) -> None:
    include = f"--include={','.join((*_ALWAYS, *packages))}"
    foreign = () if machine == _NATIVE else ("--foreign", f"--arch={_OF_DEBIAN[machine]}")
    words = ["debootstrap", "--variant=minbase", *foreign, include, "bookworm", str(place)]
    # It lives for a test: nothing has to reach the disk before dpkg goes on.
    settings = place / "etc/dpkg/dpkg.cfg.d"
    settings.mkdir(parents=True)
    (settings / "unsafe-io").write_text("force-unsafe-io\n")
    try:
        made = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_MAKE_MAX_S)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"debootstrap: took longer than {_MAKE_MAX_S} s") from error
    if made.returncode != 0:
        raise RuntimeError(f"debootstrap: {(made.stdout + made.stderr).strip().splitlines()[-1:]}")
    if foreign:
        _unpack(place)
    certificates = Path("etc/ssl/certs/ca-certificates.crt")
    shutil.copy(Path("/", certificates), place / certificates)
    shutil.copy("/etc/resolv.conf", place / "etc/resolv.conf")
    if not foreign:
        _do(place, _CLEAN)


def _unpack(place: Path) -> None:
    """What debootstrap's second stage would do, less the packages' own scripts."""
    for package in sorted((place / "var/cache/apt/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, place], check=True)
        package.unlink()
    (place / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (place / "etc/group").write_text("root:x:0:\n")


def _emulator(machine: str) -> str:
    return f"qemu-{machine}-static"


def _machine_of(place: Path) -> str:
    """The processor of its programs."""
    with (place / "usr/bin/env").open("rb") as file:
        (number,) = struct.unpack_from("<H", file.read(20), 18)
    return _PROCESSORS[number]


def _emulation(machine: str) -> str:
    """Shell that has the kernel run programs of a processor by QEMU, in this user namespace alone."""
    number = next(number for number, name in _PROCESSORS.items() if name == machine)
    # A program or a library, for whichever system.
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, number)
    mask = b"\xff" * 7 + b"\x00" + b"\xff" * 8 + b"\xfe\xff\xff\xff"
    words = [machine, "M", "", *("".join(f"\\x{byte:02x}" for byte in it) for it in (header, mask))]
    line = ":".join(("", *words, str(shutil.which(_emulator(machine))), "F"))
    return f"mount -t binfmt_misc none {_KNOWN}; printf '%s' '{line}' >{_KNOWN}/register"


def run_inside(place: Path, *words: str, timeout_s: float = 300.0) -> subprocess.CompletedProcess[str]:
    """Run a program in it, in namespaces of its own."""
    prepare = 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; mount --rbind /sys "$0/sys"'
    machine = _machine_of(place)
    spaces = ["--mount", "--pid", "--fork", "--kill-child"]
    if machine != _NATIVE:
        spaces = [*_OF_USER, *spaces]
        prepare = f"{_emulation(machine)}; {prepare}"
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    return subprocess.run(
        ["unshare", *spaces, "sh", "-ec", f'{prepare}; exec chroot "$0" "$@"', place, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        env={**kept, "PATH": _PATH, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"},
    )
