"""The keys of `[target]` for a Ceph cluster that people use."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ascar.errors import StudyError
from ascar.systems.ceph.connection import CephAddress, is_readable
from ascar.systems.existing.keys import ExistingKeys, check_text

_USER = re.compile(r"client\.[A-Za-z0-9_.-]{1,100}")
_POOL = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,127}")


class ExistingCephOptions(ExistingKeys, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[target]` of kind "ceph" with `server = "existing"`.

    Attributes:
        server: "existing": a cluster that people use.
        conf: the path of its ceph.conf.
        user: the user to connect as, such as "client.ascar".
        keyring: a file with the user's key. None: where ceph.conf says it is.
        pool: the pool in which a load works; none is needed where the cluster's clients are the load.
        parameters: "expert", about ten settings, or "wide", all that bear on speed.
        memory: unused: the memory of OSDs is not tuned.
        confirmed_server: the cluster that the command line confirms, by its fsid; see `--allow-live`.
    """

    conf: str = "/etc/ceph/ceph.conf"
    user: str = "client.admin"
    keyring: str | None = None
    pool: str | None = None


def check_ceph_options(options: ExistingCephOptions) -> None:
    """See that every key is one, and that the files can be read.

    Raises:
        StudyError: a key is wrong.
    """
    for key in ("conf", "keyring"):
        path = getattr(options, key)
        check_text(key, path)
        if path is not None and (not Path(path).is_absolute() or not is_readable(path)):
            raise StudyError(
                f"target.{key} = {path!r:.200}: must be the absolute path of a file that you may read"
            )
    if not _USER.fullmatch(options.user):
        raise StudyError(f"target.user = {options.user!r:.80}: must be a name such as client.ascar")
    if options.pool is not None and not _POOL.fullmatch(options.pool):
        raise StudyError(f"target.pool = {options.pool!r:.80}: must be the name of a pool")
    if options.memory is not None:
        raise StudyError(f"target.memory = {options.memory!r:.80}: must be left out: no memory is tuned")


def ceph_address_of(options: ExistingCephOptions) -> CephAddress:
    """Where the cluster is."""
    program = shutil.which("ceph")
    path = program and str(Path(program).absolute())
    return CephAddress(options.conf, options.user, options.keyring, path, options.pool)
