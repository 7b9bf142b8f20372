"""What a server's manual advises for a machine: a configuration that a search tries early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.postgresql import BYTES
from ascar.expression import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascar.catalogues.server_setting import ServerSetting
    from ascar.space import Value

_UNIT_BYTES = {**BYTES, "": 1, "bytes": 1}


def advised_values(settings: Iterable[ServerSetting], memory_bytes: int) -> dict[str, Value]:
    """The advised values by parameter; settings of which the manual advises nothing are left out.

    Args:
        settings: the settings of the server.
        memory_bytes: the memory that the server may use: `memory` in the formulas, in the setting's own unit.
    """
    found: dict[str, Value] = {}
    for one in settings:
        if one.advised is None:
            continue
        value: Value = one.advised
        if isinstance(value, str) and one.kind != "choice":
            number = parse(value).number({"memory": memory_bytes / _UNIT_BYTES[one.unit]})
            value = int(number // one.step * one.step) if one.kind == "integer" else number
        found[one.parameter_name] = value
    return found
