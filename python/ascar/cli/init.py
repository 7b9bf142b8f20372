"""placeholder"""

from __future__ import annotations

from ascar.cli.options import examples

EXAMPLES = examples("ascar init localfs")


def init() -> int:
    """X"""
    return 0
