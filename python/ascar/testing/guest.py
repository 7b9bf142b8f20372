"""A machine whose power can be cut: user-mode Linux, an ordinary process, on the host's own files."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ascar.errors import EnvironmentLacks, WorkError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from ascar.testing.disk_server import DiskServer

_KERNEL = "linux.uml"
_MODULES = Path("/usr/lib/uml/modules")
_BLOCK_DEVICE = 2
_REGISTERS = Path(__file__).with_name("guest_registers.c")
# A signal's frame with the registers that the kernel of Debian 12 knows is of 3,632 bytes (`AT_MINSIGSTKSZ`).
_FRAME_BYTES_MAX, _AT_MINSIGSTKSZ = 3700, 51
_OWN = ("/run", "/tmp", "/mnt", "/var/tmp")  # noqa: S108 - of the guest
_LOOK_S = 0.02
_BOOT_S = 300.0
_READY = "## the guest is ready"
_DONE = re.compile(r"## command (\d+) ended with (\d+)\n")

# All of it is read before /tmp is covered. A line of its input is a number and a command.
_INIT = """#!/bin/sh
main() {{
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mkdir -p /dev/pts /dev/shm
    mount -t devpts devpts /dev/pts
    mount -t tmpfs tmpfs /dev/shm
    for place in {visible}; do mkdir -p "/dev/shm$place"; mount --bind "$place" "/dev/shm$place"; done
    for place in /run /tmp /mnt /var/tmp; do mount -t tmpfs tmpfs $place; done
    for place in {visible}; do mkdir -p "$place"; mount --move "/dev/shm$place" "$place"; done
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    stty -echo -onlcr
    ip link set lo up
    mkdir -p /run/modules/lib
    ln -s {modules} /run/modules/lib/modules
    modprobe -a -d /run/modules virtio_blk loop
    {environment}
    echo "{ready}"
    while read -r number line; do
        command eval "$line"
        echo "## command $number ended with $?"
    done
}}
main
"""

# The end of the pipe is the end of whoever holds it, also by SIGKILL: then the group, which is the kernel and
# all its processes, is killed. The one that waits is not the kernel's child: it would not know what that is.
_SUPERVISED = """
pipe=$1
shift
( ( read -r nothing < "/proc/self/fd/$pipe"; kill -KILL 0 ) & )
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class GuestCommand:
    """A command that has ended in a guest.

    Attributes:
        status: its exit status.
        output: what the console showed meanwhile.
    """

    status: int
    output: str


class Guest:
    """A running user-mode Linux guest; entering boots it.

    Its root is the host's file system, read-only, seen with the rights of the user who starts it. `/tmp`,
    `/run`, `/mnt`, `/var/tmp` and `/dev/shm` are its own and empty, its disks are `/dev/vda`, `/dev/vdb`, and
    so on; its commands are root's. It has no network but its own loopback device. It boots in two seconds,
    and ends with the process that started it, however that ends.

    Args:
        disks: what serves its disks.
        environment: variables of its commands.
        visible: directories of the host that it sees although they lie below one of its own.
        memory_mib: its memory. The host's `vm.max_map_count` limits what one of its processes can map.

    Raises:
        EnvironmentLacks: user-mode Linux or one of its parts is not installed; or the processor has registers
            that it does not know (AMX), and there is no C compiler for what it needs then.
        WorkError: it does not boot.
    """

    def __init__(
        self,
        disks: Sequence[DiskServer] = (),
        environment: Mapping[str, str] | None = None,
        memory_mib: int = 512,
        visible: Sequence[Path] = (),
    ) -> None:
        self._disks = disks
        self._visible = [
            place for place in map(Path.resolve, visible) if any(place.is_relative_to(own) for own in _OWN)
        ]
        self._environment = dict(environment or {})
        self._memory_mib = memory_mib
        self._number = 0
        self._life: int | None = None

    @staticmethod
    def missing() -> str | None:
        """What has to be installed before guests can run; None where nothing has."""
        lacks = [
            name
            for name in (_KERNEL, "setarch", "modprobe", "ip")
            if shutil.which(name, path=_path()) is None
        ]
        if not lacks and _MODULES.is_dir():
            if not _has_unknown_registers() or shutil.which("cc") is not None:
                return None
            return "user-mode Linux on a processor with AMX needs the Debian package gcc; install it"
        return "user-mode Linux needs the Debian packages user-mode-linux, kmod and iproute2; install them"

    def __enter__(self) -> Self:
        missing = self.missing()
        if missing is not None:
            raise EnvironmentLacks(missing)
        self._folder = Path(tempfile.mkdtemp(prefix="ascar-guest-"))
        self._log = self._folder / "console"
        try:
            self._process = self._begin()
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        try:
            self.wait(lambda: _READY in self.console, "the guest boots", _BOOT_S)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()
        shutil.rmtree(self._folder)

    @property
    def console(self) -> str:
        """Everything that the console has shown."""
        return self._log.read_text("utf-8", "replace")

    def run(self, command: str, limit_s: float = 60.0) -> GuestCommand:
        """Run a line of shell and wait for its end.

        Raises:
            WorkError: it does not end in time, or the guest does.
        """
        before = len(self.console)
        number = self._send(command)
        said = ""

        def ended() -> re.Match[str] | None:
            nonlocal said
            said = self.console[before:]
            return next((one for one in _DONE.finditer(said) if int(one[1]) == number), None)

        self.wait(ended, f"{command!r} ends", limit_s)
        end = ended()
        assert end is not None, "it was seen before"
        return GuestCommand(int(end[2]), said[: end.start()])

    def start(self, command: str) -> None:
        """Start a line of shell in the background; the console shows its output."""
        # What a shell starts in the background would be deaf to SIGINT.
        self.run(f"env --default-signal=INT,QUIT sh -c {shlex.quote(command)} </dev/null &")

    def become(self, command: str) -> None:
        """Let a command, such as systemd, take the place of process 1; it is the last one."""
        self._send(f"exec {command}")

    def wait(self, condition: Callable[[], object], what: str, limit_s: float = 60.0) -> None:
        """Wait until a condition holds.

        Raises:
            WorkError: it does not hold in time, or the guest has ended.
        """
        end_s = time.monotonic() + limit_s
        while not condition():
            ended = self._process.poll() is not None
            if ended or time.monotonic() > end_s:
                why = "the guest ended" if ended else f"not within {limit_s:g} s"
                raise WorkError(
                    f"guest: waits until {what}: {why}; its console ends with {self.console[-1000:]!r}"
                )
            time.sleep(_LOOK_S)

    def cut(self, rng: random.Random) -> int:
        """Cut the power of the guest and its disks; return the number of blocks that lost a write."""
        self._kill()
        return sum(server.disk.cut(rng) for server in self._disks)

    def _begin(self) -> subprocess.Popen[bytes]:
        init = self._folder / "init"
        init.write_text(
            _INIT.format(
                modules=_MODULES,
                visible=shlex.join(map(str, self._visible)),
                ready=_READY,
                environment="\n    ".join(
                    f"export {name}={shlex.quote(value)}" for name, value in self._environment.items()
                ),
            )
        )
        init.chmod(0o700)
        words = [
            # Where the kernel lies decides how much of the memory is left: the same at each boot.
            *(
                "setarch",
                "--addr-no-randomize",
                *self._preloaded(),
                _KERNEL,
                f"mem={self._memory_mib}M",
                "umid=guest",
                f"uml_dir={self._folder}/",
            ),
            *("rootfstype=hostfs", "rootflags=/", "ro", f"init={init}"),
            *("con=null", "con0=fd:0,fd:1", "quiet"),
            *(f"virtio_uml.device={server.path}:{_BLOCK_DEVICE}" for server in self._disks),
        ]
        pipe, self._life = os.pipe()
        supervised = ["sh", "-c", _SUPERVISED, "sh", str(pipe), *words]
        try:
            with self._log.open("wb") as log:
                # A group of its own: each process of the guest is one of the host's.
                return subprocess.Popen(
                    supervised,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd="/",
                    pass_fds=(pipe,),
                )
        finally:
            os.close(pipe)

    def _preloaded(self) -> list[str]:
        """What starts the kernel with all registers of the processor, where it does not know them all."""
        if not _has_unknown_registers():
            return []
        library = self._folder / "registers.so"
        done = subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", library, _REGISTERS, "-ldl"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise WorkError(f"guest: cc does not compile {_REGISTERS.name}: {done.stderr.strip()[-300:]}")
        return ["env", f"LD_PRELOAD={library}"]

    def _send(self, command: str) -> int:
        if "\n" in command:
            raise ValueError("a command of a guest is one line")
        self._number += 1
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.write(f"{self._number} {command}\n".encode())
        self._process.stdin.flush()
        return self._number

    def _kill(self) -> None:
        if self._life is not None:
            # There is a group as long as somebody waits for our end, also where the kernel has ended.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            os.close(self._life)
            self._life = None
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.close()


def _has_unknown_registers() -> bool:
    read = ctypes.CDLL(None).getauxval
    read.argtypes, read.restype = [ctypes.c_ulong], ctypes.c_ulong
    return int(read(_AT_MINSIGSTKSZ)) > _FRAME_BYTES_MAX


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
