"""A scenario: everything that a run of the simulated cluster depends on.

The structs are the tables of a scenario file. They are made from the simulator's own description of them:
keys, types, defaults and meanings stand in Rust alone. `scenario.pyi`, generated from the same description,
tells them to type checkers. Types are checked here, in a file's words; ranges by the simulator itself. The
defaults are the test bed of Li's thesis, section 3.2.2. Units are last in the names; MB is 10**6 bytes, MiB
2**20, KiB 2**10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Union, cast

import msgspec

from ascar import _core, typed

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__: list[str] = []

_PLAIN: Final[Mapping[str, Any]] = {"boolean": bool, "number": float, "text": str}


def _of_scenario() -> dict[str, Any]:
    """What a scenario has besides its keys."""

    def client_count(self: Any) -> int:
        """Count the clients of all groups."""
        return sum(group.count for group in self.clients)

    def server_count(self: Any) -> int:
        """Count the storage servers of all groups."""
        return sum(group.count for group in self.servers)

    def is_open(self: Any) -> bool:
        """Whether work arrives at a rate anywhere, whether or not the work before has ended."""
        return any(group.rate_per_s is not None for load in self.workloads for group in load.threads)

    def controls(self: Any) -> tuple[Any, ...]:
        """List the scenario's control, and those that client groups have of their own."""
        own = (group.control for group in self.clients)
        return (self.control, *(control for control in own if control is not None))

    def to_json(self: Any) -> str:
        """Encode the scenario as the simulator reads it; what equals its default is left out."""
        return msgspec.json.encode(self).decode("utf-8")

    counted = (client_count, server_count, is_open, controls)
    return {one.__name__: property(one) for one in counted} | {"to_json": to_json}


def _struct(section: Mapping[str, Any], tag: str | None = None) -> Any:
    """The struct of a section, made once."""
    name: str = section["name"]
    if name not in globals():
        fields: list[Any] = []
        for key in section["keys"]:
            kind = _type(key["kind"])
            given = () if key["required"] else (typed.convert(key["default"], kind),)
            fields.append((key["name"], kind, *given))
        globals()[name] = msgspec.defstruct(
            name,
            fields,
            namespace={"__doc__": _docstring(section)} | (_of_scenario() if name == "Scenario" else {}),
            module=__name__,
            frozen=True,
            forbid_unknown_fields=True,
            omit_defaults=True,
            kw_only=True,
            tag_field=None if tag is None else "kind",
            tag=tag,
        )
        __all__.append(name)
    return globals()[name]


def _type(kind: Any) -> Any:
    """The Python type of what a key holds."""
    if isinstance(kind, str):
        return _PLAIN[kind]
    ((form, inner),) = kind.items()
    made: Any = int
    if form == "words":
        made = cast("Any", Literal)[tuple(word for word, _ in inner)]
    elif form == "table":
        made = _struct(inner)
    elif form == "choice":
        made = cast("Any", Union)[tuple(_struct(section, tag) for tag, section in inner)]
    elif form == "list":
        made = cast("Any", tuple)[_type(inner), ...]
    elif form == "optional":
        made = _type(inner) | None
    return made


def _docstring(section: Mapping[str, Any]) -> str:
    keys = (f"    {key['name']}: {_meaning(key)}" for key in section["keys"])
    return "\n".join((section["meaning"], "", "Attributes:", *keys))


def _meaning(key: Mapping[str, Any]) -> str:
    """What a described key means, and each of its words where it has some."""
    kind: Any = key["kind"]
    words: Any = () if isinstance(kind, str) else kind.get("words", ())
    return " ".join((key["meaning"], *(f'"{word}": {meaning}' for word, meaning in words)))


_struct(msgspec.json.decode(_core.describe_scenario()))
