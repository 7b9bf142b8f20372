"""The C library, built, installed to a prefix of its own, and called as its header says."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
_BASIC = {
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "uint32_t": ctypes.c_uint32,
    "int": ctypes.c_int,
    "char": ctypes.c_char,
}
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class Failed(Exception):
    """A function returned an error: its name, and what it said."""


class Pilot:
    """libascar through ctypes; structures and prototypes are read from the header itself.

    Args:
        header: its text.
        library: the shared library.
        prefix: what the header's names begin with.
    """

    def __init__(self, header: str, library: Path, prefix: str = "pilot") -> None:
        text = _COMMENT.sub("", header)
        self.prefix = prefix
        self.dll = ctypes.CDLL(str(library))
        constants = re.findall(rf"({prefix.upper()}_\w+) = (\d+)", text)
        self.constants = {name: int(value) for name, value in constants}
        self.types: dict[str, type] = {}
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, re.DOTALL):
            self.types[name] = type(name, (ctypes.Structure,), {"_fields_": list(self._fields(body))})
        self.workload_t = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_double, ctypes.c_void_p)
        self.progress_t = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        self.prototypes = dict(
            re.findall(
                rf"^(?:int|const char \*) ?\*?({prefix}_\w+)\((.*?)\);", text, re.MULTILINE | re.DOTALL
            )
        )
        for name, arguments in self.prototypes.items():
            function = getattr(self.dll, name)
            function.argtypes = [self._argument(one) for one in arguments.split(",") if one.strip() != "void"]
        for name in ("version", "last_error"):
            getattr(self.dll, f"{prefix}_{name}").restype = ctypes.c_char_p

    def _fields(self, body: str):
        for kind, name, size in re.findall(r"(\w+) (\w+)(?:\[(\d+)\])?;", body):
            basic = self.types.get(kind) or _BASIC[kind]
            yield name, basic * int(size) if size else basic

    def _argument(self, text: str) -> type:
        words = text.replace("const ", "").split()
        kind = words[0]
        if "*" in text:
            return ctypes.c_void_p
        if kind in {"pilot_workload_t", "pilot_progress_t"}:
            return getattr(self, kind.removeprefix("pilot_"))
        return _BASIC.get(kind, ctypes.c_int)

    def last_error(self) -> str:
        return getattr(self.dll, f"{self.prefix}_last_error")().decode()

    def call(self, name: str, *arguments: object) -> None:
        """Call the function `NAME` behind the prefix; arrays of NumPy and structures are passed by address.

        Raises:
            Failed: it returned an error.
        """
        status = getattr(self.dll, f"{self.prefix}_{name}")(*[_passed(one) for one in arguments])
        if status:
            known = {value: word for word, value in self.constants.items() if "_ERROR_" in word}
            raise Failed(f"{known[status]}: {self.last_error()}")

    def new(self, kind: str):
        return self.types[f"{self.prefix}_{kind}_t"]()


def _passed(one: object) -> object:
    if hasattr(one, "ctypes"):
        return one.ctypes.data
    if isinstance(one, ctypes.Structure | ctypes._SimpleCData):
        return ctypes.addressof(one)
    return one


@pytest.fixture(scope="session")
def prefix(tmp_path_factory) -> Path:
    """Where the library is installed, by the script that `make install-c` uses."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is missing; get Rust with rustup")
    build = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "ascar-ffi"]
    subprocess.run(build, cwd=ROOT, check=True)
    prefix = tmp_path_factory.mktemp("prefix")
    subprocess.run([ROOT / "scripts/install-c", prefix], check=True)
    return prefix


@pytest.fixture(scope="session")
def pilot(prefix) -> Pilot:
    return Pilot((prefix / "include/pilot.h").read_text(), prefix / "lib/libascar.so")


@pytest.fixture(scope="session")
def streams(prefix) -> Pilot:
    return Pilot((prefix / "include/congestion.h").read_text(), prefix / "lib/libascar.so", "ascar")


@pytest.fixture(scope="session")
def compiler() -> Callable[[str], str]:
    """Where a compiler is; skips where it is missing."""

    def find(name: str) -> str:
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is missing; set up with: make setup-dev")
        return found

    return find


@pytest.fixture(scope="session")
def failed() -> type[Failed]:
    return Failed


@pytest.fixture
def session(pilot):
    """A session of the preset quick."""
    handle = ctypes.c_void_p()
    pilot.call("create", pilot.constants["PILOT_QUICK"], handle)
    yield handle.value
    assert pilot.dll.pilot_free(handle.value) == 0


@pytest.fixture(scope="session")
def flags(prefix) -> list[str]:
    """What pkg-config says about the library, and where to find it at run time."""
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is missing; set up with: make setup-dev")
    search = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    told = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "ascar"], env=search, check=True, capture_output=True, text=True
    )
    return [*told.stdout.split(), f"-Wl,-rpath,{prefix}/lib"]
