"""What an ELF file says of how it was built."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# elf.h
ET_DYN = 3
EM_X86_64, EM_AARCH64 = 62, 183
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552
PF_X, PF_W = 1, 2
DT_NEEDED, DT_STRTAB = 1, 5
DT_NULL, DT_TEXTREL, DT_FLAGS, DT_FLAGS_1 = 0, 22, 30, 0x6FFFFFFB
DF_TEXTREL, DF_BIND_NOW = 0x4, 0x8
DF_1_NOW, DF_1_PIE = 0x1, 0x08000000


class Segment(NamedTuple):
    kind: int
    flags: int
    offset: int
    address: int
    size_bytes: int


class Elf:
    """A 64-bit, little-endian ELF file."""

    def __init__(self, content: bytes) -> None:
        assert content[:6] == b"\x7fELF\x02\x01"
        self.content = content
        self.kind, self.processor = struct.unpack_from("<HH", content, 16)
        (table,) = struct.unpack_from("<Q", content, 32)
        size, count = struct.unpack_from("<HH", content, 54)
        self.segments = [self._segment(table + place * size) for place in range(count)]

    def _segment(self, at: int) -> Segment:
        kind, flags, offset, address, _, size_bytes = struct.unpack_from("<IIQQQQ", self.content, at)
        return Segment(kind, flags, offset, address, size_bytes)

    def of(self, kind: int) -> list[Segment]:
        return [it for it in self.segments if it.kind == kind]

    def dynamic(self) -> dict[int, int]:
        """Tags and values of the dynamic section."""
        return dict(self._dynamic())

    def libraries(self) -> set[str]:
        """The libraries that it is linked with."""
        table = self._offset(self.dynamic()[DT_STRTAB])
        return {self._text(table + value) for tag, value in self._dynamic() if tag == DT_NEEDED}

    def newest(self, family: bytes) -> tuple[int, ...]:
        """The newest version of a library's symbols that it names, e.g. of b"GLIBC"; () for none."""
        found = re.findall(family + rb"_(\d+(?:\.\d+)+)\0", self.content)
        return max((tuple(map(int, text.split(b"."))) for text in found), default=())

    def _text(self, at: int) -> str:
        return self.content[at : self.content.index(b"\0", at)].decode()

    def _offset(self, address: int) -> int:
        """Where in the file an address is."""
        [found] = [it for it in self.of(PT_LOAD) if it.address <= address < it.address + it.size_bytes]
        return address - found.address + found.offset

    def _dynamic(self) -> Iterator[tuple[int, int]]:
        (segment,) = self.of(PT_DYNAMIC)
        for at in range(segment.offset, segment.offset + segment.size_bytes, 16):
            tag, value = struct.unpack_from("<qQ", self.content, at)
            if tag == DT_NULL:
                return
            yield tag, value


def faults(elf: Elf, *, is_program: bool) -> list[str]:
    """What an attacker would like about it."""
    dynamic = elf.dynamic()
    flags, flags_1 = dynamic.get(DT_FLAGS, 0), dynamic.get(DT_FLAGS_1, 0)
    stack, relro = elf.of(PT_GNU_STACK), elf.of(PT_GNU_RELRO)
    found = {
        "not position-independent": elf.kind != ET_DYN or (is_program and not flags_1 & DF_1_PIE),
        "no RELRO": len(relro) != 1,
        "RELRO only in part: functions are bound when first called": not (
            flags & DF_BIND_NOW or flags_1 & DF_1_NOW
        ),
        "an executable stack": len(stack) != 1 or bool(stack[0].flags & PF_X),
        "writable and executable": any(it.flags & PF_W and it.flags & PF_X for it in elf.of(PT_LOAD)),
        "code is written when it is loaded": DT_TEXTREL in dynamic or bool(flags & DF_TEXTREL),
        # The dynamic section, by which the linker finds functions, is read-only once it has run.
        "a writable dynamic section": not any(
            it.address <= elf.of(PT_DYNAMIC)[0].address < it.address + it.size_bytes for it in relro
        ),
    }
    return [name for name, is_so in found.items() if is_so]
