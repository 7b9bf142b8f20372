"""The options of RocksDB that bear on speed, by its own names; `rocksdb.toml` lists them."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from ascar.catalogues import listed
from ascar.catalogues.server_setting import RankedSetting
from ascar.space import ChangeCost

VERSION_MIN = (7, 0)
"""The oldest version that ascar tunes."""

SECTIONS = ("DBOptions", "CFOptions", "TableOptions/BlockBasedTable")
"""The sections of an OPTIONS file."""

_WORDS = {"false": False, "0": False, "true": True, "1": True}
_SIZE = re.compile(r"([0-9]+)([KMGT])", re.IGNORECASE)
_SUFFIXES = "KMGT"


class RocksOption(RankedSetting, frozen=True, kw_only=True):
    """An option of RocksDB; see `rocksdb.toml`.

    Attributes:
        section: the section of an OPTIONS file that it stands in.
        called: the name in a study; empty: RocksDB's own.
        layout: whether it decides how files are written, so that the data has to be written anew for it.
        puts_off: whether it decides how long compactions are put off.
        form: how a number is written, with `{}` in its place; empty: plain.
        none: the text in place of the number 0.
    """

    section: Literal["DBOptions", "CFOptions", "TableOptions/BlockBasedTable"]
    called: str = ""
    layout: bool = False
    puts_off: bool = False
    form: str = ""
    none: str = ""

    @property
    def parameter_name(self) -> str:
        """The name in a study."""
        return self.called or self.name

    @property
    def cost(self) -> ChangeCost:
        """The cost of a change; data that has to be written anew is as good as restored."""
        return ChangeCost.REFORMAT_RESTORE if self.layout else super().cost

    def text(self, value: object) -> str:
        """A value as an OPTIONS file has it: true, 4096, 10.000000, kZSTD, bloomfilter:10:false."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return f"{value:.6f}"
        if self.none and value == 0:
            return self.none
        return self.form.format(value) if self.form else str(value)

    def value(self, text: str) -> bool | int | float | str:
        """A value from what RocksDB writes; what is none of the kind stays a text."""
        if self.kind == "boolean":
            return _WORDS.get(text, text)
        if self.kind == "choice":
            return text
        if self.none and text == self.none:
            return 0
        if self.form:
            text = text.removeprefix(self.form.partition("{")[0]).partition(":")[0]
        size = _SIZE.fullmatch(text)
        if size is not None:
            return int(size[1]) << 10 * (1 + _SUFFIXES.index(size[2].upper()))
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if self.kind == "integer" and number.is_integer() else number


@cache
def rocksdb() -> dict[str, RocksOption]:
    """The options by name, those of the expert's space first."""
    return listed("rocksdb", RocksOption)
