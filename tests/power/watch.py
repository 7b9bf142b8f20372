"""Says each tick of the session that the interface has published, until the machine goes down."""

import asyncio
import contextlib
import sys
from pathlib import Path

from ascar.capes.messages.following import watch
from ascar.capes.session.folder import Folder
from ascar.errors import AscarError


async def main() -> None:
    """Follow it from its start on."""
    while True:
        with contextlib.suppress(AscarError):  # the session begins just now
            settings = Folder(Path("/mnt/session")).settings("viewer")
            async with contextlib.aclosing(watch(settings, "cut")) as states:
                async for state in states:
                    # A tick in which no node was heard has no row in the database.
                    if state.performance and state.performance[-1][0] == state.tick:
                        sys.stdout.write(f"published {state.tick}\n")
                        sys.stdout.flush()
        await asyncio.sleep(0.1)


asyncio.run(main())
