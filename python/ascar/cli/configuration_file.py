"""A configuration in a file, as the page of `ascar explore` saves one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ascar import typed
from ascar.cli.output import say
from ascar.small_file import SmallFile

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.space import Configuration, Space

SCHEMA = "ascar/configuration/1"
_BYTES_MAX = 1_000_000


class _File(msgspec.Struct, frozen=True):
    configuration: dict[str, Any]
    schema: str = ""


def read_configuration(path: Path, space: Space) -> Configuration:
    """The configuration in a file, in the words of a space.

    Columns of a table that are no parameters of this space (the load, the device) are left out, and said.

    Raises:
        InputError: it cannot be read, is of another form, or the space does not allow it.
    """
    where = f"--configuration = {str(path)!r}"
    file = SmallFile(path, where, _BYTES_MAX, "save one in `ascar explore`")
    try:
        found = typed.decode(file.content(), _File)
    except (ValueError, RecursionError) as error:
        raise file.refused(f"is not a configuration: {error}") from error
    if found.schema != SCHEMA:
        raise file.refused(f"schema {found.schema!r}: must be {SCHEMA!r}")
    strange = sorted(set(found.configuration) - set(space.names))
    if strange:
        say(f"warning: {where}: {', '.join(strange)}: no parameters of this study; left out")
    return space.validate({name: value for name, value in found.configuration.items() if name in space})
