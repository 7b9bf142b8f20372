"""The licences of what others wrote: name, version and licence of each part, and every text once.

    python scripts/third_party.py                      writes THIRD-PARTY-LICENSES.txt of both wheels
    python scripts/third_party.py --nats-server FILE   writes packaging/licences/nats-server.txt (needs Go)

Parts are those of the bill of materials, as far as a program has something of them. Texts are the files of
licences in a crate's sources, what `make page` found of the page of `ascar explore`, and for what is neither
those in packaging/licences. What is written depends on the locked versions alone.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bill_of_materials import MESSAGE_SERVER, OF_COMPILERS, ROOT, crates, said

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT = ROOT / "packaging/licences"
"""A folder of texts for each part whose sources have too few, and texts that packages have besides."""
PAGE = ROOT / "python/ascar/web/page/licences.json"
"""What Vite says of the parts that it found in the page."""
FILES_OF_LICENCES = re.compile(
    r"((un)?licen[cs]es?|copying|copyright|notice|patents)([-_.][\w.-]*)?", re.IGNORECASE
)
NO_TEXT = {".html", ".json", ".py", ".rs", ".sh", ".svg", ".toml", ".yaml", ".yml"}
OF_WHEELS = {"ascar": "THIRD-PARTY-LICENSES.txt", "ascard": "crates/ascard/THIRD-PARTY-LICENSES.txt"}
"""Where the file of each wheel is."""
RULE = "-" * 100


class Part(NamedTuple):
    """Something that others wrote; `licence` is an expression of SPDX, or nothing where no registry tells."""

    name: str
    version: str
    licence: str
    texts: tuple[str, ...]


RUST_LIBRARY = (
    "Rust's standard library",
    "with compiler-builtins, hashbrown, gimli and others under the same licences",
    OF_COMPILERS["rust-std"],
)
"""It is in every program of Rust; which version, the compiler decides."""


class LacksLicence(Exception):
    """The sources of a part have no text of a licence."""


def documents() -> dict[Path, str]:
    """The files of both wheels.

    Raises:
        LacksLicence: a part has no text.
    """
    rust = Part(*RUST_LIBRARY, texts=texts_in(KEPT / "rust"))
    found = {
        "ascar": ("ascar", [rust, *of_crates(crates("ascar-python", through_macros=False)), *of_page()]),
        "ascard": ("the node binary ascard", [rust, *of_crates(crates("ascard", through_macros=False))]),
    }
    return {ROOT / OF_WHEELS[wheel]: document(what, parts) for wheel, (what, parts) in found.items()}


def of_crates(packages: Iterable[dict[str, Any]]) -> list[Part]:
    """Crates with the texts in their sources, or in a folder of their name in packaging/licences.

    Raises:
        LacksLicence: a crate has no text; it is named.
    """
    parts = []
    for one in packages:
        kept = KEPT / one["name"]
        texts = texts_in(kept if kept.is_dir() else Path(one["manifest_path"]).parent)
        if not texts:
            raise LacksLicence(
                f"the crate {one['name']} {one['version']} ({one['license']}) has no text of a licence: put "
                f"that of its repository into {kept.relative_to(ROOT)}/LICENSE"
            )
        parts.append(Part(one["name"], one["version"], one["license"], texts))
    return parts


def of_page() -> list[Part]:
    """What Vite put into the page of `ascar explore`.

    Raises:
        LacksLicence: a package of npm has no text; it is named.
    """
    parts = []
    for one in json.loads(PAGE.read_text("utf-8")):
        if not (one.get("text") or "").strip():
            raise LacksLicence(f"the package of npm {one['name']} {one['version']} has no text of a licence")
        parts.append(Part(one["name"], one["version"], one["identifier"], (one["text"],)))
    return parts


def of_go(program: Path) -> list[Part]:
    """The modules that a program of Go says it is built from, and Go's own library.

    Raises:
        LacksLicence: a module has no text; it is named.
    """
    told = said("go", "version", "-m", str(program))
    compiler = told.splitlines()[0].rpartition(": ")[2].removeprefix("go")
    library = Path(said("go", "env", "GOROOT").strip(), "LICENSE").read_text("utf-8")
    parts = [Part("Go's standard library", compiler, "BSD-3-Clause", (library,))]
    for name, version in modules_of_go(told):
        place = json.loads(said("go", "mod", "download", "-json", f"{name}@{version}"))["Dir"]
        texts = texts_in(Path(place))
        if not texts:
            raise LacksLicence(f"the module of Go {name} {version} has no text of a licence")
        parts.append(Part(name, version, "", texts))
    return parts


def modules_of_go(told: str) -> list[tuple[str, str]]:
    """Names and versions of modules in what `go version -m` prints."""
    return re.findall(r"^\t(?:mod|dep)\t(\S+)\t(v\S+)", told, re.MULTILINE)


def texts_in(folder: Path) -> tuple[str, ...]:
    """The texts of licences in a folder and below, in the order of their paths; an empty file is none."""
    files = (
        file
        for file in sorted(folder.rglob("*"))
        if FILES_OF_LICENCES.fullmatch(file.name) and file.suffix not in NO_TEXT and file.is_file()
    )
    return tuple(text for text in (file.read_text("utf-8") for file in files) if text.strip())


def document(what: str, parts: Iterable[Part]) -> str:
    """Parts by name, each with the numbers of its texts, and below them the texts.

    Texts that differ in nothing but white space are one.
    """
    numbers: dict[str, int] = {}
    texts: list[str] = []
    lines = [f"What others wrote and {what} contains; numbers are those of the texts of licences below.", ""]
    for part in sorted(parts):
        told = []
        for text in part.texts:
            words = " ".join(text.split())
            if words not in numbers:
                numbers[words] = len(texts) + 1
                texts.append(text)
            told.append(numbers[words])
        name = " ".join(word for word in (part.name, part.version) if word)
        licence = f", {part.licence}" if part.licence else ""
        lines.append(f"{name}{licence}: {', '.join(str(number) for number in sorted(set(told)))}")
    for number, text in enumerate(texts, 1):
        tidy = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n\f")
        lines += ["", RULE, f"{number}", RULE, "", tidy]
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> None:
    """Write the files that the words of a command ask for."""
    match words:
        case []:
            made = documents()
        case ["--nats-server", program]:
            made = {MESSAGE_SERVER: document("nats-server", of_go(Path(program)))}
        case _:
            raise SystemExit("third_party: must be called with no words, or with --nats-server FILE")
    for file, text in made.items():
        file.write_text(text, "utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except LacksLicence as error:
        raise SystemExit(f"third_party: {error}") from None
