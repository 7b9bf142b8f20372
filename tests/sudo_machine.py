"""A machine of a test's own, as far as sudo goes: a user, lines in sudoers, an installed keeper, a knob."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

Done = subprocess.CompletedProcess[str]
UID = 54321
USER = "ascar-tester"
ROOT = Path(__file__).resolve().parents[1]
KNOB = "vm.page-cluster"
DEFAULT = 3

# What the machine itself has stays as it is: all of this is seen by this process and its children alone. It
# ends when its standard input is closed. The interpreter may lie where only root can look.
_HOLD = """
set -e
cd "$1"
mkdir -p /run/ascar /var/lib/ascar
mount -t tmpfs none /run/ascar
mount -t tmpfs -o mode=755 none /var/lib/ascar
for file in passwd group shadow sudoers.d systemd/system systemd/user; do
    mount --bind "etc/$file" "/etc/$file"
done
mount --bind page-cluster /proc/sys/vm/page-cluster
mount --bind /usr/libexec libexec
mount -t tmpfs -o mode=755 none /usr/libexec
mkdir -p /usr/libexec/sudo
if [ -d libexec/sudo ]; then mount --bind libexec/sudo /usr/libexec/sudo; fi
if [ -n "$3" ]; then
    mount --bind "$2" interpreter
    mount -t tmpfs -o mode=755 none "$3"
    mkdir -p "$2"
    mount --move interpreter "$2"
fi
echo ready
exec cat
"""


class SudoMachine:
    """Where nobody may use sudo yet.

    Args:
        place: an empty directory that everybody may enter.
    """

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        for folder in (
            "home",
            "etc/sudoers.d",
            "etc/systemd/system",
            "etc/systemd/user",
            "libexec",
            "interpreter",
        ):
            (place / folder).mkdir(parents=True)
        os.chown(self.home, UID, UID)
        for name, line in (
            ("passwd", f"{USER}:x:{UID}:{UID}::{self.home}:/bin/sh"),
            ("group", f"{USER}:x:{UID}:"),
            ("shadow", f"{USER}:*:19000:0:99999:7:::"),
        ):
            known = Path("/etc", name)
            (place / "etc" / name).write_text(f"{known.read_text().rstrip()}\n{line}\n")
            (place / "etc" / name).chmod(known.stat().st_mode & 0o777)
        self._knob = place / "page-cluster"
        self._knob.write_text(f"{DEFAULT}\n")
        self.sudoers = place / "etc/sudoers.d"
        self.units = place / "etc/systemd/system"
        prefix = Path(sys.base_prefix)
        closed = [str(folder) for folder in reversed(prefix.parents) if not folder.stat().st_mode & 0o001]
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _HOLD, "sh", place, prefix]
        self._holder = subprocess.Popen(
            [*map(str, command), *closed[:1], *([] if closed else [""])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        self.lacks = "" if self._holder.stdout.readline() == b"ready\n" else self._ended()

    def words(self, *command: object, user: bool = True) -> list[str]:
        """What makes a command run there, as the user or as root."""
        inside = ["nsenter", f"--target={self._holder.pid}", "--mount", "--wd=/", "--"]
        become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--init-groups"] if user else []
        home = self.home if user else "/root"
        name = USER if user else "root"
        own = ["env", f"HOME={home}", f"USER={name}", f"LOGNAME={name}", f"XDG_STATE_HOME={home}/state"]
        return [str(word) for word in (*inside, *become, *own, *command)]

    def run(self, *command: object, user: bool = True, fails: bool = False) -> Done:
        """Runs a command there to its end."""
        words = self.words(*command, user=user)
        done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
        assert (done.returncode != 0) == fails, (done.returncode, done.stdout, done.stderr)
        return done

    def python(self, text: str, *arguments: object, **options: bool) -> Done:
        """Runs a program of Python there, with this project's modules."""
        return self.run(sys.executable, "-c", text, *arguments, **options)

    def ascar(self, *arguments: object, **options: bool) -> Done:
        """Runs `ascar` there."""
        return self.run(sys.executable, "-m", "ascar", *arguments, **options)

    def install(self, allow: str = USER) -> None:
        """What `sudo make install-keeper` does."""
        self.run("make", "-C", ROOT, "--no-print-directory", "install-keeper", f"ALLOW={allow}", user=False)

    def allow(self, line: str) -> None:
        """Writes a line of an administrator's own into sudoers."""
        file = self.sudoers / "own"
        file.write_text(f"{USER} ALL = (root) NOPASSWD: {line}\n")
        file.chmod(0o440)

    def knob(self) -> int:
        """The knob, as the kernel would have it."""
        return int(self._knob.read_text())

    def end(self) -> None:
        if self._holder.poll() is None:
            self._ended()

    def _ended(self) -> str:
        return self._holder.communicate()[1].decode() or "no reason given"
