"""Small spaces of every shape, for tests of optimizers."""

from __future__ import annotations

from ascar.expression import parse
from ascar.space import ChangeCost, Space, boolean, categorical, floating, integer, ordinal

_COST = ChangeCost.DYN_APP


def tiny() -> Space:
    """Eleven valid configurations: three parameters, one conditional, one constraint."""
    return Space(
        (
            categorical("kind", ("a", "b", "c"), default="a", cost=_COST),
            ordinal("size", (1, 2, 4), default=1, cost=_COST),
            boolean("extra", default=False, cost=_COST, when='kind == "b"'),
        ),
        (parse('kind != "c" or size < 4'),),
        name="tiny",
    )


def grid() -> Space:
    """600 configurations: five discrete parameters, no constraint."""
    return Space(
        (
            ordinal("block", (1, 2, 4, 8, 16), default=4, cost=_COST),
            ordinal("cache", (8, 16, 32, 64, 128), default=8, cost=_COST),
            categorical("scheduler", ("none", "fair", "deadline"), default="none", cost=_COST),
            boolean("sync", default=True, cost=_COST),
            integer("depth", (1, 4), default=1, cost=_COST),
        ),
        name="grid",
    )


def branching() -> Space:
    """Conditional parameters two levels deep, a constraint, a special value; no continuous parameter."""
    return Space(
        (
            categorical("fs", ("ext", "xfs", "btrfs"), default="ext", cost=_COST),
            ordinal("block", (1024, 2048, 4096), default=4096, cost=_COST, when='fs == "ext"'),
            ordinal("inode", (128, 256, 512, 2048, 4096), default=256, cost=_COST, when='fs != "btrfs"'),
            boolean("compress", default=False, cost=_COST, when='fs == "btrfs"'),
            integer("level", (1, 9), default=3, cost=_COST, when="compress"),
            integer("ahead_kb", (4, 4096), log=True, default=128, cost=_COST, special={"0": "off"}),
        ),
        (parse("inode <= block"),),
        name="branching",
    )


def continuous() -> Space:
    """Floats on linear and logarithmic scales beside a category."""
    return Space(
        (
            floating("ratio", (0.0, 1.0), default=0.5, cost=_COST),
            floating("rate", (1e-3, 1e3), log=True, default=1.0, cost=_COST),
            categorical("mode", ("slow", "fast"), default="slow", cost=_COST),
        ),
        name="continuous",
    )
