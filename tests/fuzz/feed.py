"""Feeds one parser by Atheris: `python tests/fuzz/feed.py NAME [options of libFuzzer] [corpus]`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import atheris
from parsers import PARSERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FunctionType

MEMORY_MIB = 256
"""What a parser may take beside the libraries that it needs."""


def functions(modules: tuple[str, ...]) -> Iterator[FunctionType]:
    """The functions and methods of modules that are loaded, and of those below them."""
    for name, module in list(sys.modules.items()):
        if not any(name == one or name.startswith(f"{one}.") for one in modules):
            continue
        for value in list(vars(module).values()):
            members = list(vars(value).values()) if inspect.isclass(value) else [value]
            for member in members:
                plain = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
                plain = inspect.unwrap(plain) if callable(plain) else plain
                if inspect.isfunction(plain) and plain.__module__ == name:
                    yield plain


def resident_mib() -> int:
    """What this process takes now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 >> 20


def main() -> None:
    """Feeds until the options say that it is enough."""
    name, options = sys.argv[1], sys.argv[2:]
    if name not in PARSERS:
        sys.exit(f"{name!r}: allowed are {', '.join(PARSERS)}")
    parser = PARSERS[name]
    # Only branches of these are counted: instrumenting takes time, and those of libraries would hide them.
    parser.feed(b"")  # imports what it needs
    for function in dict.fromkeys(functions(parser.modules)):
        atheris.instrument_func(function)
    limit = f"-rss_limit_mb={resident_mib() + MEMORY_MIB}"
    atheris.Setup([sys.argv[0], limit, *options], parser.feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
