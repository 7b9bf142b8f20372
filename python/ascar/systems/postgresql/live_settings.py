"""The settings of a server that people use: changed by ALTER SYSTEM and a reload, and put back.

Before each change the keeper of the user has the command that undoes it (`restoration`).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.catalogues.postgresql import postgresql
from ascar.errors import Refused, StageFailed, WorkError
from ascar.systems.postgresql.auto_configuration import entries_of, setting
from ascar.systems.postgresql.connection import PsqlSession, ServerAddress
from ascar.systems.postgresql.reading import IN_FORCE, read_back
from ascar.systems.postgresql.restoration import LIMIT_S, READ, RELOAD, Restoration, file_text
from ascar.systems.postgresql.server_facts import ServerIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ascar.space import Configuration, Value
    from ascar.systems.keeper import Keeper
    from ascar.systems.postgresql.auto_configuration import Entries
    from ascar.systems.postgresql.server_facts import ServerFacts

_RELOADED_S, _LOOK_S = 10.0, 0.02


class LiveSettings:
    """The settings of one server.

    Args:
        session: the session that changes them.
        address: where to connect anew, if the session breaks.
        facts: what the server said when the study began.
        keeper: a keeper of the user.
        default: the values in force when the study began.

    Raises:
        Refused: postgresql.auto.conf cannot be kept as it is.
        StageFailed: the server does not answer.
    """

    def __init__(
        self,
        session: PsqlSession,
        address: ServerAddress,
        facts: ServerFacts,
        keeper: Keeper,
        default: Configuration,
    ) -> None:
        self.changing = threading.RLock()
        """Held by whoever changes values: the study, or its guard."""
        self.current: Mapping[str, Value] = default
        """The values in force."""
        self.session = session
        self._address, self._facts, self._keeper, self._default = address, facts, keeper, default
        self._before: Entries = entries_of(file_text(session.ask(READ)))
        self._restoration: Restoration | None = None

    def change(self, configuration: Configuration, begun: Callable[[bool], None]) -> None:
        """Put a configuration in force.

        Args:
            configuration: the configuration.
            begun: told, before the first statement, whether it departs from the default.

        Raises:
            StageFailed: the server refuses a value.
            WorkError: it is another server, or was started anew, or somebody else changed a setting.
        """
        with self.changing:
            session = self.checked_session()
            present = entries_of(file_text(session.ask(READ)))
            restoration = self._noted(configuration, present)
            departs = dict(configuration) != dict(self._default)
            begun(departs)
            if departs:
                try:
                    self._write(session, configuration, dict(present))
                except StageFailed:
                    with suppress(StageFailed):  # the first error is the one to tell
                        self.put_back(session)
                    raise
            else:
                restoration.carry_out(session)
            self.current = configuration
            self._await(session, configuration)

    def put_back(self, session: PsqlSession) -> None:
        """Put the old values back by a session of the caller's, or by a new one where that broke.

        Raises:
            WorkError: that failed.
        """
        with self.changing:
            assert self._restoration is not None, "something was changed"
            try:
                self._restoration.carry_out(session)
            except StageFailed:
                self._restoration.carry_out(self.checked_session())
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
                    restoration.carry_out_on_files()
                except WorkError as other:
                    raise WorkError(
                        f"the old values could not be put back: {failure.message}; {other.message}; `ascar "
                        "restore` does it once the server answers"
                    ) from failure
            self._keeper.undo_forget(restoration.command())
            self._restoration = None
        if left:
            raise WorkError(f"left alone: {'; '.join(left)}")

    def close(self) -> None:
        """End the session."""
        self.session.close()

    def checked_session(self) -> PsqlSession:
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
        self._facts.identity.check_same(ServerIdentity.of(session))
        return session

    def _write(self, session: PsqlSession, configuration: Configuration, now: Mapping[str, str]) -> None:
        for name, value in configuration.items():
            text = self._text(name, value)
            if text != now.get(name):
                session.ask(setting(name, text))
        session.ask(RELOAD)

    def _noted(self, configuration: Configuration, present: Entries) -> Restoration:
        """What undoes the change to a configuration; it is in the keeper's journal.

        Raises:
            WorkError: somebody else changed a setting of the study.
        """
        now, old, previous = dict(present), dict(self._before), self._restoration
        left = {} if previous is None else previous.set
        texts = {name: self._text(name, value) for name, value in configuration.items()}
        for name in texts:
            if now.get(name) != old.get(name) and now.get(name) not in left.get(name, ()):
                raise WorkError(
                    f"{name}: somebody else changed it by ALTER SYSTEM in mid-study; the study ends"
                )
        changed = {
            name: (now.get(name), text)
            for name, text in texts.items()
            if not now.get(name) == text == old.get(name)
        }
        restoration = Restoration(
            address=self._address,
            identifier=self._facts.identity.identifier,
            timeline=self._facts.identity.timeline,
            before=self._before,
            set=changed,
            data_directory=self._facts.data_directory if self._facts.is_local else None,
        )
        if restoration != previous:
            self._keeper.undo_command(restoration.command(), LIMIT_S)
            self._restoration = restoration
            if previous is not None:
                self._keeper.undo_forget(previous.command())
        return restoration

    def _text(self, name: str, value: Value) -> str | None:
        """A value as it stands in postgresql.auto.conf; None: it is as before, and was not there."""
        if value == self._default.get(name):
            return dict(self._before).get(name)
        return postgresql()[name].text(value)

    @staticmethod
    def _await(session: PsqlSession, configuration: Configuration) -> None:
        """Wait until the reload took effect; what is not in force then fails the trial by reading back."""
        deadline_s = time.monotonic() + _RELOADED_S
        while time.monotonic() < deadline_s:
            found = read_back(session.ask(IN_FORCE), configuration, tuple(configuration))
            if all(found[name] == configuration[name] for name in found):
                return
            time.sleep(_LOOK_S)

    def check_writable(self, names: Collection[str]) -> None:
        """See that ALTER SYSTEM can write its file: a reset of what is not there writes it as it was.

        Args:
            names: the settings that may be reset.

        Raises:
            Refused: it cannot.
        """
        absent = [name for name in names if name not in dict(self._before)]
        if not absent:
            return
        try:
            self.session.ask(setting(absent[0], None))
        except StageFailed as failure:
            raise Refused(f"ALTER SYSTEM fails: {failure.message}") from failure

    def _reconnected(self) -> PsqlSession:
        """The session, or a new one where it broke.

        Raises:
            StageFailed: the server does not answer.
        """
        try:
            self.session.ask("SELECT 1")
        except StageFailed:
            fresh = PsqlSession(self._address)
            self.session.close()
            self.session = fresh
        return self.session
