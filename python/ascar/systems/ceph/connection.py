"""How a study reaches a Ceph cluster that people use: the `ceph` program, with a user of its own."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ascar import typed
from ascar.errors import EnvironmentLacks, Refused, StageFailed
from ascar.nodes.local import LocalNode
from ascar.nodes.process import ends_with_us
from ascar.program.ceph import CONFIGURATION, USER
from ascar.systems.ceph.status import ClusterStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

POOL_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,127}")
"""The names of pools that can be given to Ceph's programs: none of them is an option."""
_ANSWER_S, _CONNECT_S = 30.0, 10
# Of a user whom it does not know, or whose key is another; of one whose key is not found here.
_NOT_LET_IN = re.compile(r"\[errno (1|2|13)\].*\(error connecting to the cluster\)")

T = TypeVar("T")


class CephAddress(msgspec.Struct, frozen=True):
    """Where a cluster is, and who asks it.

    Attributes:
        configuration: the path of its ceph.conf.
        user: the user, such as "client.ascar".
        keyring: the path of a file with the user's key. None: where ceph.conf says it is.
        program: the path of `ceph`, for who has another search path. None: it is not installed.
        pool: the pool in which its load works. None: it has no load.
        fixes_placement: whether the balancer and the autoscaler are off meanwhile.
    """

    configuration: str
    user: str
    keyring: str | None
    program: str | None
    pool: str | None = None
    fixes_placement: bool = False

    @property
    def options(self) -> list[str]:
        """The options of Ceph's programs."""
        keyring = [] if self.keyring is None else ["--keyring", self.keyring]
        return ["--conf", self.configuration, "--name", self.user, *keyring]

    @property
    def rights(self) -> str:
        """The command that makes the user, with the capabilities that a study needs."""
        return f"ceph auth get-or-create {self.user} {self.capabilities}"

    @property
    def capabilities(self) -> str:
        """The capabilities that a study needs, as `ceph auth` takes them."""
        monitor = ["allow r", *(f'allow command "config {verb}" with who=osd' for verb in ("set", "rm"))]
        manager = ["allow r"]
        if self.fixes_placement:
            monitor.append('allow command "config rm" with who=mgr name="mgr/balancer/active"')
            monitor.append('allow command "osd pool set" with var=pg_autoscale_mode')
            manager += [f'allow command "balancer {verb}"' for verb in ("off", "on")]
        load = "" if self.pool is None else f" osd 'allow rwx pool={self.pool}'"
        return f"mon '{', '.join(monitor)}' mgr '{', '.join(manager)}'{load}"


class ShownSetting(msgspec.Struct, frozen=True):
    """A setting with which a daemon runs.

    Attributes:
        name: Ceph's name.
        value: its text.
        source: where it is from: "default", "mon", "file", "cmdline", "env", "override".
        ignores: "mon": the daemon has not taken the value that the monitors hold.
    """

    name: str
    value: str
    source: str = ""
    ignores: str = ""


class CephSession:
    """Asks a cluster; each question is a connection of its own.

    Args:
        address: where the cluster is.

    Raises:
        EnvironmentLacks: there is no `ceph` program.
        StageFailed: the cluster does not answer.
    """

    is_open = True

    def __init__(self, address: CephAddress) -> None:
        if address.program is None:
            raise EnvironmentLacks("ceph is not installed; install the package ceph-common")
        self._program, self.address = address.program, address
        self.ask("fsid")

    def close(self) -> None:
        """Nothing: no connection is kept."""

    def command(self, *words: str) -> list[str]:
        """The program with the words of a command."""
        return [self._program, *self.address.options, *words]

    def ask(self, *words: str, limit_s: float = _ANSWER_S) -> str:
        """What `ceph` prints of a command.

        Raises:
            StageFailed: the cluster does not answer, or refuses the command, with its reason.
            Refused: the cluster does not let the user in, or the user lacks rights.
        """
        connect = ["--connect-timeout", str(max(1, min(_CONNECT_S, int(limit_s))))]
        argv = [*ends_with_us(), *self.command(*connect, *words)]
        done = LocalNode().run(argv, limit_s)
        if done.status == 0:
            return done.out.decode("utf-8", errors="replace")
        lines = [line.strip() for line in done.err.splitlines() if line.strip()]
        said = " ".join(lines[-1].split())[:200] if lines else f"exit status {done.status}"
        user = self.address.user
        if "EACCES" in said or "access denied" in said:
            asked = " ".join(words[:2])
            raise Refused(
                f"user {user}: lacks rights for ceph {asked}; let an administrator run: "
                f"ceph auth caps {user} {self.address.capabilities}"
            )
        if _NOT_LET_IN.search(said):
            raise Refused(
                f"user {user}: the cluster does not let it in ({said}); check target.user and "
                f"target.keyring, or let an administrator make the user: {self.address.rights}"
            )
        raise StageFailed("program", f"ceph {' '.join(words)[:80]}: {said}", done.err)

    def check_is(self, fsid: str) -> None:
        """See that it is the cluster of an fsid.

        Raises:
            Refused: it is another one.
            StageFailed: it does not answer.
        """
        found = self.ask("fsid").strip()
        if found != fsid:
            raise Refused(f"{self.address.configuration}: is the cluster {found!r:.50}, not {fsid!r}")

    def put(self, who: str, name: str, text: str | None) -> None:
        """Give a setting a text; None takes it away.

        Raises:
            StageFailed: the cluster refuses it.
            Refused: the user lacks rights.
        """
        self.ask(*(("config", "rm", who, name) if text is None else ("config", "set", who, name, text)))

    def status(self, limit_s: float = _ANSWER_S) -> ClusterStatus:
        """The status of the cluster.

        Raises:
            StageFailed: it does not answer within `limit_s`, or says something else.
        """
        return ClusterStatus.of(self.ask("status", "--format", "json", limit_s=limit_s))

    def shown(self, daemon: str) -> dict[str, str]:
        """The settings with which a daemon runs.

        Raises:
            StageFailed: the cluster does not answer, or the daemon is down.
        """
        return {one.name: one.value for one in self.shown_settings(daemon)}

    def shown_settings(self, daemon: str) -> list[ShownSetting]:
        """The settings with which a daemon runs, with where they are from.

        Raises:
            StageFailed: the cluster does not answer, or the daemon is down.
        """
        return self.told(list[ShownSetting], "config", "show-with-defaults", daemon)

    def told(self, kind: type[T], *words: str) -> T:
        """The JSON that `ceph` prints of a command.

        Raises:
            StageFailed: the cluster does not answer, or says something else.
            Refused: the user lacks rights.
        """
        text = self.ask(*words, "--format", "json")
        try:
            return typed.decode(text.encode(), kind)
        except (msgspec.MsgspecError, UnicodeError):
            raise StageFailed("program", f"ceph {words[0]}: is not readable: {text[:100]!r}") from None


def environment_of(address: CephAddress) -> Mapping[str, str]:
    """The variables by which Ceph's programs and fio know the cluster and the user."""
    return {
        CONFIGURATION: address.configuration,
        USER: address.user.partition(".")[2],
        "CEPH_ARGS": shlex.join(address.options[2:]),
    }


def is_readable(path: str) -> bool:
    """Whether a file is there that we may read."""
    return os.path.isfile(path) and os.access(path, os.R_OK)  # noqa: PTH113 - a name that a user gave
