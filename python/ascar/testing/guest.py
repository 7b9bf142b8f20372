"""A machine whose power can be cut: user-mode Linux, an ordinary process, on the host's own files."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ascar.errors import EnvironmentLacks
from ascar.testbed import user_mode
from ascar.testbed.user_mode import UserModeKernel, below_own, init_text

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from ascar.testing.disk_server import DiskServer

_BLOCK_DEVICE = 2
_BOOT_S = 300.0
_READY = "## the guest is ready"
_DONE = re.compile(r"## command (\d+) ended with (\d+)\n")

# A line of its input is a number and a command.
_COMMANDS = f"""stty -echo -onlcr
    modprobe -a -d /run/modules virtio_blk loop
    echo "{_READY}"
    while read -r number line; do
        command eval "$line"
        echo "## command $number ended with $?"
    done"""


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
        self._visible = below_own(visible)
        self._environment = dict(environment or {})
        self._memory_mib = memory_mib
        self._number = 0

    @staticmethod
    def missing() -> str | None:
        """What has to be installed before guests can run; None where nothing has."""
        return user_mode.missing()

    def __enter__(self) -> Self:
        missing = self.missing()
        if missing is not None:
            raise EnvironmentLacks(missing)
        self._folder = Path(tempfile.mkdtemp(prefix="ascar-guest-"))
        self._kernel = UserModeKernel(self._folder, self._memory_mib)
        try:
            self._begin()
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
        self._kernel.kill()
        shutil.rmtree(self._folder)

    @property
    def console(self) -> str:
        """Everything that the console has shown."""
        return self._kernel.console

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
        self._kernel.wait(condition, what, limit_s)

    def cut(self, rng: random.Random) -> int:
        """Cut the power of the guest and its disks; return the number of blocks that lost a write."""
        self._kernel.kill()
        return sum(server.disk.cut(rng) for server in self._disks)

    def _begin(self) -> None:
        variables = [f"export {name}={shlex.quote(value)}" for name, value in self._environment.items()]
        disks = [f"virtio_uml.device={server.path}:{_BLOCK_DEVICE}" for server in self._disks]
        self._kernel.begin(init_text([*variables, _COMMANDS], self._visible), disks)

    def _send(self, command: str) -> int:
        if "\n" in command:
            raise ValueError("a command of a guest is one line")
        self._number += 1
        stdin = self._kernel.process.stdin
        assert stdin is not None, "it is a pipe"
        stdin.write(f"{self._number} {command}\n".encode())
        stdin.flush()
        return self._number
