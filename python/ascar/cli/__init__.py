"""The command line: one file a command, each of which parses, calls a loop, and prints."""

import gc

# Modules that are loaded leave hardly any garbage; looking for it takes a twelfth of the start.
_collects = gc.isenabled()
gc.disable()

from ascar.cli.main import main  # noqa: E402

if _collects:
    gc.enable()

__all__ = ["main"]
