"""The reference page of what `import ascar` offers."""

from __future__ import annotations

import enum
import inspect
from types import FunctionType, MethodDescriptorType
from typing import TYPE_CHECKING, Any

import msgspec

import ascar

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARAMETERS_MAX = 8
_METHODS = (FunctionType, MethodDescriptorType)
"""Of Python and of the extension."""
_EXTENSION = "ascar._core"


def page() -> str:
    """Each public name, with its signature and its documentation."""
    listed = [name for name in ascar.__all__ if not name.startswith("_") and name != "optimizers"]
    functions = [name for name in listed if not inspect.isclass(getattr(ascar, name))]
    parts = [
        "# Python\n",
        f"{inspect.cleandoc(ascar.__doc__ or '')}\n",
        "[How to use it](../howto/python.md).\n",
    ]
    parts.append("## Functions\n")
    parts.append(
        "The functions that make a parameter also take these keywords: `default`, which they need, and "
        "`cost`, `when`, `weaker`, `special`, `unit`, `description`; `ascar.Parameter` describes them.\n"
    )
    for name in functions:
        parts += _entry(f"ascar.{name}", getattr(ascar, name))
    parts.append("## Values and errors\n")
    for name in listed:
        if name not in functions:
            parts += _entry(f"ascar.{name}", getattr(ascar, name))
    parts.append("## Optimizers\n")
    parts.append(f"{_text(ascar.optimizers)}\n")
    for name in ascar.optimizers.__all__:
        if hasattr(getattr(ascar.optimizers, name), "ask"):
            parts += _optimizer(name, getattr(ascar.optimizers, name))
    return "\n".join(parts)


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}\n"
    if not inspect.isclass(value) or _is_made_by_users(value):
        yield f"    {_signature(name, value)}\n"
    yield _literal(_text(value))
    if not inspect.isclass(value):
        return
    for base in value.__mro__[1:]:
        if base.__module__.startswith("ascar.") and _text(base):
            yield f"What it has of `{base.__name__}`:\n"
            yield _literal(_text(base))
    methods = [f"- `{_signature(key, method)}`: {_first(method)}" for key, method in _methods(value)]
    if methods:
        yield "\n".join(methods) + "\n"


def _optimizer(name: str, kind: type[Any]) -> Iterator[str]:
    """The methods are the protocol's; what an optimizer does, its module describes."""
    yield f"### ascar.optimizers.{name}\n"
    if name == "Optimizer":
        yield _literal(_text(kind))
        yield "\n".join(f"- `{_signature(key, one)}`: {_first(one)}" for key, one in _methods(kind)) + "\n"
    else:
        yield f"    {_signature(f'ascar.optimizers.{name}', kind)}\n"
        yield f"{_first(inspect.getmodule(kind))} Its options: [study file](study-file.md).\n"


def _is_made_by_users(kind: type[Any]) -> bool:
    """Whether its signature tells something: not that of an error, an enumeration, a result."""
    if issubclass(kind, (BaseException, enum.Enum, msgspec.Struct)):
        return False
    if kind.__module__ == _EXTENSION and "__new__" not in vars(kind):
        return False
    return len(inspect.signature(kind).parameters) <= _PARAMETERS_MAX


def _methods(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Its own public methods, in the order in which they stand."""
    for name, value in vars(kind).items():
        method = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if not name.startswith("_") and isinstance(method, _METHODS):
            yield name, method


def _signature(name: str, value: Any) -> str:
    signature = inspect.signature(value)
    kept = [
        one if one.annotation is one.empty else one.replace(annotation=_Bare(one.annotation))
        for one in signature.parameters.values()
        if one.name not in ("self", "cls")
    ]
    returned = signature.return_annotation
    # The extension's methods do not tell what they return.
    if not isinstance(value, MethodDescriptorType):
        returned = _Bare(returned)
    return f"{name}{signature.replace(parameters=kept, return_annotation=returned)}"


def _text(value: Any) -> str:
    return inspect.getdoc(value) or ""


class _Bare:
    """An annotation as it is written."""

    def __init__(self, annotation: object) -> None:
        self._text = "None" if annotation is inspect.Signature.empty else str(annotation).replace("'", '"')

    def __repr__(self) -> str:
        return self._text


def _literal(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines()) + "\n"


def _first(value: Any) -> str:
    return " ".join(_text(value).partition("\n\n")[0].split())
