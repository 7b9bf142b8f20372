"""`ascar capes down`: end a session that runs."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json, Keep, OneSession, Quiet

EXAMPLES = examples("ascar capes down", "ascar capes down localfs --keep")


def down(
    session: OneSession = None,
    keep: Keep = False,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """End a session that `ascar capes up` started, and wait until everything is put back."""
    import os
    import signal
    import time

    from ascar.capes.session.folder import find_folder
    from ascar.cli.output import emit, say
    from ascar.errors import WorkError
    from ascar.results.capes import CapesDownResult

    folder = find_folder(session)
    running = folder.runner()
    folder.ask_to_stop(keep=keep)
    try:
        os.kill(running.pid, signal.SIGTERM)
    except OSError as error:
        raise WorkError(
            f"process {running.pid}: {error.strerror}; run this as the user who started it"
        ) from None
    start_s = time.monotonic()
    while folder.running() is not None:
        if time.monotonic() - start_s > 180:
            raise WorkError(f"process {running.pid}: does not end; see the logs in {folder.path}")
        time.sleep(0.1)
    if json:
        emit("capes-down", CapesDownResult(session=running.session, pid=running.pid, keep=keep))
    elif not quiet:
        say(f"{running.session}: ended")
    return 0
