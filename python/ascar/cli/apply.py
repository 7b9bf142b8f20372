"""placeholder while the targets are being built"""

from __future__ import annotations

from ascar.cli.options import examples

EXAMPLES = examples("ascar apply mailserver --dry-run")


def apply() -> int:
    """X"""
    return 0
