"""What is installed only by those who ask for it: `pip install 'ascar[explore]'`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks

if TYPE_CHECKING:
    from collections.abc import Generator

EXTRAS = {
    "anyio": "explore",
    "matplotlib": "explore",
    "polars": "explore",
    "starlette": "explore",
    "uvicorn": "explore",
    "jax": "drl",
    "gymnasium": "gym",
    "psycopg": "postgres",
    "sklearn": "rivals",
}
"""The extra that each package comes with, by the name that it is imported by."""
OF_PACKAGE = "/usr/lib/ascar"
"""Where the packages of Debian and RPM have the environment of Python."""


def lacking(error: ImportError) -> EnvironmentLacks | None:
    """The extra that an import lacks; None if it failed for another reason."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(package) if isinstance(error, ModuleNotFoundError) else None
    return None if extra is None else _lacks(package, extra)


@contextmanager
def importing_extra(extra: str) -> Generator[None]:
    """A context for imports of packages that come with an extra.

    Args:
        extra: its name.

    Raises:
        EnvironmentLacks: one cannot be imported; the message names the extra.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or str(error)).partition(".")[0]
        raise _lacks(package, extra) from error


def require(package: str) -> None:
    """See that a package of an extra is there, before work is done whose result needs it.

    Raises:
        EnvironmentLacks: it cannot be imported.
    """
    with importing_extra(EXTRAS[package]):
        import_module(package)


def _lacks(package: str, extra: str) -> EnvironmentLacks:
    how = f"pip install 'ascar[{extra}]'"
    if sys.prefix == OF_PACKAGE:  # which pip does not change, and an upgrade replaces
        how = f"python3 -m venv DIRECTORY && DIRECTORY/bin/{how}, for the package ascar is without it"
    return EnvironmentLacks(f"{package} cannot be imported; install it with: {how}")
