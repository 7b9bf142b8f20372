"""A server of the study's own that starts from the settings of a server of today.

A configuration is put in force by a new start on the data as the fill left it, or, where a trial goes on with
the data that the one before left, while the server works.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import msgspec

from ascar.errors import SpaceError, StudyError
from ascar.results.trial import Change
from ascar.space import ChangeCost
from ascar.space.parameter import identifier
from ascar.space.suggestion import hint
from ascar.systems.own_server.target import START_S, OwnServerTarget, ServerKeys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ascar.catalogues.server_setting import RankedSetting
    from ascar.space import Configuration, Value
    from ascar.systems.own_server.server import OwnServer

Given = bool | int | float | str
S = TypeVar("S", bound="OwnServer[Any]")
_DECIMAL = 1e-6


class ConfiguredKeys(ServerKeys, frozen=True, forbid_unknown_fields=True):
    """The keys of `[target]` that every such server has; kinds say what they mean for them.

    Attributes:
        settings: settings as the server of today has them, by its own names: the default of the study.
        data: whether each trial starts on the data that the fill left ("same"), or on what the trial before
            left ("kept"), where the server takes the change while it works.
    """

    settings: dict[str, Given] = msgspec.field(default_factory=dict[str, Given])
    data: Literal["same", "kept"] = "same"


class ConfiguredTarget(OwnServerTarget[S]):
    """What such targets do alike.

    A kind lists its settings (`listed`), and says how they are read (`_settings`) and changed while the
    server works (`_set`). One whose programs tell which values they take also says what these make of the
    settings of today (`_taken`).

    Args:
        keys: the checked keys of `[target]`.
        known: the settings that the installed server has.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: the package's account is missing.
    """

    asks_of_today: ClassVar[bool] = False
    """Whether the kind's programs say which numbers of today they take; else the list's ranges do."""

    def __init__(self, keys: ConfiguredKeys, known: Iterable[RankedSetting]) -> None:
        super().__init__(keys)
        self._data = keys.data
        self._known = {one.name: one for one in known}
        given = settings_of_today(keys.settings, self._known, searched=not self.asks_of_today)
        self._given = self._taken(given)
        self._afresh = False

    def _taken(self, given: Mapping[str, Given]) -> dict[str, Given]:
        """The settings of the server of today: those that a study gives, and what comes with them.

        Raises:
            StudyError: the server does not take a value as it is.
        """
        return dict(given)

    def _settings(self) -> Mapping[str, str]:
        """What the server says of all its settings, by its own names."""
        raise NotImplementedError

    def _set(self, before: Configuration, after: Configuration) -> None:
        """Change what differs while the server works."""
        raise NotImplementedError

    def _start_again(self, configuration: Configuration) -> None:
        """Start the server again on the data that it has."""
        server = self._entered()
        server.stop()
        server.begin(self._lines(configuration), START_S)

    @classmethod
    def for_session(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """A session changes a server that works, on the data that is there."""
        return {"data": "kept", **options}

    @property
    def reuses_state(self) -> bool:
        """Whether a trial starts on the data that the one before left."""
        return self._data == "kept"

    def start_afresh(self) -> None:
        """Start the next trial on the data that the fill left all the same."""
        self._afresh = True

    def apply(self, configuration: Configuration) -> Change:
        """Put a configuration in force: by a new start on the same data, or without one on data that is kept.

        Raises:
            StageFailed: the server refuses it.
        """
        before = self._current
        afresh, self._afresh = self._afresh, False
        if not self.reuses_state or afresh or before is None:
            return super().apply(configuration)
        start_s = time.monotonic()
        self._current = None
        if self.space.change(before, configuration).cost is ChangeCost.APP_RESTART:
            self._start_again(configuration)
        else:
            self._set(before, configuration)
        self._current = configuration
        steps = {"change": time.monotonic() - start_s}
        return Change.of(self.space.change(before, configuration), steps, filled=True)

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What the server says is in force.

        Raises:
            StageFailed: the server does not answer.
        """
        if self._current is None:
            return {}
        told, asked = self._settings(), set(names) & set(self._current)
        return {
            one.parameter_name: as_wanted(one.value(told[one.name]), self._current[one.parameter_name])
            for one in self._known.values()
            if one.parameter_name in asked and one.name in told
        }

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        settings = {name: str(value) for name, value in self._given.items()}
        return {**super().describe(), "settings": settings, "data": self._data}

    def _before(self, name: str) -> Given:
        """The value of a setting in the server of today."""
        return self._given.get(name, self._known[name].default)

    def _whole(self, configuration: Configuration) -> Mapping[str, Value]:
        """A configuration with those settings of the server of today that the study does not search."""
        searched = set(self.space.names)
        names = {name: self._known[name].parameter_name for name in self._given}
        others = {names[name]: value for name, value in self._given.items() if names[name] not in searched}
        return {**others, **configuration}

    def _changed(self, before: Configuration, after: Configuration) -> Mapping[str, Value]:
        """The values of those parameters that differ; of one that is not active, the default."""
        default = self.space.default()
        return {
            name: after.get(name, default.get(name, self.space[name].default))
            for name in self.space.change(before, after).parameters
        }


def as_wanted(told: Value, wanted: Value) -> Value:
    """What a server tells, which prints six decimals of a number that is not whole.

    Args:
        told: the value that it tells.
        wanted: the value that was set; it is what is told where that is no more than its six decimals.
    """
    if isinstance(wanted, float) and isinstance(told, (int, float)) and abs(told - wanted) <= _DECIMAL:
        return wanted
    return told


def settings_of_today(
    settings: Mapping[str, Given], known: Mapping[str, RankedSetting], *, searched: bool = True
) -> dict[str, Given]:
    """What a study says of its server's settings, by the server's names.

    Args:
        settings: as the study gives them.
        known: the settings that the server has, by its names.
        searched: whether numbers have to be such as a search tries; else the server is asked.

    Raises:
        StudyError: there is no such setting, the study may not set it, or it cannot have that value.
    """
    named = {identifier(name): one for name, one in known.items()}
    found: dict[str, Given] = {}
    for given, value in settings.items():
        key = f"target.settings.{given[:60]}"
        one = named.get(identifier(given))
        if one is None:
            raise StudyError(
                f"{key}: must be a setting that bears on speed, as the wide space lists them"
                f"{hint(given, list(known))}"
            )
        if one.set_by.startswith("target."):
            raise StudyError(f"{key}: must be left out; set {one.set_by} instead")
        try:
            wanted = one.value(str(value)) if isinstance(value, str) or one.kind == "choice" else value
            made = one.parameter(wanted) if searched else one.parameter_in_force(wanted)
            found[one.name] = made.default
        except SpaceError as error:
            raise StudyError(f"{key} = {value!r}: {error.message}") from None
    return found
