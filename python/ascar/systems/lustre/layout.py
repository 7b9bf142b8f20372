"""How the files of a directory are spread over OSTs: `lfs setstripe`, plain or progressive, for new files.

A progressive layout (PFL, Lustre 2.10) has two components: the first bytes of a file lie on one OST, the rest
on several, so that small files cost one object and large ones have all servers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import StageFailed
from ascar.expression import parse
from ascar.space import ChangeCost, categorical, integer, ordinal
from ascar.systems.lustre.lctl import LIMIT_S

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ascar.expression import Expression
    from ascar.nodes import Node
    from ascar.space import Parameter, Value

LAYOUT = ("layout", "stripe_count", "stripe_size", "first_extent")
OSTS_MAX = 2000
"""The most stripes of a file (Lustre 2.x, wide striping)."""
PROGRESSIVE_SINCE = (2, 10)
"""The first version of Lustre that has progressive layouts."""
_SIZES = tuple(1 << power for power in range(16, 31))  # multiples of 64 KiB
_ENDS = tuple(1 << power for power in range(20, 37))
_END = re.compile(r"lcme_extent\.e_end:\s*(\S+)")
_OPEN = ("EOF", "-1")
_END_VALUE = re.compile(r"EOF|-1|[0-9]{1,18}")
_COUNT = re.compile(r"stripe_count:\s*(-?[0-9]{1,6})(?![0-9])")
_SIZE = re.compile(r"stripe_size:\s*([0-9]{1,18})(?![0-9])")
_DEFINED, _PROGRESSIVE = "layout != 'inherited'", "layout == 'progressive'"


def layout_parameters(osts: int, *, progressive: bool = True) -> tuple[Parameter, ...]:
    """The parameters of a layout; by default a directory has that of the one above.

    Args:
        osts: the most OSTs of a file.
        progressive: whether the client has progressive layouts.
    """
    cost = ChangeCost.REFORMAT_RESTORE
    kinds, described = ("inherited", "plain"), "that of the directory above, or one component."
    if progressive:
        kinds, described = (*kinds, "progressive"), "that of the directory above, one component, or two."
    first_extent = ordinal(
        "first_extent",
        _ENDS,
        default=1 << 26,
        when=_PROGRESSIVE,
        cost=cost,
        unit="B",
        description="Bytes of a file that lie on one OST, before the second component begins.",
    )
    return (
        categorical(
            "layout",
            kinds,
            default="inherited",
            cost=cost,
            description=f"Layout of new files: {described}",
        ),
        integer(
            "stripe_count",
            (1, osts),
            log=osts > 8,
            default=1,
            when=_DEFINED,
            cost=cost,
            description="OSTs that a file, or the second component of it, is spread over.",
        ),
        ordinal(
            "stripe_size",
            _SIZES,
            default=1 << 20,
            when=_DEFINED,
            cost=cost,
            unit="B",
            description="Bytes on one OST before the next follows.",
        ),
        *((first_extent,) if progressive else ()),
    )


def layout_constraints() -> list[Expression]:
    """The end of a component is a multiple of the stripe size."""
    return [parse("stripe_size <= first_extent")]


def layout_of(configuration: Mapping[str, Value]) -> Layout | None:
    """The layout of a configuration; None: the inherited one."""
    kind = configuration.get("layout", "inherited")
    if kind == "inherited":
        return None
    count, size = int(configuration["stripe_count"]), int(configuration["stripe_size"])
    last = Component(None, count, size)
    if kind == "plain":
        return Layout((last,))
    return Layout((Component(int(configuration["first_extent"]), 1, size), last))


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a file.

    Attributes:
        end_bytes: where it ends; None: it has no end.
        stripe_count: the OSTs.
        stripe_bytes: the bytes on one before the next.
    """

    end_bytes: int | None
    stripe_count: int
    stripe_bytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The components of a file, in the order of their places."""

    components: tuple[Component, ...]

    @property
    def words(self) -> list[str]:
        """The options of `lfs setstripe`."""
        found: list[str] = []
        for one in self.components:
            if len(self.components) > 1:
                found += ["-E", "-1" if one.end_bytes is None else str(one.end_bytes)]
            found += ["-c", str(one.stripe_count), "-S", str(one.stripe_bytes)]
        return found

    @classmethod
    def told(cls, text: str) -> Layout | None:
        """The layout in what `lfs getstripe -d` writes; None: it cannot be read."""
        counts, sizes, ends = (pattern.findall(text) for pattern in (_COUNT, _SIZE, _END))
        if not counts or len(counts) != len(sizes) or len(ends) not in (0, len(counts)):
            return None
        if not ends and len(counts) > 1:
            return None
        if not all(_END_VALUE.fullmatch(end) for end in ends):
            return None
        limits = [None if end in _OPEN else int(end) for end in ends] or [None]
        rows = zip(limits, map(int, counts), map(int, sizes), strict=True)
        return cls(tuple(Component(*row) for row in rows))


UNKNOWN = Layout(())
"""That of a directory whose change has failed."""


class Lfs:
    """The `lfs` of a client.

    Args:
        node: the machine.
        program: the path of `lfs` there.
    """

    def __init__(self, node: Node, program: str) -> None:
        self._node, self._program = node, program

    def set_layout(self, directory: Path, layout: Layout) -> None:
        """Give a directory, which is empty, a layout for its files, and read it back.

        Raises:
            StageFailed: Lustre refuses it, or has another one in the end.
        """
        self._run("setstripe", *layout.words, str(directory))
        text = self._run("getstripe", "-d", str(directory))
        if Layout.told(text) != layout:
            shown = " ".join(text.split())
            raise StageFailed("lfs", f"setstripe {' '.join(layout.words)}: getstripe says {shown!r:.200}")

    def _run(self, *words: str) -> str:
        done = self._node.run([self._program, *words], LIMIT_S)
        if done.status != 0:
            raise StageFailed("lfs", f"{' '.join(words[:-1])}: exit status {done.status}", done.err)
        return done.out.decode("utf-8", errors="replace")
