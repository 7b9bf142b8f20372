"""What commands of the documentation print: run again, and written into its pages.

    python scripts/outputs.py                              every page of docs/ that has marks, in place
    python scripts/outputs.py docs/tutorials/measure.md    this one

In a page, the comment `<!-- run -->` stands before a block of commands, and `<!-- output -->` before the
block of what they print; with `<!-- output: 9 + 1 lines -->` that is its first nine lines and its last one.
The commands of a page run one after the other, in one empty directory and with a history of their own. The
site's pages have the output of the build; the pages in docs/ that of the day on which they were written. A
page that has commands and no marks is in `NOT_RUN`, with the reason. Commands that measure go before
other work of the machine where that is allowed, as to root: beside it, readings may take minutes to agree.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 300.0
_PLACE = os.environ.get("TMPDIR", "/var/tmp")  # noqa: S108 - a disk: /tmp may be memory, which knows no direct reads
_MARK = re.compile(r"<!-- (run|output)(?:: (\d+) \+ (\d+) lines)? -->")
_HEREDOC = re.compile(r"<<'(\w+)'")
_INDENT = "    "
_MEASURES = ("ascar measure ", "ascar compare ")
_ACCEPTED = (0, 3)  # 3: no decision, which a busy machine may come to


NOT_RUN = {
    "reads what this machine has, or changes it, as root, for minutes": (
        *("howto/apply.md", "howto/linux.md", "howto/localfs.md", "howto/nfs.md", "tutorials/offline.md"),
    ),
    "takes a server, a cluster, a device or a node of the reader's": (
        *("howto/ceph.md", "howto/lustre.md", "howto/mariadb.md", "howto/node.md", "howto/postgresql.md"),
        *("howto/redis.md", "howto/rocksdb.md", "howto/system.md"),
    ),
    "is of processes that work until they are stopped, on several nodes": (
        *("howto/agent.md", "howto/capes.md", "howto/deploy-rules.md", "howto/disk.md", "howto/interface.md"),
        *("howto/learner.md", "howto/proxy-http.md", "howto/proxy.md", "howto/several-nodes.md"),
        *("howto/testbed-kernels.md", "howto/testbed-search.md", "howto/testbed.md"),
    ),
    "is of a page in a browser, whose pictures the tests of that page take": (
        *("howto/explore.md", "tutorials/explore.md"),
    ),
    "takes minutes or hours, and gives the figures of the machine that it names": (
        *("algorithms/parsimony.md", "algorithms/sharp.md", "benchmarks-capes.md", "benchmarks-load.md"),
        *("benchmarks-optimizers.md", "dataset.md", "howto/dataset.md"),
    ),
    "is of what tutorials/measure.md shows with its output": (
        *("algorithms/pilot.md", "algorithms/sequential.md", "algorithms/wps.md"),
    ),
    "shows files and the commands that read them, which a test of the page carries out": (
        "howto/readings.md",
    ),
    "is made from what the commands say of themselves": ("reference/commands.md",),
    "installs ascar": ("howto/install.md",),
}
"""Pages of docs/ with commands of ascar that are not run, by the reason."""


@dataclass(frozen=True, slots=True)
class MarkedBlock:
    """An indented block below a mark.

    Attributes:
        kind: "run" or "output".
        begin: the number of its first line in the page, from 0.
        end: the number after its last line's.
        kept: how many lines of an output are shown, at its begin and at its end; None: all.
    """

    kind: str
    begin: int
    end: int
    kept: tuple[int, int] | None


class OutputError(Exception):
    """A page's marks are wrong, or a command of it fails."""


def main() -> int:
    """Write the outputs of the pages that are named, or of all that have marks."""
    pages = [Path(name) for name in sys.argv[1:]] or marked_pages(ROOT / "docs")
    for page in pages:
        try:
            page.write_text(with_outputs(page.read_text("utf-8")), "utf-8")
        except OutputError as error:
            sys.stderr.write(f"{page}: {error}\n")
            return 1
    return 0


def marked_pages(folder: Path) -> list[Path]:
    """The pages below a folder that have marks."""
    return [page for page in sorted(folder.rglob("*.md")) if _MARK.search(page.read_text("utf-8"))]


def with_outputs(page: str) -> str:
    """The text of a page with what its commands print now.

    Raises:
        OutputError: an output has no commands before it, or a command fails.
    """
    lines, printed, shown = page.splitlines(), list[str](), dict[MarkedBlock, list[str]]()
    with tempfile.TemporaryDirectory(prefix="ascar-docs-", dir=_PLACE) as folder:
        for block in marked_blocks(page):
            if block.kind == "run":
                printed = [
                    line for text in commands(lines[block.begin : block.end]) for line in ran(text, folder)
                ]
            elif not printed:
                raise OutputError(f"line {block.begin}: an output without commands before it that print")
            else:
                shown[block], printed = shortened(printed, block.kept), []
    for block, output in reversed(shown.items()):
        lines[block.begin : block.end] = [f"{_INDENT}{line}".rstrip() for line in output]
    return "\n".join(lines) + "\n"


def marked_blocks(page: str) -> Iterator[MarkedBlock]:
    """The marked blocks of a page, in order.

    Raises:
        OutputError: no block follows a mark.
    """
    lines = page.splitlines()
    for number, line in enumerate(lines):
        found = _MARK.fullmatch(line)
        if found is None:
            continue
        begin = number + 1
        while begin < len(lines) and not lines[begin].strip():
            begin += 1
        end = begin
        while end < len(lines) and (lines[end].startswith(_INDENT) or not lines[end].strip()):
            end += 1
        while end > begin and not lines[end - 1].strip():
            end -= 1
        if end == begin:
            raise OutputError(f"line {number + 1}: no indented block follows the mark")
        kept = None if found[2] is None else (int(found[2]), int(found[3]))
        yield MarkedBlock(found[1], begin, end, kept)


def commands(block: list[str]) -> list[str]:
    """The commands of a block.

    A line that ends in a backslash goes on in the next one; one with `<<'END'` is given the lines up to END.
    """
    text = "\n".join(line.removeprefix(_INDENT) for line in block)
    lines = iter(re.sub(r"\\\n\s*", "", text).splitlines())
    return ["\n".join(_whole(line, lines)) for line in lines if line.strip()]


def _whole(line: str, rest: Iterator[str]) -> list[str]:
    """A command's line with those that it is given."""
    found = [line]
    end = _HEREDOC.search(line)
    while end is not None and found[-1] != end[1]:
        found.append(next(rest, end[1]))
    return found


@contextmanager
def ahead(wanted: bool) -> Iterator[None]:
    """Have what this thread starts take the processors before other programs, if wanted and allowed."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    if wanted:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def ran(command: str, folder: str) -> list[str]:
    """What a command prints in a directory on standard output; progress goes elsewhere.

    Raises:
        OutputError: it fails, or does not end.
    """
    own = {"ASCAR_HISTORY": f"{folder}/history.sqlite", "ASCAR_LIBRARY": f"{folder}/library", "NO_COLOR": "1"}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    try:
        with ahead(command.startswith(_MEASURES)):
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=folder,
                env={**os.environ, **own, "PATH": path, "COLUMNS": "120"},
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise OutputError(f"{command}: does not end within {PATIENCE_S:.0f} s") from None
    if done.returncode not in _ACCEPTED:
        raise OutputError(f"{command}: exit status {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout.rstrip().splitlines()


def shortened(output: list[str], kept: tuple[int, int] | None) -> list[str]:
    """The lines that are shown of an output."""
    if kept is None or len(output) <= sum(kept):
        return output
    first, last = kept
    return [*output[:first], "...", *(output[-last:] if last else [])]


if __name__ == "__main__":
    sys.exit(main())
