"""User-mode Linux: a kernel that is an ordinary process, on the host's own files."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import WorkError
from ascar.program.found import find_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

KERNEL = "linux.uml"
MODULES = Path("/usr/lib/uml/modules")
OWN = ("/run", "/tmp", "/mnt", "/var/tmp")  # noqa: S108 - of the guest
"""Where a guest has file systems of its own, in memory and empty at first."""
_REGISTERS = Path(__file__).with_name("user_mode_registers.c")
# A signal's frame with the registers that the kernel of Debian 12 knows is of 3,632 bytes (`AT_MINSIGSTKSZ`).
_FRAME_BYTES_MAX, _AT_MINSIGSTKSZ = 3700, 51
_LOOK_S = 0.02
_UMID = "guest"
# Whoever takes in orphans may be slow.
_GONE_S = 5.0

# All of it is read before /tmp is covered.
_INIT = """#!/bin/sh
main() {{
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mkdir -p /dev/pts /dev/shm
    mount -t devpts devpts /dev/pts
    mount -t tmpfs tmpfs /dev/shm
    for place in {visible}; do mkdir -p "/dev/shm$place"; mount --bind "$place" "/dev/shm$place"; done
    for place in {own}; do mount -t tmpfs tmpfs $place; done
    for place in {visible}; do mkdir -p "$place"; mount --move "/dev/shm$place" "$place"; done
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    ip link set lo up
    mkdir -p /run/modules/lib
    ln -s {modules} /run/modules/lib/modules
    {then}
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


def missing() -> str | None:
    """What has to be installed before user-mode kernels can run; None where nothing has."""
    lacks = [name for name in (KERNEL, "setarch", "modprobe", "ip") if find_program(name) is None]
    if not lacks and MODULES.is_dir():
        if not _has_unknown_registers() or shutil.which("cc") is not None:
            return None
        return "user-mode Linux on a processor with AMX needs the Debian package gcc; install it"
    return "user-mode Linux needs the Debian packages user-mode-linux, kmod and iproute2; install them"


def below_own(places: Iterable[Path], own: Sequence[str] = OWN) -> list[Path]:
    """Those of these directories of the host that a guest's own file systems would cover."""
    return [place for place in map(Path.resolve, places) if any(place.is_relative_to(one) for one in own)]


def init_text(then: Sequence[str], visible: Sequence[Path] = (), own: Sequence[str] = OWN) -> str:
    """The program that the kernel starts as process 1.

    Args:
        then: lines of shell, after its file systems and modules are there.
        visible: directories of the host that are seen although they lie below one of its own.
        own: where it has file systems of its own.
    """
    return _INIT.format(
        visible=shlex.join(map(str, visible)), own=" ".join(own), modules=MODULES, then="\n    ".join(then)
    )


class UserModeKernel:
    """A kernel that runs in a process group of its own, and ends with the process that started it.

    Args:
        folder: a directory of its own; its console's output, its sockets and what it starts with lie there.
        memory_mib: its memory, in MiB. The host's `vm.max_map_count` limits what a process of it can map.
        what: what messages call it.

    Attributes:
        process: its first process, whose number is that of the group.
    """

    process: subprocess.Popen[bytes]

    def __init__(self, folder: Path, memory_mib: int, what: str = "guest") -> None:
        self._folder = folder
        self._memory_mib = memory_mib
        self._what = what
        self._log = folder / "console"
        self._life: int | None = None
        self._killing = threading.Lock()

    @property
    def console(self) -> str:
        """Everything that the console has shown."""
        return self._log.read_text("utf-8", "replace")

    def begin(self, init: str, words: Sequence[str], pass_fds: Sequence[int] = ()) -> None:
        """Start it; the console reads what is written to `process.stdin`.

        Args:
            init: the text of `init_text`.
            words: further words of its command line.
            pass_fds: files that these words speak of.

        Raises:
            WorkError: what it needs on this processor does not compile.
        """
        # A kernel that was killed has left its directory.
        shutil.rmtree(self._folder / _UMID, ignore_errors=True)
        program = self._folder / "init"
        program.write_text(init)
        program.chmod(0o700)
        words = [
            # Where the kernel lies decides how much of the memory is left: the same at each boot.
            *("setarch", "--addr-no-randomize", *self._preloaded(), KERNEL),
            *(f"mem={self._memory_mib}M", f"umid={_UMID}", f"uml_dir={self._folder}/"),
            *("rootfstype=hostfs", "rootflags=/", "ro", f"init={program}"),
            *("con=null", "con0=fd:0,fd:1", "quiet"),
            *words,
        ]
        pipe, life = os.pipe()
        supervised = ["sh", "-c", _SUPERVISED, "sh", str(pipe), *words]
        try:
            with self._log.open("wb") as log:
                # A group of its own: each process of the guest is one of the host's.
                self.process = subprocess.Popen(
                    supervised,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd="/",
                    pass_fds=(pipe, *pass_fds),
                )
        except BaseException:
            os.close(life)
            raise
        finally:
            os.close(pipe)
        self._life = life

    def wait(self, condition: Callable[[], object], what: str, limit_s: float) -> None:
        """Wait until a condition holds.

        Raises:
            WorkError: it does not hold in time, or the kernel has ended.
        """
        end_s = time.monotonic() + limit_s
        while not condition():
            ended = self.process.poll() is not None
            if ended or time.monotonic() > end_s:
                why = f"the {self._what} ended" if ended else f"not within {limit_s:g} s"
                raise WorkError(
                    f"{self._what}: waits until {what}: {why}; its console ends with {self.console[-1000:]!r}"
                )
            time.sleep(_LOOK_S)

    def kill(self) -> None:
        """End it as a power cut does: all its processes at once, also while another thread waits for it."""
        with self._killing:
            if self._life is None:
                return
            # There is a group as long as somebody waits for our end, also where the kernel has ended.
            with suppress(ProcessLookupError):  # killed as a whole by another
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self._wait_for_the_others()
            os.close(self._life)
            self._life = None
            assert self.process.stdin is not None, "it is a pipe"
            self.process.stdin.close()

    def _wait_for_the_others(self) -> None:
        """Wait until the group is gone, which has the kernel's ports and files until then."""
        end_s = time.monotonic() + _GONE_S
        with suppress(ProcessLookupError):
            while time.monotonic() < end_s:
                os.killpg(self.process.pid, 0)
                time.sleep(_LOOK_S / 10)

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
            raise WorkError(
                f"{self._what}: cc does not compile {_REGISTERS.name}: {done.stderr.strip()[-300:]}"
            )
        return ["env", f"LD_PRELOAD={library}"]


def _has_unknown_registers() -> bool:
    read = ctypes.CDLL(None).getauxval
    read.argtypes, read.restype = [ctypes.c_ulong], ctypes.c_ulong
    return int(read(_AT_MINSIGSTKSZ)) > _FRAME_BYTES_MAX
