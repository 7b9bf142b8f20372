"""The keys of a study file's tables, read off the structs that read them: name, type, default, meaning."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any, cast

import msgspec

_TYPES = (
    (r" \| None", ""),
    (r"tuple\[str \| tuple\[str, \.\.\.\], \.\.\.\]", "list of words"),
    (r"[\w.]*\b(?:DiversityStop|RemainingGainStop|StopSection|FileSection|Tls)\b", "table"),
    (r"typing\.", ""),
    (r"dict\[[^\[\]]*(?:\[[^\[\]]*\])?[^\[\]]*\]", "table"),
    (r"(?:tuple|list)\[(\w+)(?:, \.\.\.)?\]", r"list of \1"),
    (r"Literal\[(.*?)\]", r"one of \1"),
    (r"tuple\[([^\[\]]*), \.\.\.\]", r"list of \1"),
    (r"Optional\[(.*)\]", r"\1"),
    (r"\bstr\b", "text"),
    (r"\bint\b", "integer"),
    (r"\bfloat\b", "number"),
    (r"\bbool\b", "true or false"),
    (r" \| ", " or "),
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a table.

    Attributes:
        name: the key's name in the file.
        kind: the key's type, in words.
        default: the default as TOML; None for a required key, and empty if omitting the key means something
            that no value expresses.
        meaning: the key's meaning in one sentence.
    """

    name: str
    kind: str
    default: str | None
    meaning: str


def keys_of(struct: type[msgspec.Struct]) -> list[Key]:
    """A struct's keys, in their order; the meanings come from its docstring's Attributes."""
    meanings = _attributes(inspect.getdoc(struct) or "")
    return [
        Key(field.encode_name, _in_words(field.type), _default(field), meanings.get(field.name, ""))
        for field in msgspec.structs.fields(struct)
    ]


def options_of(kind: type[Any]) -> type[msgspec.Struct] | None:
    """The struct, named ...Options, that a kind of target, workload or optimizer reads its table with."""
    module = inspect.getmodule(kind)
    for name, value in vars(module).items():
        if name.endswith("Options") and inspect.isclass(value) and issubclass(value, msgspec.Struct):
            return value
    return None


def toml(value: object) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value).items()
        inner = ", ".join(f"{name} = {toml(item)}" for name, item in entries)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(toml(item) for item in cast('list[object]', value))}]"
    return str(value)


def _attributes(docstring: str) -> dict[str, str]:
    """Meanings by attribute, from the Attributes section of a Google-style docstring."""
    meanings: dict[str, str] = {}
    name = ""
    for line in docstring.partition("Attributes:\n")[2].splitlines():
        begun = re.match(r"    (\w+): (.*)", line)
        if begun:
            name = begun[1]
            meanings[name] = begun[2].strip()
        elif line.startswith("        ") and name:
            meanings[name] += f" {line.strip()}"
        elif line.strip():
            break
    # What Python calls None is, in a file, a key that is not there.
    return {name: meaning.replace("None:", "left out:") for name, meaning in meanings.items()}


def _default(field: Any) -> str | None:
    if field.required:
        return None
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return "" if value is None else toml(value)


def _in_words(kind: Any) -> str:
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    for pattern, words in _TYPES:
        text = re.sub(pattern, words, text)
    return text
