"""One meaning a word: class names, metaphors that the field has a term for, and the map of the code."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "ascar"

QUALIFIED = {}
"""Class names that several modules define: always met together with what they are qualified by."""

METAPHORS = {
    "brain": "learner, policy",
    "mind": "experience, learner",
    "errand": "action",
    "dial": "setting key",
    "kin": "knob group",
    "ground": "environment",
    "regime": "workload model",
    "mood": "state",
    "crown": "choose as the best",
    "lookout": "abandonment rule",
    "wander": "walk, drift",
    "wandered": "walk, drift",
    "startled": "workload change",
    "whisper": "message",
}
"""Words that stood where the field has a term, with the term."""


def definitions():
    """Every public class at the top of a module, with its modules."""
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(), re.MULTILINE):
            found[name].append(str(path.relative_to(PACKAGE)))
    return found


def metaphors(text):
    """Those of the words in a text."""
    return METAPHORS.keys() & {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", text)}


def identifiers(text):
    """Every name that a module defines or uses."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name


def test_a_public_class_name_has_one_meaning():
    shared = {name: modules for name, modules in definitions().items() if len(modules) > 1}
    assert {name: modules for name, modules in shared.items() if name not in QUALIFIED} == {}


def test_no_metaphor_stands_where_the_field_has_a_term():
    met = [
        f"{path.relative_to(PACKAGE)}: {name}: say {METAPHORS[word]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if metaphors(text := path.read_text())  # also in prose, where they may stand
        for name in identifiers(text)
        for word in metaphors(name)
    ]
    assert met == []


def test_the_map_has_a_row_for_every_package_module_and_crate():
    rows = "".join(
        line.split("|")[1]
        for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines()
        if line.startswith("|")
    )
    packages = [f"`{path.parent.name}/`" for path in PACKAGE.glob("*/__init__.py")]
    modules = [f"`{path.name}`" for path in PACKAGE.glob("*.py") if not path.name.startswith("__")]
    crates = [f"`crates/{path.parent.name}`" for path in (ROOT / "crates").glob("*/Cargo.toml")]
    assert [one for one in (*packages, *modules, *crates) if one not in rows] == []
