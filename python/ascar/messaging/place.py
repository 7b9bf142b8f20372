"""Where processes of one user find each other: the folder of connection files, and which file counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks
from ascar.messaging.settings import Settings, read_settings, settings_from_environment

if TYPE_CHECKING:
    from collections.abc import Mapping


def runtime_directory(environment: Mapping[str, str] | None = None) -> Path:
    """The folder for what lives as long as processes do: ASCAR_RUNTIME_DIR, or by the XDG specification."""
    known = os.environ if environment is None else environment
    if own := known.get("ASCAR_RUNTIME_DIR"):
        return Path(own)
    if base := known.get("XDG_RUNTIME_DIR"):
        return Path(base) / "ascar"
    home = known.get("XDG_STATE_HOME") or Path(known.get("HOME") or "/") / ".local" / "state"
    return Path(home) / "ascar" / "run"


def find_settings(
    user: str, named: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """How to connect: by the file that is named, the environment, or the server that runs on this machine.

    Args:
        user: the user whose connection file is taken, where ascar has started the server here.
        named: a connection file; None: as the environment says.
        environment: None: that of this process.

    Raises:
        InputError: settings are wrong.
        EnvironmentLacks: none of the three is there.
    """
    known = os.environ if environment is None else environment
    if named is not None:
        return read_settings(named)
    given = settings_from_environment(known)
    if given is not None:
        return given
    path = runtime_directory(known) / "messages" / f"{user}.toml"
    if path.exists():
        return read_settings(path)
    raise EnvironmentLacks(
        f"no message server: {path} is not there, and ASCAR_NATS_URL is not set; start one "
        "(`ascar sim serve` does), or name a connection file"
    )
