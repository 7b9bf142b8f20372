"""A session that goes on without who started it."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from ascar.capes.session.processes import last_words, private_log
from ascar.errors import InputError, Refused, WorkError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ascar.capes.session.folder import Folder

_LOOK_S = 0.1
_BAD_INPUT = 2


def detach(folder: Folder, words: Sequence[str]) -> Path:
    """Start `ascar WORDS` in a session of its own, and wait until its session runs.

    Args:
        folder: the folder of the session.
        words: the words of the command line, without --detach.

    Returns:
        Where its words go.

    Raises:
        Refused: the session runs already.
        InputError: it ended with bad input; in its words.
        WorkError: it ended otherwise.
    """
    running = folder.running()
    if running is not None:
        raise Refused(f"session {folder.path.name!r}: runs already, process {running.pid}")
    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = folder.path / "up.log"
    log.unlink(missing_ok=True)
    with private_log(log) as file:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ascar", *words],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    while process.poll() is None:
        running = folder.running()
        if running is not None and running.ready:
            return log
        time.sleep(_LOOK_S)
    kind = InputError if process.returncode == _BAD_INPUT else WorkError
    raise kind(f"it ended: {last_words(log)}; see {log}")
