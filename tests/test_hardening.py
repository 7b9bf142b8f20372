"""How the binaries are built: at random addresses, with nothing to write where the linker or the code is."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ascar import _core
from ascar.program.node_binary import find_ascard
from elf_file import PF_W, PF_X, PT_GNU_RELRO, PT_GNU_STACK, PT_LOAD, Elf, faults


def test_the_node_binary_is_hardened():
    assert faults(Elf(find_ascard().read_bytes()), is_program=True) == []


def test_the_python_extension_is_hardened():
    assert _core.__file__ is not None
    assert faults(Elf(Path(_core.__file__).read_bytes()), is_program=False) == []


@pytest.mark.parametrize(
    ("kind", "field", "value", "fault"),
    [
        (PT_GNU_STACK, 4, PF_W | PF_X, "an executable stack"),
        (PT_LOAD, 4, PF_W | PF_X, "writable and executable"),
        (PT_GNU_RELRO, 0, 0, "no RELRO"),
    ],
)
def test_a_binary_that_is_not_is_seen(kind, field, value, fault):
    content = bytearray(find_ascard().read_bytes())
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    places = [table + place * size for place in range(count)]
    at = next(place for place in places if struct.unpack_from("<I", content, place) == (kind,))
    struct.pack_into("<I", content, at + field, value)
    assert fault in faults(Elf(bytes(content)), is_program=True)
