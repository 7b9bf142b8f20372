"""One option, one meaning: whoever knows an option of one command knows it of all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_tree import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

# Names that would say again what another option says, and that option.
_SAID_BY = {
    "--alpha": "--confidence",
    "--dir": "--plots or --out",
    "--for": "--budget",
    "--higher-is-better": "--direction",
    "--level": "--confidence",
    "--limit": "--budget",
    "--lower-is-better": "--direction",
    "--output": "--out",
    "--p": "--confidence",
    "--seconds": "--duration",
    "--seeds": "--runs",
    "--significance": "--confidence",
    "--stop-after": "--budget",
    "--timeout": "--budget",
    "--yes-really": "--yes",
}


def _options() -> Iterator[tuple[str, Any]]:
    for path, command in COMMANDS.items():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                yield path, parameter


def _meaning(option: Any) -> tuple[Any, ...]:
    kind = option.type
    value = (kind.name, *(getattr(kind, limit, None) for limit in ("choices", "min", "max")))
    names = (*option.opts, *option.secondary_opts)
    return names, value, option.is_flag, option.metavar, option.help


def test_an_option_has_one_type_and_one_sentence_in_all_commands() -> None:
    seen: dict[str, tuple[str, tuple[Any, ...]]] = {}
    for path, option in _options():
        for name in (*option.opts, *option.secondary_opts):
            before, meaning = seen.setdefault(name, (path, _meaning(option)))
            assert meaning == _meaning(option), f"{name} of `{path}` and of `{before}`"
    assert len(seen) > 100


def test_one_sentence_belongs_to_one_option() -> None:
    seen: dict[str, str] = {}
    for path, option in _options():
        first = seen.setdefault(option.help, option.opts[0])
        assert first == option.opts[0], f"`{path}`: {option.opts[0]} says what {first} says"


def test_a_sentence_is_one() -> None:
    for path, option in _options():
        text = option.help
        assert text[0].isupper() and text.endswith("."), f"`{path}` {option.opts[0]}: {text}"
        assert not text.startswith(("Of ", "That ", "For ")), f"`{path}` {option.opts[0]}: {text}"


@pytest.mark.parametrize("name", sorted(_SAID_BY))
def test_a_concept_has_one_name(name: str) -> None:
    used = [path for path, option in _options() if name in (*option.opts, *option.secondary_opts)]
    assert used == [], f"use {_SAID_BY[name]}"


def test_what_can_be_started_goes_up_and_down() -> None:
    names = set(COMMANDS)
    assert {"ascar capes up", "ascar capes status", "ascar capes down"} <= names
    assert not [name for name in names if name.split()[-1] in {"start", "stop", "end", "kill"}]


def test_every_option_is_named_in_a_test_or_on_a_page_made_by_hand() -> None:
    root = Path(__file__).resolve().parents[2]
    made = {root / "docs" / "reference" / "commands.md"}
    paths = {*root.glob("tests/**/*.py"), *root.glob("docs/**/*.md"), root / "README.md"} - made
    written = set(re.findall(r"--[a-z][a-z-]*[a-z]", "\n".join(path.read_text("utf-8") for path in paths)))
    for path, option in _options():
        names = {name for name in (*option.opts, *option.secondary_opts) if name.startswith("--")}
        assert names & written, f"{path} {option.opts[0]}"
