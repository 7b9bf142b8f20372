"""The settings of MariaDB that bear on speed, by the server's own names; `mariadb.toml` lists them."""

from __future__ import annotations

import re
from functools import cache

from ascar.catalogues import listed
from ascar.catalogues.server_setting import RankedSetting

VERSION_MIN = (10, 11)
"""The oldest version that ascar tunes."""

_WORDS = {
    "OFF": False,
    "FALSE": False,
    "0": False,
    "NO": False,
    "ON": True,
    "TRUE": True,
    "1": True,
    "YES": True,
}
_SIZE = re.compile(r"([0-9]+)([KMGT])", re.IGNORECASE)
_SUFFIXES = "KMGT"


class MariaSetting(RankedSetting, frozen=True, kw_only=True):
    """A setting of the server; see `mariadb.toml`.

    Attributes:
        binary_log: whether it has an effect only in a server that keeps a binary log.
    """

    binary_log: bool = False

    def text(self, value: object) -> str:
        """A value as the server writes it: ON, 4096, O_DIRECT."""
        if isinstance(value, bool):
            return "ON" if value else "OFF"
        return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

    def value(self, text: str) -> bool | int | float | str:
        """A value from what the server or its my.cnf writes; what is none of the kind stays a text."""
        if self.kind == "boolean":
            return _WORDS.get(text.upper(), text)
        if self.kind == "choice":
            return next((one for one in self.values if one.lower() == text.lower()), text)
        size = _SIZE.fullmatch(text)
        if size is not None:
            return int(size[1]) << 10 * (1 + _SUFFIXES.index(size[2].upper()))
        try:
            number = float(text)
        except ValueError:
            return text
        return int(text) if self.kind == "integer" and text.lstrip("-").isdigit() else number


@cache
def mariadb() -> dict[str, MariaSetting]:
    """The settings of all versions by name, those of the expert's space first."""
    return listed("mariadb", MariaSetting)
