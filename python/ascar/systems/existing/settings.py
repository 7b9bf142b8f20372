"""The settings of a server that people use, changed while it works, and put back.

Before each change the keeper of the user has the command that undoes it (`restoration`).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ascar.errors import Refused, StageFailed, WorkError
from ascar.systems.existing.activity import LiveSession
from ascar.systems.existing.restoration import LIMIT_S, foreign
from ascar.systems.undo_record import forget, note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ascar.space import Configuration, Value
    from ascar.systems.existing.restoration import LiveRestoration
    from ascar.systems.keeper import Keeper

_IN_FORCE_S, _LOOK_S = 10.0, 0.02
_NAMED_MAX = 3


class KnownSetting(Protocol):
    """A setting of a catalogue."""

    def text(self, value: object) -> str:
        """A value as the server writes it."""
        ...


S = TypeVar("S", bound=LiveSession)
K = TypeVar("K", bound=KnownSetting)


class LiveSettings(Generic[S, K]):
    """The settings of one server.

    A kind says how its server is reached, told apart from others, asked and changed.

    Args:
        session: the session that changes them.
        keeper: a keeper of the user.
        default: the values in force when the study began.
        known: what the catalogue says of each setting.

    Raises:
        StageFailed: the server does not answer.
    """

    def __init__(self, session: S, keeper: Keeper, default: Configuration, known: Mapping[str, K]) -> None:
        self.changing = threading.RLock()
        """Held by whoever changes values: the study, or its guard."""
        self.current: Mapping[str, Value] = default
        """The values in force."""
        self.restarts = 0
        """How often the study has started the server anew."""
        self.session = session
        self._undo_limit_s = LIMIT_S
        """The time that the keeper gives what puts the old values back."""
        self._in_force_s = _IN_FORCE_S
        """The time in which the server tells of a change."""
        self._keeper, self._default, self._known = keeper, default, known
        self._before: Mapping[str, str] = self._present(session)
        self.others: Mapping[str, str] = self._others(session)
        """The values of settings that the study leaves alone, which its results hold for."""
        self._restoration: LiveRestoration[S] | None = None
        self._left: Mapping[str, tuple[str | None, ...]] = {}

    def ping(self, limit_s: float = 10.0) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        raise NotImplementedError

    def in_force(self, names: Collection[str]) -> Mapping[str, Value]:
        """What the server says is in force, of settings whose values were set.

        Raises:
            StageFailed: it does not answer.
        """
        raise NotImplementedError

    def check_writable(self, names: Collection[str]) -> None:
        """See that the server lets settings be changed: one is set to what it is, which changes nothing.

        Where settings take several rights, that is one for each.

        Args:
            names: the settings that may be set.

        Raises:
            Refused: it does not.
        """
        tried = {self._right_of(name): name for name in sorted(set(names) & set(self._before), reverse=True)}
        for name in tried.values():
            self._set_as_it_is(name)

    def _right_of(self, name: str) -> str:  # noqa: ARG002
        """The right that it takes to change a setting; "": that of all others."""
        return ""

    def _set_as_it_is(self, name: str) -> None:
        """Set a setting to the value that it had when the study began.

        Raises:
            Refused: the user may not.
        """
        raise NotImplementedError

    def _connect(self) -> S:
        """A new session.

        Raises:
            StageFailed: the server does not answer.
        """
        raise NotImplementedError

    def _check_same(self, session: S) -> None:
        """See that the server is the one that the study began on.

        Raises:
            WorkError: it is another one, or was started anew.
        """
        raise NotImplementedError

    def _present(self, session: S) -> Mapping[str, str]:
        """The values as they stand where the study writes them; what does not stand there has none."""
        raise NotImplementedError

    def _others(self, session: S) -> Mapping[str, str]:
        """The values in force of settings that bear on speed and that no trial changes."""
        return {name: text for name, text in self._present(session).items() if name not in self._default}

    def _text(self, name: str, value: Value) -> str | None:
        """A value as it is written there; None: it is as before the study, and did not stand there."""
        return self._before.get(name) if value == self._default.get(name) else self._known[name].text(value)

    def _restoration_of(self, left: dict[str, tuple[str | None, ...]]) -> LiveRestoration[S]:
        """What undoes a change that may leave these values."""
        raise NotImplementedError

    def _write(self, session: S, texts: Mapping[str, str | None], present: Mapping[str, str]) -> None:
        """Write those values that differ, and have them take effect."""
        raise NotImplementedError

    def _put_back(self) -> None:
        """Learn what it took to put values back: a new start of the server may have been needed.

        Raises:
            WorkError: it is another server now.
        """

    def change(self, configuration: Configuration, begun: Callable[[bool], None]) -> None:
        """Put a configuration in force.

        Args:
            configuration: the configuration.
            begun: told whether it departs from the default: before the first change, and after a new start.

        Raises:
            StageFailed: the server refuses a value.
            WorkError: it is another server, or was started anew, or somebody else changed a setting.
        """
        with self.changing:
            session = self.unchanged_session()
            present = self._present(session)
            texts = {name: self._text(name, value) for name, value in configuration.items()}
            restoration = self._noted(texts, present)
            departs = dict(configuration) != dict(self._default)
            begun(departs)
            restarts = self.restarts
            if departs:
                try:
                    self._write(session, texts, present)
                except StageFailed:
                    with suppress(StageFailed):  # the first error is the one to tell
                        self.put_back(session)
                    begun(False)
                    raise
            else:
                restoration.carry_out(session)
                self._put_back()
            if self.restarts != restarts:
                begun(departs)
            self.current = configuration
            self._await(configuration)
            # A reload or a new start puts in force what somebody else has written to files meanwhile.
            self._check_others(self.session)

    def put_back(self, session: S) -> None:
        """Put the old values back by a session of the caller's, or by a new one where that broke.

        Raises:
            WorkError: that failed.
        """
        with self.changing:
            assert self._restoration is not None, "something was changed"
            try:
                self._restoration.carry_out(session if session.is_open else self.checked_session())
            except StageFailed:
                self._restoration.carry_out(self.checked_session())
            self._put_back()
            self.current = self._default

    def finish(self) -> None:
        """Put the old values back for good.

        Raises:
            WorkError: that failed, and `ascar restore` tries again; or somebody else changed a setting.
        """
        with self.changing:
            restoration = self._restoration
            if restoration is None:
                return
            left: tuple[str, ...] = ()
            try:
                left = restoration.carry_out(self._reconnected())
            except (StageFailed, Refused) as failure:
                try:
                    restoration.carry_out_without_server()
                except WorkError as other:
                    raise WorkError(
                        f"the old values could not be put back: {failure.message}; {other.message}; `ascar "
                        "restore` does it once the server answers"
                    ) from failure
            forget(self._keeper, restoration)
            self._restoration = None
        if left:
            raise WorkError(f"left alone: {'; '.join(left)}")

    def close(self) -> None:
        """End the session."""
        self.session.close()

    def checked_session(self) -> S:
        """A session with the server that the study began on.

        Raises:
            WorkError: it is gone, another one, or was started anew.
        """
        try:
            session = self._reconnected()
        except StageFailed as failure:
            raise WorkError(
                f"the server is gone in mid-study: {failure.message}; the study ends"
            ) from failure
        self._check_same(session)
        return session

    def unchanged_session(self) -> S:
        """A session with a server whose other settings are what they were when the study began.

        Raises:
            WorkError: one is not, so that what was measured before does not compare; or as `checked_session`.
        """
        session = self.checked_session()
        self._check_others(session)
        return session

    def _check_others(self, session: S) -> None:
        present = self._others(session)
        changed = [
            f"{name}: was {text}, is {present[name]}"
            for name, text in self.others.items()
            if present.get(name, text) != text
        ]
        if changed:
            more = f" (and {len(changed) - _NAMED_MAX} more)" if len(changed) > _NAMED_MAX else ""
            named = "; ".join(changed[:_NAMED_MAX])
            raise WorkError(f"{named}{more}: somebody else changed it in mid-study; the study ends")

    def _noted(self, texts: Mapping[str, str | None], present: Mapping[str, str]) -> LiveRestoration[S]:
        """What undoes the change to these values; it is in the keeper's journal.

        Raises:
            WorkError: somebody else changed a setting of the study.
        """
        old, previous = self._before, self._restoration
        for name in foreign({name: self._left.get(name, ()) for name in texts}, old, present):
            raise WorkError(f"{name}: somebody else changed it in mid-study; the study ends")
        left: dict[str, tuple[str | None, ...]] = {
            name: (present.get(name), text)
            for name, text in texts.items()
            if not present.get(name) == text == old.get(name)
        }
        restoration = self._restoration_of(left)
        note(self._keeper, restoration, previous, self._undo_limit_s)
        self._restoration, self._left = restoration, left
        return restoration

    def _await(self, configuration: Configuration) -> None:
        """Wait until the change took effect; what is not in force then fails the trial by reading back."""
        deadline_s = time.monotonic() + self._in_force_s
        while time.monotonic() < deadline_s:
            found = self.in_force(tuple(configuration))
            if all(found[name] == configuration[name] for name in found):
                return
            time.sleep(_LOOK_S)

    def _reconnected(self) -> S:
        """The session, or a new one where it broke.

        Raises:
            StageFailed: the server does not answer.
        """
        try:
            self.ping()
        except StageFailed:
            fresh = self._connect()
            self.session.close()
            self.session = fresh
        return self.session
