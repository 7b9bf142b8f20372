"""Settings that ascar writes by itself, once the keeper of the user has noted what undoes it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from ascar.catalogues.server_setting import RankedSetting
from ascar.errors import StageFailed, StudyError, WorkError
from ascar.systems.existing.restoration import foreign
from ascar.systems.undo_record import forget, note

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Parameter, Value
    from ascar.systems.keeper import Keeper

_log = logging.getLogger(__name__)

S = TypeVar("S", bound=RankedSetting)


class NotedRestoration(Protocol):
    """What puts settings back; a struct that is stored as JSON."""

    @property
    def left(self) -> Mapping[str, tuple[str, ...]]:
        """The values that the study may have left, by the setting's name."""
        ...

    def carry_out(self) -> tuple[str, ...]:
        """Put the old values back; those that somebody else changed are left alone.

        Returns:
            What was left alone, a line each.
        """
        ...


class NotedSettings(Generic[S]):
    """Settings of one place, which a subclass reads and writes.

    Attributes:
        prefix: what the names of such settings begin with.
        step: what a change is called among the steps of a trial.
        limit_s: how long it may take to put them back.
        place: where they are.
        settings: the settings that this place has, by name.
    """

    prefix: ClassVar[str]
    step: ClassVar[str]
    limit_s: ClassVar[float]

    def __init__(self, place: str, settings: Mapping[str, S]) -> None:
        self.place = place
        self.settings = settings
        self._keeper: Keeper | None = None
        self._old: dict[str, str] = {}
        self._noted: NotedRestoration | None = None
        self._wanted: dict[str, Value] = {}

    @property
    def locks(self) -> tuple[str, ...]:
        """The locks that a study of this place takes."""
        raise NotImplementedError

    def values(self) -> dict[str, Value]:
        """The values in force by the setting's name.

        Raises:
            StageFailed: they cannot be read.
            WorkError: it is not the place any more that the study began on.
        """
        raise NotImplementedError

    def _lack(self, name: str) -> str:
        """Why it does not have a setting, as the end of a sentence; empty: there is nothing to say.

        Raises:
            StudyError: there is no such setting anywhere.
        """
        raise NotImplementedError

    def _restoration(self, old: dict[str, str], left: dict[str, tuple[str, ...]]) -> NotedRestoration:
        """What puts the old values back."""
        raise NotImplementedError

    def _write(self, wanted: Mapping[str, Value]) -> None:
        """Write values.

        Raises:
            StageFailed: the kernel refuses one.
        """
        raise NotImplementedError

    @property
    def described(self) -> dict[str, str]:
        """What results are valid for."""
        raise NotImplementedError

    def parameters(self, names: Collection[str]) -> tuple[Parameter, ...]:
        """The settings as parameters, whose defaults are the values in force.

        Args:
            names: the settings.
        """
        present = self.values()
        return tuple(
            one.parameter_in_force(present[name]) for name, one in self.settings.items() if name in names
        )

    def chosen(self, names: Collection[str] | None, parameters: str) -> list[str]:
        """The settings that a study may change.

        Args:
            names: those that it names, of any place; None: it names none.
            parameters: its `target.parameters`.

        Raises:
            StudyError: it names one that this place does not have.
        """
        for name in names or ():
            if name.startswith(self.prefix) and name not in self.settings:
                raise StudyError(
                    f"target.settings: {name!r} cannot be tuned on {self.place}; must be one of "
                    f"{', '.join(self.settings)}{self._lack(name)}"
                )
        return [
            name
            for name, one in self.settings.items()
            if (one.is_searched(parameters) if names is None else name in names)
        ]

    def enter(self, keeper: Keeper, names: Collection[str]) -> Collection[str]:
        """Take the values in force for those of before; nothing is changed.

        Args:
            keeper: the keeper of the user, which undoes what is not undone when ascar ends.
            names: the settings that may be changed.

        Returns:
            Those that can be.
        """
        present = self.values()
        self._keeper = keeper
        self._old = {name: self.settings[name].text(present[name]) for name in names}
        return names

    def change(self, wanted: Mapping[str, Value]) -> bool:
        """Put values in force, and read them back; whether anything had to be written.

        Args:
            wanted: values by the setting's name.

        Raises:
            StageFailed: the kernel refuses a value, or another one is in force once it is written.
            WorkError: somebody else changed a setting of the study.
        """
        assert self._keeper is not None, "it is entered before it is changed"
        self._wanted = {}
        present = self._texts(self.values())
        left = {} if self._noted is None else self._noted.left
        for name in foreign({name: left.get(name, ()) for name in wanted}, self._old, present):
            raise WorkError(
                f"{name}: is {present[name]!r} on {self.place}: somebody else changed it in mid-study; "
                "the study ends"
            )
        texts = self._texts(wanted)
        differing = {name: value for name, value in wanted.items() if texts[name] != present[name]}
        if differing:
            may_be = {name: (present[name], text) for name, text in texts.items()}
            self._note({**left, **may_be})
            self._write(differing)
            granted = self._texts(self.values())
            # What the kernel makes of a value is nobody else's.
            self._note({**left, **{name: (*may_be[name], granted[name]) for name in may_be}})
            self._check_in_force(wanted, "once it is written")
        self._wanted = dict(wanted)
        return bool(differing)

    def check(self) -> None:
        """See that what was put in force still is.

        Raises:
            StageFailed: somebody else changed it.
        """
        self._check_in_force(self._wanted, "now: somebody else changed it under the load")

    def put_back(self) -> None:
        """Put the old values back; those that somebody else changed are left alone, with a warning.

        Raises:
            StageFailed: the kernel refuses it; the keeper tries again when it ends.
        """
        if self._noted is not None and self._keeper is not None:
            for line in self._noted.carry_out():
                _log.warning("left alone: %s", line)
            forget(self._keeper, self._noted)
            self._noted = None

    def _note(self, left: Mapping[str, tuple[str, ...]]) -> None:
        """Have the keeper's journal say what puts the old values back.

        Args:
            left: the values that the study may have left.
        """
        assert self._keeper is not None, "it is entered before it is changed"
        known = {name: tuple(dict.fromkeys(values)) for name, values in left.items()}
        restoration = self._restoration(self._old, known)
        note(self._keeper, restoration, self._noted, self.limit_s)
        self._noted = restoration

    def _check_in_force(self, wanted: Mapping[str, Value], when: str) -> None:
        now = self.values()
        for name, value in wanted.items():
            if now[name] != value:
                found = self._texts({name: now[name]})[name]
                raise StageFailed(
                    self.step, f"{name} = {self._texts(wanted)[name]}: is {found} on {self.place} {when}"
                )

    def _texts(self, values: Mapping[str, Value]) -> dict[str, str]:
        return {name: self.settings[name].text(value) for name, value in values.items()}
