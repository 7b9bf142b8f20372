"""The settings of Ceph's OSDs and clients that bear on speed, by Ceph's own names; `ceph.toml` lists them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from ascar.catalogues import listed
from ascar.catalogues.server_setting import RankedSetting

if TYPE_CHECKING:
    from ascar.space import Parameter

VERSION_MIN = (16, 2)
"""The oldest version that ascar tunes."""

_LEVELS = re.compile("(?:1?[0-9]|20)/(?:1?[0-9]|20)")
"""What is written of a subsystem's log to the file, and what is kept in memory."""
_WORDS = {False: "false", True: "true"}


class CephSetting(RankedSetting, frozen=True, kw_only=True):
    """A setting of a cluster; see `ceph.toml`.

    Attributes:
        who: whose setting it is, as `ceph config set` names it.
    """

    who: Literal["osd", "client"] = "osd"

    def parameter(self, default: bool | int | float | str | None = None) -> Parameter:
        """The setting as a parameter; any level of logging is a value where it is in force today.

        Raises:
            SpaceError: the setting cannot have that value.
        """
        value = self.default if default is None else default
        if self.name.startswith("debug_") and isinstance(value, str) and _LEVELS.fullmatch(value):
            levels = tuple(dict.fromkeys((*self.values, value)))
            return RankedSetting.parameter(replace(self, values=levels), value)
        return super().parameter(default)

    def text(self, value: object) -> str:
        """A value as Ceph tells it: true, 4096, 0.450000."""
        if isinstance(value, bool):
            return _WORDS[value]
        return f"{value:.6f}" if isinstance(value, float) else str(value)

    def value(self, text: str) -> bool | int | float | str:
        """A value from what Ceph tells; what is none of the kind stays a text."""
        if self.kind == "boolean":
            return {"false": False, "true": True}.get(text, text)
        if self.kind == "choice":
            return text
        try:
            return int(text) if self.kind == "integer" else float(text)
        except ValueError:
            return text


@cache
def ceph() -> dict[str, CephSetting]:
    """The settings by Ceph's names, those of the expert's space first."""
    return listed("ceph", CephSetting)
