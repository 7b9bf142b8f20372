"""Files of the kernel, and sizes of others, read on this machine or on a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks
from ascar.workspace import bytes_below

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from ascar.nodes import Node

_LIMIT_S = 30.0
# Words are arguments, which no shell reads.
_READ = 'for file; do cat "$file" 2>/dev/null; printf "\\0"; done'
_SIZES = 'exec find "$1" -ignore_readdir_race ! -type d -printf "%s\\n"'
_OWNER_WRITES = 0o200


@dataclass(frozen=True, slots=True)
class KernelFiles:
    """Reads files; changes of settings go through the keeper.

    Attributes:
        node: the machine whose files are read; None: this one.
    """

    node: Node | None = None

    def text(self, path: Path) -> str:
        """What a file holds.

        Raises:
            EnvironmentLacks: it cannot be read, or the node cannot be reached.
        """
        if self.node is None:
            try:
                return path.read_text("utf-8", errors="replace")
            except OSError as error:
                raise EnvironmentLacks(f"{path}: {error.strerror}") from error
        return self._said("cat", "--", str(path))

    def texts(self, paths: Collection[Path]) -> dict[Path, str]:
        """What files hold; empty where one cannot be read. On a node, one program reads all of them.

        Raises:
            EnvironmentLacks: the node cannot be reached.
        """
        if self.node is None or not paths:
            return {path: _text(path) for path in paths}
        texts = self._said("sh", "-c", _READ, "read", *map(str, paths)).split("\0")
        if len(texts) != len(paths) + 1:
            raise EnvironmentLacks(
                f"node {self.node.name}: {', '.join(map(str, paths))[:200]}: cannot be read"
            )
        return dict(zip(paths, texts, strict=False))

    def bytes_below(self, directory: Path) -> int:
        """Bytes of the files below a directory, by their size.

        Raises:
            EnvironmentLacks: the node cannot be reached.
        """
        if self.node is not None:
            sizes = self._said("sh", "-c", _SIZES, "sizes", str(directory))
            return sum(map(int, sizes.split()))
        return bytes_below(directory)

    def can_be_written(self, path: Path) -> bool:
        """Whether its owner may write to it: what this kernel only shows, root cannot change either.

        Raises:
            EnvironmentLacks: there is no such file, or the node cannot be reached.
        """
        if self.node is None:
            try:
                return bool(path.stat().st_mode & _OWNER_WRITES)
            except OSError as error:
                raise EnvironmentLacks(f"{path}: {error.strerror}") from error
        return bool(int(self._said("stat", "--format=%a", "--", str(path)), 8) & _OWNER_WRITES)

    def in_force(self, path: Path) -> str:
        """The value in force; empty where it cannot be read."""
        try:
            return value_of(self.text(path))
        except EnvironmentLacks:
            return ""

    def words(self, path: Path) -> tuple[tuple[str, ...], str]:
        """The words that a file lists, and the one in brackets.

        Raises:
            EnvironmentLacks: there is none in brackets, or it cannot be read.
        """
        found = self.text(path).split()
        present = next((word.strip("[]") for word in found if word.startswith("[")), None)
        if present is None:
            raise EnvironmentLacks(f"{path}: lists no word in brackets; this kernel is not known")
        return tuple(word.strip("[]") for word in found), present

    def number(self, path: Path) -> int:
        """The number that a file holds.

        Raises:
            EnvironmentLacks: it holds none, or cannot be read.
        """
        text = self.text(path).strip()
        try:
            return int(text)
        except ValueError:
            raise EnvironmentLacks(f"{path}: has {text!r:.80}, where a number was expected") from None

    def _said(self, *words: str) -> str:
        """What a command on the node prints; its last word is a file."""
        assert self.node is not None, "commands are for nodes"
        done = self.node.run(words, _LIMIT_S)
        if done.status != 0:
            last = (done.err.strip().splitlines() or ["no message"])[-1]
            raise EnvironmentLacks(f"node {self.node.name}: {words[-1]}: {last[:300]}")
        return done.out.decode("utf-8", "replace")


def value_of(text: str) -> str:
    """The value in force, by what its file holds: of several words the one in brackets."""
    return next((word.strip("[]") for word in text.split() if word.startswith("[")), text.strip())


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
