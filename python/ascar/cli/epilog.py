"""The end of a command's help page."""

from __future__ import annotations


def examples(*lines: str) -> str:
    """The end of a command's help: examples, each on a line of its own."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])  # "\b": lines stay as they are
