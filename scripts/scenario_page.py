"""The page about scenario files, and the types of their structs, from what the simulator describes."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ascar import _core
from ascar.simulation import PRESETS, scenario
from ascar.starter.keys import keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

STUB = Path(scenario.__file__).with_suffix(".pyi")

_SECTIONS = (
    ("At the top", scenario.Scenario),
    ("[[clients]]", scenario.ClientGroup),
    ("cache of [[clients]]", scenario.Cache),
    ("[control], control of [[clients]]", scenario.Control),
    ("[control.extensions]", scenario.RuleExtensions),
    ("[[workloads]]", scenario.Workload),
    ("filesets of [[workloads]]", scenario.FileSet),
    ("threads of [[workloads]]", scenario.ThreadGroup),
    ("flowops of threads", scenario.Flowop),
    ("[[servers]]", scenario.ServerGroup),
    ("queue of [[servers]]", scenario.Queue),
    ('device of [[servers]], kind = "mechanical"', scenario.Mechanical),
    ('device of [[servers]], kind = "flash"', scenario.Flash),
    ('device of [[servers]], kind = "memory"', scenario.Memory),
    ("layout of [[servers]]", scenario.Layout),
    ("[metadata]", scenario.Metadata),
    ("[network]", scenario.Network),
    ("link", scenario.Link),
    ("[striping]", scenario.Striping),
    ("[locks]", scenario.Locks),
    ("[[failures]]", scenario.Failure),
    ("[noise]", scenario.Noise),
)


def page(table: Callable[..., str]) -> str:
    """Every key of a scenario file.

    Args:
        table: makes Markdown of headings and rows.
    """
    parts = [
        "# The scenario file\n",
        "TOML. It describes a simulated cluster, what it is asked to do and for how long, for `ascar sim`; "
        "unknown keys are refused. Units are last in the names: MB is 10^6 bytes, MiB 2^20, KiB 2^10. The "
        "defaults are the test bed of Li's thesis, section 3.2.2. "
        "[How to write one](../howto/scenario.md).\n",
        f"Scenarios that come with ascar: {', '.join(f'`{name}`' for name in PRESETS)}.\n",
    ]
    for heading, section in _SECTIONS:
        parts.append(f"## {heading}\n")
        parts.append(f"{(inspect.getdoc(section) or '').partition('Attributes:')[0].strip()}\n")
        parts.append(table(("key", "type", "default", "meaning"), _keys(section)))
    return "\n".join(parts)


def _keys(section: type[msgspec.Struct]) -> Iterator[tuple[str, ...]]:
    """Keys with types and defaults; tables have sections of their own, which give theirs."""
    types = {
        field.encode_name: msgspec.inspect.type_info(field.type) for field in msgspec.structs.fields(section)
    }
    for key in keys_of(section):
        below = _below(types[key.name])
        if below:
            yield f"`{key.name}`", below, "" if key.default is not None else "required", key.meaning
        else:
            default = "required" if key.default is None else f"`{key.default}`" if key.default else ""
            yield f"`{key.name}`", key.kind, default, key.meaning


def _below(kind: msgspec.inspect.Type) -> str:
    """What holds further keys, in words; empty for anything else."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return next(filter(None, map(_below, kind.types)), "")
    if isinstance(kind, msgspec.inspect.VarTupleType):
        return "list of tables" if _below(kind.item_type) else ""
    return "table" if isinstance(kind, msgspec.inspect.StructType) else ""


def stub() -> str:
    """The stub of `ascar.simulation.scenario`: each section's struct with its types."""
    classes: dict[str, str] = {}
    _class(msgspec.json.decode(_core.describe_scenario()), classes)
    head = (
        "# ruff: noqa\n# fmt: off\n"
        '"""Types of a scenario file\'s tables; made by `make docs` from what the simulator describes."""\n\n'
        "from typing import Literal\n\nimport msgspec\n"
    )
    return f"{head}\n{chr(10).join(classes.values())}"


def _class(section: Mapping[str, Any], classes: dict[str, str]) -> str:
    """The name of a section's class, which is put behind those that it needs."""
    keys = [
        f"    {key['name']}: {_annotation(key['kind'], classes)}{'' if key['required'] else ' = ...'}\n"
        for key in section["keys"]
    ]
    own = _SCENARIO if section["name"] == "Scenario" else ""
    classes[section["name"]] = (
        f"class {section['name']}(msgspec.Struct, frozen=True, kw_only=True):\n{''.join(keys)}{own}"
    )
    return section["name"]


_SCENARIO = (
    "".join(
        f"    @property\n    def {name}(self) -> {kind}: ...\n"
        for name, kind in (
            ("client_count", "int"),
            ("is_open", "bool"),
            ("server_count", "int"),
            ("controls", "tuple[Control, ...]"),
        )
    )
    + "    def to_json(self) -> str: ...\n"
)
_ANNOTATIONS = {"boolean": "bool", "number": "float", "text": "str"}


def _annotation(kind: Any, classes: dict[str, str]) -> str:
    if isinstance(kind, str):
        return _ANNOTATIONS[kind]
    ((form, inner),) = kind.items()
    made = "int"
    if form == "words":
        made = f"Literal[{', '.join(repr(word) for word, _ in inner)}]"
    elif form == "table":
        made = _class(inner, classes)
    elif form == "choice":
        made = " | ".join(_class(section, classes) for _, section in inner)
    elif form == "list":
        made = f"tuple[{_annotation(inner, classes)}, ...]"
    elif form == "optional":
        made = f"{_annotation(inner, classes)} | None"
    return made
