"""Programs of a node as processes here: the program itself, or the `ssh` that runs it there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from ascar.errors import AscarError, EnvironmentLacks, StageFailed
from ascar.nodes import Finished, NodeFacts

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ascar.nodes import Node

OUT_BYTES_MAX = 16 << 20
_ERR_BYTES_MAX = 4096
_FACTS_S = 30.0
# Every word is an argument of `sh`, which reads this text alone.
_PUT = 'umask 077; cat > "$1.new" && chmod "$2" "$1.new" && mv -f "$1.new" "$1"'
_FACTS = """
uname -n; uname -r; uname -m; id -u; getconf _NPROCESSORS_ONLN; getconf _PHYS_PAGES; getconf PAGESIZE
"""


def start(
    node: str, words: Sequence[str], stderr: IO[bytes] | int, stdin: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """A process with pipes, out of reach of the terminal's signals.

    Raises:
        EnvironmentLacks: it cannot be started.
    """
    try:
        return subprocess.Popen(
            list(words), stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True, cwd="/"
        )
    except (OSError, ValueError) as error:
        raise EnvironmentLacks(f"node {node}: {words[0]}: cannot be started: {error}") from error


def ends_with_us() -> list[str]:
    """The words before a command of this machine that is killed when the thread which waits for it is gone.

    One that outlives ascar could set a trial's value after the old one was put back. What an `ssh` has begun
    on its node goes on.
    """
    setpriv = shutil.which("setpriv")
    return [] if setpriv is None else [setpriv, "--pdeathsig", "KILL", "--"]


def finish(
    node: str, words: Sequence[str], limit_s: float, stdin: bytes, before: Sequence[str] = ()
) -> Finished:
    """Run a process to its end; with all that it started, it is killed when the time is over.

    Args:
        node: what messages call the machine.
        words: the program and its arguments.
        limit_s: how long it may take.
        stdin: what it reads.
        before: the words of a program that becomes it, see `ends_with_us`.

    Raises:
        EnvironmentLacks: it cannot be started.
        StageFailed: it does not end in time, or writes without end.
    """
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        process = start(node, [*before, *words], said.fileno(), given.fileno())
        assert process.stdout is not None
        late = threading.Timer(limit_s, _kill, (process,))
        late.start()
        try:
            out = process.stdout.read(OUT_BYTES_MAX + 1)
            if len(out) > OUT_BYTES_MAX:
                _kill(process)
            status = process.wait()
        except BaseException:
            _kill(process)
            process.wait()
            raise
        finally:
            process.stdout.close()
            was_late = not late.is_alive()
            late.cancel()
        if len(out) > OUT_BYTES_MAX:
            raise StageFailed("run", f"node {node}: {words[0]} writes more than {OUT_BYTES_MAX} bytes")
        if was_late and status == -signal.SIGKILL:
            raise StageFailed("run", f"node {node}: {words[0]} does not end within {limit_s:g} s")
        end = said.seek(0, os.SEEK_END)
        said.seek(max(0, end - _ERR_BYTES_MAX))
        return Finished(status, out, said.read().decode(errors="replace"))


def output_of(
    node: Node, stage: str, what: str, words: Sequence[str], limit_s: float, *, stdin: bytes = b""
) -> str:
    """What a program of a node writes, once it has done its work.

    Args:
        node: where it runs.
        stage: what fails if it does.
        what: its work, for people.
        words: the program and its arguments.
        limit_s: how long it may take.
        stdin: what it reads.

    Raises:
        EnvironmentLacks: the node cannot be reached, or the program is not there.
        StageFailed: it fails, or does not end in time.
    """
    done = node.run(words, limit_s, stdin)
    if done.status != 0:
        last = (done.err.strip().splitlines() or [f"exit status {done.status}"])[-1]
        raise StageFailed(stage, f"node {node.name}: {what}: {last[:300]}", done.err)
    return done.out.decode("utf-8", "replace")


@contextmanager
def failing(stage: str, kind: type[AscarError] = EnvironmentLacks) -> Generator[None]:
    """What goes wrong fails a stage of a trial, and not the study.

    Args:
        stage: what fails then.
        kind: the errors that do; by default that a machine cannot be reached, or lacks a program.

    Raises:
        StageFailed: instead of them.
    """
    try:
        yield
    except StageFailed:
        raise
    except kind as error:
        raise StageFailed(stage, error.message) from error


def put_by_shell(node: Node, content: bytes, path: str, mode: int) -> None:
    """See `Node.put`."""
    output_of(node, "put", path, ["sh", "-c", _PUT, "put", path, f"{mode:o}"], _FACTS_S, stdin=content)


def facts_by_shell(node: Node) -> NodeFacts:
    """See `Node.facts`."""
    done = node.run(["sh", "-c", _FACTS], _FACTS_S)
    lines = done.out.decode(errors="replace").split("\n")
    try:
        host, kernel, architecture = lines[:3]
        uid, cpus, pages, page_bytes = (int(line) for line in lines[3:7])
    except ValueError:
        raise EnvironmentLacks(f"node {node.name}: does not say what it is: {done.err[:200]!r}") from None
    return NodeFacts(host[:200], kernel[:200], architecture[:200], uid, cpus, pages * page_bytes)


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
