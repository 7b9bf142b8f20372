"""The variables that a program inherits from us."""

from __future__ import annotations

import os


def inherited(hidden: tuple[str, ...]) -> dict[str, str]:
    """Our variables without those that would lead a program to another server than the one it is for.

    Args:
        hidden: how the names of these begin, such as `PG`.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
