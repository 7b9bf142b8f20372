"""What `ascar measure` measures: one command, or several sources, and the names of what they read."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ascar.nodes import Node
    from ascar.pilot import CommandRunner
    from ascar.pilot.several import SeveralSources

_FILE_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Measurands:
    """What carries out the rounds, and what they read.

    Attributes:
        runner: carries out the rounds.
        names: the names of what is read, without run times that nobody asked for.
        durations: the names of all run times.
        sources: the names of the sources; empty where there is one command.
        nodes: the nodes that commands run on; None: this machine.
        metrics: whether a metric in the output was asked for.
    """

    runner: CommandRunner | SeveralSources
    names: tuple[str, ...]
    durations: tuple[str, ...]
    sources: tuple[str, ...] = ()
    nodes: tuple[Node | None, ...] = field(default=(None,))

    def meant(self, option: str, name: str, also: Sequence[str] = ()) -> tuple[str, ...]:
        """What a name stands for: itself, or what every source calls by it.

        Raises:
            InputError: nothing has that name.
        """
        known = (*self.names, *self.durations, *also)
        if name in known:
            return (name,)
        found = tuple(one for one in dict.fromkeys(known) if one.partition(".")[2] == name)
        if not found:
            shown = dict.fromkeys((*self.names, *also)) or {"none": None}
            raise InputError(f"{option} {name!r:.80}: must be one of {', '.join(shown)[:400]}")
        return found


def command_of(argv: Sequence[str], metrics: Mapping[str, str], limit_s: float | None) -> Measurands:
    """One command on this machine."""
    from ascar.pilot import CommandRunner
    from ascar.pilot.command import DURATION

    runner = CommandRunner(argv, metrics, limit_s)
    default = () if runner.adjustable else (DURATION,)
    return Measurands(runner, tuple(metrics) or default, (DURATION,))


def sources_of(
    texts: Sequence[str], metrics: Mapping[str, str], nodes: Path | None, limit_s: float | None
) -> Measurands:
    """Several commands at once.

    Args:
        texts: NAME=COMMAND or NAME@NODE=COMMAND each.
        metrics: the place of each metric in the output: of SOURCE.NAME in that of one source, else of all.
        nodes: a file with the [[node]] tables; None: nodes are hosts as ssh takes them.
        limit_s: the longest that a command may run in a round.

    Raises:
        InputError: one of them is wrong.
    """
    from ascar.pilot import CommandRunner
    from ascar.pilot.command import DURATION
    from ascar.pilot.several import SeveralSources, Source

    tables = _tables(nodes)
    split = [_split(text) for text in texts]
    known = [name for name, _, _ in split]
    for metric in metrics:
        source, dot, _ = metric.partition(".")
        if dot and source not in known:
            raise InputError(
                f"--metric {metric:.80}: {source!r:.40} is no source; there are {', '.join(known)[:400]}"
            )
    sources: list[Source] = []
    names: list[str] = []
    places: list[Node | None] = []
    for name, node, words in split:
        own = {
            key.removeprefix(f"{name}."): place
            for key, place in metrics.items()
            if "." not in key or key.startswith(f"{name}.")
        }
        place = None if node is None else _node(name, node, tables)
        runner = CommandRunner(words, own, limit_s, place)
        sources.append(Source(name, runner))
        places.append(place)
        names += [f"{name}.{metric}" for metric in own or (() if runner.adjustable else (DURATION,))]
    together = SeveralSources(sources)
    if together.adjustable:
        names = [name for name in names if not name.endswith(f".{DURATION}")]
    durations = tuple(f"{name}.{DURATION}" for name in known)
    return Measurands(together, tuple(names), durations, tuple(known), tuple(places))


def _split(text: str) -> tuple[str, str | None, list[str]]:
    """Name, node and words of a source."""
    left, equals, command = text.partition("=")
    name, at, node = left.partition("@")
    if not equals or not name or (at and not node):
        raise InputError(
            f"--source = {text!r:.80}: must be NAME=COMMAND or NAME@NODE=COMMAND, e.g. client='./bench.sh'"
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--source {name:.40}: {str(error).lower()}; close the quotes") from error
    if not words:
        raise InputError(f"--source {name:.40}: has no COMMAND; give a program and its arguments after =")
    return name, node or None, words


def _tables(path: Path | None) -> dict[str, Mapping[str, object]] | None:
    """The [[node]] tables of a file by name; None where there is no file."""
    from ascar.small_file import SmallFile
    from ascar.study import node_tables

    if path is None:
        return None
    table = SmallFile(path, f"--nodes = {str(path)!r}", _FILE_BYTES_MAX).toml()
    return node_tables(table.get("node", []))


def _node(source: str, name: str, tables: dict[str, Mapping[str, object]] | None) -> Node:
    """The node of that name."""
    from ascar.nodes import node_of

    if tables is None:
        return node_of({"kind": "local"} if name == "local" else {"host": name})
    if name not in tables:
        there = ", ".join(tables) or "none; add a [[node]] table"
        raise InputError(
            f"--source {source:.40}: node {name!r:.80} must be the name of a [[node]] of --nodes; there are "
            f"{there[:400]}"
        )
    return node_of(tables[name])
