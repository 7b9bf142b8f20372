"""The keys of `[target]` for a Ceph cluster that people use."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Literal

from ascar.errors import StudyError
from ascar.systems.ceph.connection import POOL_NAME, CephAddress, is_readable
from ascar.systems.ceph.rolling_restart import LIMIT_MAX_S, OSD, RollingRestart
from ascar.systems.existing.keys import ExistingKeys, check_text
from ascar.systems.existing.restart import ServerRestart

_USER = re.compile(r"client\.[A-Za-z0-9_.-]{1,100}")
_DOMAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class ExistingCephOptions(ExistingKeys, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[target]` of kind "ceph" with `server = "existing"`.

    Attributes:
        server: "existing": a cluster that people use.
        conf: the path of its ceph.conf.
        user: the user to connect as, such as "client.ascar".
        keyring: a file with the user's key. None: where ceph.conf says it is.
        pool: the pool in which a load works; none is needed where the cluster's clients are the load.
        parameters: "expert", about ten settings, or "wide", all that bear on speed.
        fix_placement: whether the balancer, and the autoscaler of each pool, are off during a study where
            they are on: both move data, and a trial beside that fails.
        restarts: "never": only settings that OSDs take while they work are changed; or "allowed".
        restart_command: the command that starts one OSD anew, where that is allowed; "{id}" stands for its
            number, "{host}" for its host.
        restart_limit: how long it may take until the OSDs of a domain are back and the health is HEALTH_OK.
        restart_domain: the type of CRUSH's buckets whose OSDs are started anew together, such as "host";
            "osd": one at a time.
        memory: unused: the memory of OSDs is not tuned.
        confirmed_server: the cluster that the command line confirms, by its fsid; see `--allow-live`.
    """

    conf: str = "/etc/ceph/ceph.conf"
    user: str = "client.admin"
    keyring: str | None = None
    pool: str | None = None
    fix_placement: bool = True
    restarts: Literal["never", "allowed"] = "never"
    restart_command: tuple[str, ...] = ()
    restart_limit: str = "2 min"
    restart_domain: str = OSD


def restart_of(options: ExistingCephOptions) -> RollingRestart | None:
    """How OSDs are started anew; None: they are not.

    Raises:
        StudyError: a key is wrong, or missing.
        EnvironmentLacks: the program is not there.
    """
    given = options.restarts, options.restart_command, options.restart_limit
    restart = ServerRestart.of(*given, unit="ceph-osd@{id}", limit_max_s=LIMIT_MAX_S)
    if not _DOMAIN.fullmatch(options.restart_domain):
        raise StudyError(
            f"target.restart_domain = {options.restart_domain!r:.80}: must be a type of bucket, such as "
            "'host'"
        )
    if restart is None:
        if options.restart_domain != OSD:
            raise StudyError("target.restart_domain: needs target.restarts = 'allowed'; leave it out")
        return None
    if not any("{id}" in word for word in restart.argv):
        raise StudyError("target.restart_command: must name the OSD by '{id}'")
    return RollingRestart(restart, options.restart_domain)


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
    if options.pool is not None and not POOL_NAME.fullmatch(options.pool):
        raise StudyError(f"target.pool = {options.pool!r:.80}: must be the name of a pool")
    if options.memory is not None:
        raise StudyError(f"target.memory = {options.memory!r:.80}: must be left out: no memory is tuned")


def ceph_address_of(options: ExistingCephOptions) -> CephAddress:
    """Where the cluster is."""
    program = shutil.which("ceph")
    path = program and str(Path(program).absolute())
    return CephAddress(options.conf, options.user, options.keyring, path, options.pool, options.fix_placement)
