"""Servers from packages, which tests run: whether they can, where, and what is left of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ascar.catalogues import ceph, mariadb, postgresql, rocksdb
from ascar.errors import EnvironmentLacks
from ascar.program.account import Account
from ascar.program.ceph import CephPrograms
from ascar.program.mariadb import MariaPrograms
from ascar.program.postgresql import Programs
from ascar.program.rocksdb import RocksPrograms

if TYPE_CHECKING:
    import random
    import signal
    from collections.abc import Generator


def postgresql_account() -> Account:
    """Whom PostgreSQL runs as."""
    return Account.of(None, "PostgreSQL", "postgres")


def postgresql_installed() -> bool:
    """Whether a server that ascar tunes is there, and has an account."""
    try:
        postgresql_account()
        return Programs.find().major >= postgresql.VERSION_MIN
    except EnvironmentLacks:
        return False


def mariadb_account() -> Account:
    """Whom MariaDB runs as."""
    return Account.of(None, "MariaDB", "mysql")


def mariadb_installed() -> bool:
    """Whether a server that ascar tunes is there, with its load, and has an account."""
    try:
        mariadb_account()
        return MariaPrograms.find().number >= mariadb.VERSION_MIN and shutil.which("sysbench") is not None
    except EnvironmentLacks:
        return False


def rocksdb_account() -> Account:
    """Whom db_bench runs as."""
    return Account.of(None, "RocksDB", "nobody")


def rocksdb_installed() -> bool:
    """Whether a version that ascar tunes is there."""
    try:
        return RocksPrograms.find().number >= rocksdb.VERSION_MIN
    except EnvironmentLacks:
        return False


def ceph_account() -> Account:
    """Whom Ceph runs as."""
    return Account.of(None, "Ceph", "ceph")


def ceph_installed() -> bool:
    """Whether a version that ascar tunes is there, and has an account."""
    try:
        ceph_account()
        return CephPrograms.find().number >= ceph.VERSION_MIN
    except EnvironmentLacks:
        return False


@contextmanager
def server_place(account: Account, prefix: str) -> Generator[str]:
    """A directory that the server's account can reach, with a path short enough for a socket."""
    with TemporaryDirectory(prefix=prefix, dir="/var/tmp") as folder:
        os.chown(folder, account.uid, -1)
        yield folder


def running(place: str, program: str) -> list[str]:
    """The command lines of a program's processes that name the place."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if place in words and program in words:
            found.append(words)
    return found


def nothing_is_left(place: Path, program: str) -> bool:
    """Whether the place becomes as it was within two minutes: no server, no file."""
    deadline_s = time.monotonic() + 120
    while (list(place.iterdir()) or running(str(place), program)) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    return not list(place.iterdir()) and not running(str(place), program)


def see_it_end_with_its_study(kind: str, place: str, program: str) -> None:
    """See that neither a server nor a file is left when the process that started the server is killed."""
    script = (
        "import sys, time\n"
        "from ascar.systems import open_target\n"
        "with open_target({'kind': sys.argv[1], 'directory': sys.argv[2]}) as target:\n"
        "    target.apply(target.space.default())\n"
        "    print('up', flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, kind, place], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert running(place, program)
        process.kill()
    assert nothing_is_left(Path(place), program)


@contextmanager
def small_volume(place: Path, size: str) -> Generator[Path]:
    """A file system of a size below the place, which every account may write to."""
    small = place / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=777", "tmpfs", str(small)], check=True)
    try:
        yield small
    finally:
        subprocess.run(["umount", str(small)], check=True)


def end_at_a_moment(study: Path, chance: random.Random, longest_s: float, number: signal.Signals) -> None:
    """Begin a study, and end it by a signal within so many seconds."""
    words = [sys.executable, "-m", "ascar", "tune", str(study), "--json"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(chance.uniform(0.5, longest_s))
        process.send_signal(number)
