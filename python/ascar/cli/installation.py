"""What `ascar --version` says: the version first, then what it runs on and what it finds."""

from __future__ import annotations

import hashlib
import platform
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ascar import __version__
from ascar.errors import EnvironmentLacks
from ascar.extras import EXTRAS
from ascar.messaging.server import find_nats_server
from ascar.program.node_binary import find_ascard
from ascar.program.said import said_by

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIGITS = 12


def installation_lines() -> Iterator[str]:
    """The lines, without line feeds; the first is `ascar VERSION`."""
    yield f"ascar {__version__}"
    yield f"Python {platform.python_version()} ({sys.executable}), {platform.machine()}"
    yield _ascard()
    yield _extras()
    yield _message_server()
    yield f"build: {', '.join(_builds())} (SHA-256)"


def _ascard() -> str:
    try:
        ascard = find_ascard()
    except EnvironmentLacks as error:
        return str(error)
    said = said_by(str(ascard), "--version").out.strip()
    return f"{said} ({ascard})" if said else f"ascard: {ascard} says no version"


def _extras() -> str:
    lacking = {extra for package, extra in EXTRAS.items() if find_spec(package) is None}
    there = sorted(set(EXTRAS.values()) - lacking)
    return f"extras: {', '.join(there) or 'none'}; not installed: {', '.join(sorted(lacking)) or 'none'}"


def _message_server() -> str:
    try:
        return f"message server: {find_nats_server()}"
    except EnvironmentLacks as error:
        return str(error)


def _builds() -> Iterator[str]:
    """What tells two builds of a version apart: those of equal sources are equal."""
    extension = find_spec("ascar._core")
    files = {"extension": Path(extension.origin)} if extension and extension.origin else {}
    with suppress(EnvironmentLacks):
        files["ascard"] = find_ascard()
    for name, file in files.items():
        try:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()[:_DIGITS]
        except OSError as error:
            digest = f"cannot be read: {error.strerror}"
        yield f"{name} {digest}"
