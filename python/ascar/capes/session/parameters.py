"""The parameters that a session sets, and how the session's processes are told of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascar.capes.session.joint_values import forbidden_by_relation
from ascar.catalogues import kernel_setting
from ascar.catalogues.coupling import in_order_of_writing
from ascar.errors import AscarError, StudyError
from ascar.space import Choices, Range
from ascar.space.parameter import value_text
from ascar.space.relation import Relation
from ascar.systems.keeper import Keeper
from ascar.systems.kernel_parameters import DEVICE, Devices
from ascar.systems.machine import disk_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.space import Configuration, Parameter, Space, Value
    from ascar.study import GuardSection
    from ascar.systems import System

OWNER = "ascar capes up"

_PARAMETERS_MAX = 100
_WORDS = re.compile(r""""[^"]*"|'[^']*'|[A-Za-z_][A-Za-z0-9_]*""")


@dataclass(frozen=True, slots=True)
class SessionParameter:
    """A parameter that a session sets.

    Attributes:
        key: the name in the session's messages: the kernel's own name of a setting of the kernel, with the
            device's name in it; else the parameter's name.
        parameter: the parameter.
        of_kernel: whether the keeper sets it; else the system does.
    """

    key: str
    parameter: Parameter
    of_kernel: bool

    @property
    def choices(self) -> tuple[Value, ...]:
        """The values, where it has a list of them."""
        domain = self.parameter.domain
        return domain.values if isinstance(domain, Choices) else ()

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the greatest number; None of words."""
        domain = self.parameter.domain
        if isinstance(domain, Range):
            return domain.low, domain.high
        numbers = [one for one in domain.values if isinstance(one, int | float) and not isinstance(one, bool)]
        return (min(numbers), max(numbers)) if len(numbers) == len(domain.values) else None

    def takes(self, value: object) -> bool:
        """Whether a value is one of those that the session may set."""
        if self.choices:
            return any(
                one == value and isinstance(one, bool) == isinstance(value, bool) for one in self.choices
            )
        low, high = self.bounds or (0.0, 0.0)
        return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def session_parameters(system: System, space: Space, device: str | None) -> tuple[SessionParameter, ...]:
    """The parameters of a space that can change while the system works, and have more than one value.

    A parameter that brings others into play, such as a log with settings of its own, stays as it is.

    Args:
        system: the system; it says which changes it takes while it works.
        space: the space of the study.
        device: the kernel's name of the target's device; None: it has none. Of a partition, the queue is its
            disk's.

    Raises:
        StudyError: there is none, or there are more than 100.
    """
    default, found = space.default(), list[SessionParameter]()
    devices = Devices(None if device is None else disk_of(device), device)
    deciding = {name for one in space.parameters if one.condition for name in one.condition.names}
    for parameter in space.parameters:
        one = parameter
        fixed = one.name in space.pinned or one.name not in default or one.name in deciding
        if fixed or one.cost not in system.changes_while_working or _is_single(one):
            continue
        of_kernel = kernel_setting(one.native) is not None
        name = devices.native(one.native) if of_kernel else one.name
        if of_kernel and f".{DEVICE}." in name:
            continue  # a setting of a device, and the target has none
        found.append(SessionParameter(name, one, of_kernel))
    if not found:
        raise StudyError(
            f"space: none of its {len(space)} parameters can change while the system works; `ascar tune` "
            "searches them while nobody uses it"
        )
    if len(found) > _PARAMETERS_MAX:
        raise StudyError(
            f"space: {len(found)} of its parameters can change while the system works; a session sets at "
            f"most {_PARAMETERS_MAX}: name them with space.tuned"
        )
    return tuple(found)


def _is_single(parameter: Parameter) -> bool:
    domain = parameter.domain
    return len(domain.values) < 2 if isinstance(domain, Choices) else domain.low == domain.high


def interface_tables(parameters: Sequence[SessionParameter], guard: GuardSection) -> list[dict[str, Any]]:
    """`[[knob]]` of the interface's file."""
    tables: list[dict[str, Any]] = []
    for one in parameters:
        domain, pace = one.parameter.domain, guard.pace.get(one.parameter.name)
        values: dict[str, Any] = {"choices": list(one.choices)}
        if isinstance(domain, Range):
            values = {"minimum": domain.low, "maximum": domain.high, "step": domain.step}
        tables.append({"name": one.key, "scope": "all", **values, **(pace or {})})
    return tables


def keeper_tables(parameters: Sequence[SessionParameter]) -> list[dict[str, Any]]:
    """`[[knob]]` of the agent's file: the settings of the kernel."""
    tables: list[dict[str, Any]] = []
    for one in parameters:
        if one.of_kernel:
            low, high = one.bounds or (None, None)
            bounds = {} if low is None or high is None else {"minimum": round(low), "maximum": round(high)}
            tables.append({"name": one.key, **bounds})
    return tables


def system_tables(parameters: Sequence[SessionParameter]) -> list[dict[str, Any]]:
    """`[[program.knob]]` of the agent's file: the system's own parameters."""
    tables: list[dict[str, Any]] = []
    for one in parameters:
        if one.of_kernel:
            continue
        values: dict[str, Any] = {"choices": list(one.choices)}
        if isinstance(one.parameter.domain, Range):
            values = {"minimum": one.parameter.domain.low, "maximum": one.parameter.domain.high}
        tables.append({"name": one.key, **values})
    return tables


def ratios(parameters: Sequence[SessionParameter]) -> list[str]:
    """The keys of which ratios matter, and not differences."""
    return [
        one.key for one in parameters if isinstance(one.parameter.domain, Range) and one.parameter.domain.log
    ]


def forbidden_by(
    space: Space, parameters: Sequence[SessionParameter], default: Configuration
) -> list[dict[str, Any]]:
    """`[[rule]]` of the interface's file: what the constraints of the space exclude.

    Names become those of the session; parameters that the session does not set are their values.

    Raises:
        StudyError: no rule can say what a constraint excludes.
    """
    keys = _formula_names(parameters)
    tables: list[dict[str, Any]] = []
    for constraint in space.constraints:
        names = set(constraint.names)
        if not names & keys.keys() or not names <= keys.keys() | default.keys():
            continue
        if isinstance(constraint, Relation):
            formulas = forbidden_by_relation(constraint, keys, default)
        else:
            formulas = [f"not ({in_session_names(str(constraint), parameters, default)})"]
        why = f"the study's space has the constraint {constraint}"
        tables += [{"forbid": formula, "why": why} for formula in formulas]
    return tables


def _formula_names(parameters: Sequence[SessionParameter]) -> dict[str, str]:
    """The names of the session's parameters in formulas, by those of the space."""
    return {one.parameter.name: re.sub(r"\W", "_", one.key) for one in parameters}


def in_session_names(formula: str, parameters: Sequence[SessionParameter], default: Configuration) -> str:
    """A formula in the names of the session; parameters that the session does not set are their values."""
    keys = _formula_names(parameters)

    def said(match: re.Match[str]) -> str:
        word = match[0]
        if word in keys:
            return keys[word]
        if word not in default:
            return word
        value = default[word]
        return f'"{value}"' if isinstance(value, str) else value_text(value)

    return _WORDS.sub(said, formula)


def check_in_force(parameters: Sequence[SessionParameter]) -> None:
    """Whether every setting of the kernel is here, and has one of its values: the learner goes back there.

    Raises:
        InputError: one is not known.
        StudyError: one has another value.
    """
    settings = [one for one in parameters if one.of_kernel]
    if not settings:
        return
    with Keeper(OWNER) as keeper:
        for one in settings:
            now = keeper.knob_read(one.key).value
            if not one.takes(now):
                raise StudyError(
                    f"space.parameters.{one.parameter.name}: {one.key} is {now} now, which is not among its "
                    f"values, {one.parameter.domain}; change them so that it is"
                )


def left_changed(parameters: Sequence[SessionParameter], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the kernel that have another value than before the session, with the values they have now.

    Args:
        parameters: the parameters of the session.
        defaults: values by key, as the agent found them.
    """
    found: dict[str, Any] = {}
    settings = [one.key for one in parameters if one.of_kernel and one.key in defaults]
    if not settings:
        return found
    with Keeper(OWNER) as keeper:
        for key in settings:
            try:
                now = keeper.knob_read(key).value
            except AscarError:
                continue  # its device is gone, and the setting with it
            if now != defaults[key]:
                found[key] = now
    return found


def keep_setting(setting: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Set what differs from before and is still there, to stay until `ascar restore`; what was set.

    Args:
        setting: values by key, of settings of the kernel.
        defaults: the initial setting.

    Raises:
        AscarError: the keeper refuses one; what it had set is put back.
    """
    wanted = {key: value for key, value in setting.items() if defaults.get(key) != value}
    order = in_order_of_writing(sorted(wanted))
    kept: dict[str, Any] = {}
    if not order:
        return kept
    with Keeper(OWNER, hold=True) as keeper:
        for key in order:
            value = wanted[key]
            whole = round(value) if isinstance(value, float) else value
            kept[key] = keeper.knob_write(key, whole).effective
    return kept
