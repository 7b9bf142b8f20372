"""Parameters as tables: one form for study files (TOML) and documents (JSON).

[space.parameters.block_read_ahead_kb]
kind = "ordinal"                    # categorical, ordinal, boolean, integer or float
values = [0, 128, 512, 2048]        # of categorical and ordinal
default = 128
cost = "dyn-kernel"                 # Table 9.1's name
when = 'fs == "ext4"'               # optional: a formula; else always active
weaker = { "0" = "durability" }     # optional: value or ">limit" -> guarantee, or a list of them
special = { "0" = "none" }          # optional: value -> its meaning
unit = "KiB"
description = "..."

[space.parameters.cache_mb]
kind = "integer"
low = 1
high = 4096
step = 1                            # optional
log = true                          # optional: a logarithmic scale
default = 64
cost = "app-restart"
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ascar.errors import SpaceError
from ascar.space.cost import ChangeCost, costs_named
from ascar.space.domain import Choices, Domain, Range, Value, check_value
from ascar.space.fields import Fields, shown
from ascar.space.parameter import Parameter, build, value_text
from ascar.space.suggestion import hint

if TYPE_CHECKING:
    from collections.abc import Mapping

_KINDS: Final = ("categorical", "ordinal", "boolean", "integer", "float")
_TRAITS: Final = ("kind", "default", "cost", "when", "weaker", "special", "unit", "description", "native")
_DOMAIN: Final = {
    "categorical": ("values",),
    "ordinal": ("values",),
    "boolean": (),
    "integer": ("low", "high", "step", "log"),
    "float": ("low", "high", "step", "log"),
}
_NARROWING: Final = ("values", "low", "high", "step", "log", "default")
_TEXT_MAX: Final = 500


def parameter_from_table(name: str, table: object, path: str) -> Parameter:
    """A parameter from its table.

    Raises:
        SpaceError: a key is unknown, missing, of the wrong type or out of range; one line naming it.
    """
    every = (*_TRAITS, "values", "low", "high", "step", "log")
    fields = Fields.of(table, path, every)
    kind = fields.need("kind", '"ordinal"')
    if kind not in _KINDS:
        raise fields.error("kind", f"must be one of {', '.join(_KINDS)}{hint(kind, _KINDS)}")
    Fields.of(table, path, (*_TRAITS, *_DOMAIN[kind]))
    try:
        return build(
            name,
            _domain(fields, kind),
            {
                "default": _default(fields),
                "cost": _cost(fields),
                "when": _condition(fields),
                "weaker": _weaker(fields),
                "special": _meanings(fields),
                "unit": _short(fields, "unit"),
                "description": _short(fields, "description"),
                "native": _short(fields, "native"),
            },
        )
    except SpaceError as error:
        raise _located(error, name, path) from None


def narrowed(parameter: Parameter, table: object, path: str) -> Parameter:
    """A known parameter with fewer values, or another default, as a study wants it.

    Raises:
        SpaceError: a key that a study cannot change, or a value that the parameter does not have.
    """
    known = (*_TRAITS, "values", "low", "high", "step", "log")
    fields = Fields.of(table, path, known)
    for key in fields.table:
        if key not in _NARROWING:
            raise fields.error(
                key, f"is set by the target; a study can give {', '.join(_NARROWING)} of {parameter.name}"
            )
    try:
        domain = _narrowed_domain(parameter, fields)
        default = _default(fields) if "default" in fields else _kept_default(parameter, domain)
        # Labels stay: a study cannot make a weaker value acceptable by calling it the default.
        return replace(parameter, domain=domain, default=default)
    except SpaceError as error:
        raise _located(error, parameter.name, path) from None


def parameter_to_table(parameter: Parameter) -> dict[str, Any]:
    """The table of a parameter: what `parameter_from_table` reads."""
    domain = parameter.domain
    table: dict[str, Any] = {"kind": parameter.kind}
    if isinstance(domain, Range):
        table |= {"low": domain.low, "high": domain.high, "log": domain.log}
        table |= {} if domain.step is None else {"step": domain.step}
    elif parameter.kind != "boolean":
        table["values"] = list(domain.values)
    table |= {"default": parameter.default, "cost": parameter.cost.value}
    if parameter.condition is not None:
        table["when"] = str(parameter.condition)
    if parameter.weaker:
        table["weaker"] = {
            f"{'' if label.relation == '==' else label.relation}{value_text(label.value)}": sorted(
                label.guarantees
            )
            for label in parameter.weaker
        }
    if parameter.special:
        table["special"] = {value_text(value): meaning for value, meaning in parameter.special}
    texts = {"unit": parameter.unit, "description": parameter.description, "native": parameter.native}
    return table | {key: text for key, text in texts.items() if text}


def _domain(fields: Fields, kind: str) -> Domain:
    if kind == "boolean":
        return Choices((False, True))
    if kind in ("categorical", "ordinal"):
        fields.need("values", "[1, 2, 4]")
        values = fields.items("values", (str, int, float, bool), "strings, numbers or booleans")
        return Choices(tuple(values), ordered=kind == "ordinal")
    whole = kind == "integer"
    step = fields.number("step", whole=whole) if "step" in fields else None
    low, high = fields.number("low", whole=whole), fields.number("high", whole=whole)
    special = tuple(
        float(key) for key in _meanings(fields) if not low <= _number(fields, "special", key) <= high
    )
    return Range(low, high, step=step, log=fields.flag("log"), integer=whole, special=special)


def _narrowed_domain(parameter: Parameter, fields: Fields) -> Domain:
    domain = parameter.domain
    if isinstance(domain, Choices) and parameter.bounds is not None:
        return _other_numbers(domain, parameter.bounds, fields)
    if isinstance(domain, Choices):
        for key in ("low", "high", "step", "log"):
            if key in fields:
                raise fields.error(key, f"{parameter.name} is {parameter.kind}: give values instead")
        if "values" not in fields:
            return domain
        wanted = [
            parameter.canonical(value) for value in fields.items("values", (str, int, float, bool), "values")
        ]
        return Choices(tuple(value for value in domain.values if value in wanted), domain.ordered)
    if "values" in fields:
        listed = fields.items("values", (int, float), "numbers")
        return Choices(tuple(dict.fromkeys(parameter.canonical(value) for value in listed)), ordered=True)
    bounds = {key: fields.number(key, whole=domain.integer) for key in ("low", "high") if key in fields}
    for key, bound in bounds.items():
        if not domain.low <= bound <= domain.high:
            raise fields.error(key, f"must lie within {domain}")
    step = fields.number("step", whole=domain.integer) if "step" in fields else domain.step
    log = fields.flag("log") if "log" in fields else domain.log
    low, high = bounds.get("low", domain.low), bounds.get("high", domain.high)
    return Range(low, high, step=step, log=log, integer=domain.integer, special=domain.special)


def _other_numbers(domain: Choices, bounds: tuple[int, int], fields: Fields) -> Domain:
    """Other values of a parameter that the system takes any whole number of, within bounds."""
    low, high = bounds
    if "values" in fields:
        for key in ("low", "high", "step", "log"):
            if key in fields:
                raise fields.error(key, "is not for a list of values; leave out one of them")
        values = fields.items("values", (int,), "whole numbers")
        for value in values:
            if not low <= value <= high:
                raise fields.error("values", f"{value} must lie within {low} to {high}")
        return Choices(tuple(sorted(set(values))), ordered=True)
    if not any(key in fields for key in ("low", "high", "step", "log")):
        return domain
    least = int(fields.number("low", whole=True)) if "low" in fields else low
    most = int(fields.number("high", whole=True)) if "high" in fields else high
    for key, bound in (("low", least), ("high", most)):
        if not low <= bound <= high:
            raise fields.error(key, f"must lie within {low} to {high}")
    step = fields.number("step", whole=True) if "step" in fields else None
    return Range(least, most, step=step, log=fields.flag("log"), integer=True)


def _kept_default(parameter: Parameter, domain: Domain) -> Value:
    try:
        return domain.canonical(parameter.default)
    except SpaceError:
        text = value_text(parameter.default)
        raise SpaceError(f"leaves out the default, {text}; keep it, or give another default") from None


def _default(fields: Fields) -> Any:
    default = fields.need("default", "the value in force now")
    check_value(default, f"{fields.path}.default")
    return default


def _condition(fields: Fields) -> str:
    text = fields.text("when")
    if "when" in fields and not text.strip():
        raise fields.error("when", "must be a formula over parameters; leave it out where it always applies")
    return text


def _cost(fields: Fields) -> ChangeCost:
    cost = fields.need("cost", '"dyn-kernel"')
    if not isinstance(cost, str):
        raise fields.error("cost", f"must be one of {', '.join(ChangeCost)}")
    return min(costs_named([cost], "cost"))


def _weaker(fields: Fields) -> Mapping[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for key, value in fields.mapping("weaker").items():
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise SpaceError(
                f"{fields.path}.weaker.{key} = {shown(value)}: must be a guarantee or a list of them"
            )
        labels[key] = names
    return labels


def _meanings(fields: Fields) -> Mapping[str, str]:
    meanings = fields.mapping("special")
    for key, meaning in meanings.items():
        if not isinstance(meaning, str):
            raise SpaceError(f"{fields.path}.special.{key} = {shown(meaning)}: must be a string, its meaning")
    return meanings


def _short(fields: Fields, key: str) -> str:
    text = fields.text(key)
    if len(text) > _TEXT_MAX or not text.isprintable():
        raise fields.error(key, f"must be one printable line of at most {_TEXT_MAX} characters")
    return text


def _number(fields: Fields, key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SpaceError(f"{fields.path}.{key}: {text!r}: must be a number, as the values are") from None


def _located(error: SpaceError, name: str, path: str) -> SpaceError:
    """The error with the table's key instead of the parameter's name."""
    message = error.message.removeprefix(f"parameter {name}: ")
    return SpaceError(message if message.startswith(path) else f"{path}: {message}")
