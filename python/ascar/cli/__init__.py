"""The command line: one file a command, each of which parses, calls a loop, and prints."""

from ascar.cli.main import main

__all__ = ["main"]
