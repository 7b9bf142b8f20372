"""A target that is a server of others: its settings change while it works, and its clients are the load."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from math import isclose
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar, cast

from ascar.errors import EnvironmentLacks, Refused, StageFailed
from ascar.results.machine import UNKNOWN, AppliedSetting, LeftToUser
from ascar.results.trial import Change
from ascar.space import ChangeCost
from ascar.space.parameter import value_text
from ascar.systems import Placement, Starter, Target
from ascar.systems.existing.activity import LiveSession
from ascar.systems.existing.guard import LiveGuard, LiveLimit, limits_of
from ascar.systems.existing.load import live_readings
from ascar.systems.holders import holder_of
from ascar.systems.keeper import Keeper, scratch_directory
from ascar.systems.machine import describe_machine
from ascar.systems.own_server import memory_of
from ascar.workspace import Workspace, reaching

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from ascar.results.measurement import Readings
    from ascar.space import Configuration, Space, Value
    from ascar.study import GuardSection
    from ascar.systems.existing.activity import LiveActivity
    from ascar.systems.existing.keys import ExistingKeys
    from ascar.systems.existing.settings import LiveSettings
    from ascar.systems.own_server.server import ServerPrograms
    from ascar.systems.place import Place
    from ascar.workspace import LoadTiming


class LiveFacts(Protocol):
    """What a server says of itself."""

    @property
    def name(self) -> str:
        """The name by which a user confirms that this server may be tuned."""
        ...

    @property
    def lock(self) -> str:
        """The name of the lock that a study of it takes."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine."""
        ...


S = TypeVar("S", bound=LiveSession)
F = TypeVar("F", bound=LiveFacts)


class ExistingTarget(Target, Generic[S, F]):
    """What such targets do alike.

    Args:
        keys: the checked keys of `[target]`.
        space: the space, before the server has been asked.

    Raises:
        StudyError: a key is wrong.
    """

    kind: ClassVar[str]
    """The name of the kind."""
    watched: ClassVar[frozenset[str]]
    """The metrics of what clients get."""
    nothing: ClassVar[str]
    """What it means that clients have nothing done."""

    default_workload: str | None = None
    works_already = True
    changes_while_working = frozenset({ChangeCost.DYN_APP})
    starter = Starter(target={"server": '"existing"', "parameters": '"expert"'})

    owner: str
    """What others who are refused the server are told."""
    shared_keeper: Keeper | None = None
    """A started keeper whose changes of several servers stay or go together; None: one of its own."""

    def __init__(self, keys: ExistingKeys, space: Space) -> None:
        self._keys = keys
        self._memory_bytes = memory_of(keys.memory)
        self.space = space
        self.owner = self.kind
        self._limits: tuple[LiveLimit, ...] = ()
        self._held = ExitStack()
        self._facts: F | None = None
        self._settings: LiveSettings[S, Any] | None = None
        self._guard: LiveGuard[S] | None = None
        self._directory: Path | None = None

    def _connect(self) -> S:
        """A session.

        Raises:
            StageFailed: the server refuses the connection, with its reason.
            EnvironmentLacks: a program is missing.
        """
        raise NotImplementedError

    def _facts_of(self, session: S) -> F:
        """What the server says of itself.

        Raises:
            EnvironmentLacks: the version is too old.
            Refused: the account may not know it.
        """
        raise NotImplementedError

    def _check_tunable(self, session: S, facts: F) -> None:
        """See that nothing of the server itself speaks against a study; reads only.

        Raises:
            Refused: something does.
        """
        raise NotImplementedError

    def _space_of(self, session: S, facts: F) -> Space:
        """The space, with the values in force as defaults."""
        raise NotImplementedError

    def _settings_of(self, session: S, facts: F, keeper: Keeper) -> LiveSettings[S, Any]:
        """The settings."""
        raise NotImplementedError

    def _activity(self, session: S, metrics: Collection[str]) -> LiveActivity[S]:
        """What reads the statistics.

        Args:
            session: the session to read by.
            metrics: those that it has to tell.

        Raises:
            StudyError: the server does not tell one.
        """
        raise NotImplementedError

    def _check_settings(self, session: S, names: Collection[str]) -> None:
        """See that the study's settings can be changed, and that a change reaches every client.

        Raises:
            Refused: the account may not, or something has a value of its own.
        """
        raise NotImplementedError

    @property
    def reached(self) -> Mapping[str, str]:
        """The variables by which a load finds the server."""
        raise NotImplementedError

    @staticmethod
    def _programs() -> ServerPrograms:
        """The server's programs on this machine.

        Raises:
            EnvironmentLacks: there are none.
        """
        raise NotImplementedError

    def _described(self, facts: F) -> Mapping[str, Any]:
        """What results are valid for, beside the machine, the server's name and its memory."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Connect, see that the server may be tuned, and take its values as the defaults; changes nothing.

        Raises:
            Refused: the command line does not confirm the server, or it must not be tuned.
            EnvironmentLacks: it cannot be reached, or the keeper is missing.
            StudyError: the guard has a limit that cannot be watched.
        """
        try:
            self._enter()
        except BaseException as error:
            self._leave(error)
            raise
        return self

    def _enter(self) -> None:
        session = self._connected()
        self._held.callback(session.close)
        facts = self._facts_of(session)
        self._check_confirmed(facts)
        self._check_tunable(session, facts)
        keeper = self.shared_keeper
        if keeper is None:
            keeper = self._held.enter_context(Keeper(self.owner, user=True, hold=self.keeps))
        keeper.lock(facts.lock)  # the values of another study's trial are no defaults
        self.space = self._space_of(session, facts)
        settings = self._settings_of(session, facts, keeper)
        self._held.callback(settings.close)
        if self._limits:
            metrics = {one.metric for one in self._limits}
            self._guard = LiveGuard(
                lambda: self._watching(metrics), self._limits, settings.put_back, settings.changing
            )
            self._held.callback(self._guard.stop)
        self._directory = self._held.enter_context(scratch_directory(keeper, "ascar-live-"))
        self._facts, self._settings = facts, settings

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put everything back; what is to stay does so unless there is an error.

        Raises:
            WorkError: the server does not answer, or is another one; `ascar restore` tries again.
        """
        try:
            if error is not None or not self.keeps:
                self._entered().finish()
        except BaseException as failure:
            self._leave(failure)
            raise
        self._leave(error)

    def adopt(self, space: Space) -> None:
        """See that the study's settings can be changed, and that a change reaches every client.

        Raises:
            Refused: the account may not, the server cannot, or something has a value of its own.
        """
        if self._settings is None:
            return  # what is only described touches no server
        names = _tuned_names(space, self.space)
        self._check_settings(self._settings.session, names)
        self._settings.check_writable(names)

    def guard_by(self, guard: GuardSection) -> None:
        """Keep the limits of what clients get."""
        self._limits = limits_of(guard, self.watched)

    @property
    def violation(self) -> str | None:
        """The limit that the configuration in force violated."""
        return None if self._guard is None else self._guard.violation

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Metrics of limits that nobody could judge since the configuration was set."""
        return () if self._guard is None else self._guard.unjudged

    @property
    def judged_after_s(self) -> float:
        """How long after a configuration was set all limits can be judged; known while it is entered."""
        return 0.0 if self._guard is None else self._guard.judged_after_s

    def await_usual(self) -> None:
        """Wait until changes are allowed, and it is known what clients usually get, where limits need it.

        Raises:
            StageFailed: it cannot be known, for clients do nothing.
        """
        if self._guard is not None:
            self._guard.wait()

    def end_watch(self) -> None:
        """Keep the limits no longer; a violation that was found stays known."""
        if self._guard is not None:
            self._guard.stop()

    @property
    def lock(self) -> str | None:
        """The name of the lock of the server, while it is entered."""
        return None if self._facts is None else self._facts.lock

    def apply(self, configuration: Configuration) -> Change:
        """Change what differs.

        Raises:
            StageFailed: the server refuses a value.
            WorkError: it is not the server any more that the study began on, or somebody else changed one.
        """
        settings, guard, begun_s = self._entered(), self._guard, time.monotonic()
        if guard is not None:
            guard.wait()
        held_s = time.monotonic() - begun_s
        difference, restarts = self.space.change(settings.current, configuration), settings.restarts

        def begun(departs: bool) -> None:
            if guard is not None:
                guard.arm(on=departs, restarted=settings.restarts != restarts)

        settings.change(configuration, begun)
        steps = {"hold": held_s, "settings": time.monotonic() - begun_s - held_s}
        return Change.of(difference, steps, filled=True)

    def health(self, limit_s: float) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        self._entered().ping(max(1.0, limit_s))

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What the server says is in force.

        Raises:
            StageFailed: the server does not answer.
        """
        return self._entered().in_force(names)

    @property
    def reported(self) -> frozenset[str]:
        """What clients get, where they are the load."""
        return self.watched

    def prepare(self, workspace: Workspace) -> None:  # noqa: ARG002
        """Nothing: the data is there."""
        return

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:  # noqa: ARG002
        """Read what the server's clients get.

        Raises:
            StageFailed: the server does not answer, or has no clients.
        """
        nothing = f"{self.nothing} on the server; let its clients work"
        return live_readings(self._activity(self._entered().session, ()), pace, nothing)

    @property
    def workspace(self) -> Workspace:
        """A directory for a load, which finds the server by variables, and its programs if they are here."""
        assert self._directory is not None, "a target is entered before it is used"
        folder = None
        with suppress(EnvironmentLacks):
            folder = self._programs().folder
        return Workspace(self._directory, environment=reaching(self.reached, folder))

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        if self._facts is None:
            return {"target": self.kind, "kind": "clients of the server"}
        return {
            "target": self.kind,
            **(describe_machine() if self._facts.is_local else {}),
            **self._described(self._facts),
            "server": self._facts.name,
            "memory_bytes": self._memory_bytes,
            **({} if self._settings is None else {"other_settings": dict(self._settings.others)}),
        }

    @classmethod
    def placement(
        cls,
        options: Mapping[str, Any],
        space: Space,
        configuration: Configuration,
        place: Place,  # noqa: ARG003 - the study names the server
    ) -> Placement:
        """What the server takes while it works is set; what takes a new start of it is left to the user.

        Raises:
            EnvironmentLacks: it cannot be reached.
            SpaceError: it cannot take a value beside those that are in force.
        """
        chosen = space.departures(configuration)
        if not chosen:
            return Placement()
        return cast("Any", cls)(options).placed(space, configuration, chosen)

    def placed(self, space: Space, configuration: Configuration, chosen: Sequence[str]) -> Placement:
        """Ask the server for what is in force, and say what it would take to have the chosen values so.

        Raises:
            EnvironmentLacks, SpaceError: as `placement`.
            Refused: a study of the server is running.
        """
        session = self._connected()
        try:
            facts = self._facts_of(session)
            holder = holder_of([facts.lock])
            if holder is not None:
                raise Refused(
                    f"{facts.name}: is tuned by {holder}, so what is in force now may be a trial's; wait for "
                    "that study or stop it"
                )
            present = self._space_of(session, facts)
        finally:
            session.close()
        before = present.default()
        wanted = {
            name: configuration[name]
            for name in chosen
            if name in present and present[name].cost in self.changes_while_working
        }
        present.permit_weaker(space.allow_weaker).validate({**before, **wanted})
        settings = tuple(
            AppliedSetting(
                name,
                present[name].native or name,
                f"server {facts.name}",
                _present_text(before.get(name), value),
                value_text(value),
            )
            for name, value in wanted.items()
        )
        left = tuple(name for name in chosen if name not in wanted)
        if not left:
            return Placement(settings, is_here=facts.is_local)
        lines = self.commands(configuration, left).get("shell", [])
        why = "they take a new start of the server, or are not in `parameters` of its table"
        return Placement(settings, (LeftToUser(left, why, tuple(lines)),), is_here=facts.is_local)

    def _check_confirmed(self, facts: F) -> None:
        given = self._keys.confirmed_server
        if given is None:
            raise Refused(
                f"target.server = 'existing': people may use {facts.name}; confirm that it may be tuned: "
                f"--allow-live {facts.name}"
            )
        if given != facts.name:
            raise Refused(f"--allow-live {given!r:.200}: the server of this study is {facts.name}; name that")

    def _watching(self, metrics: Collection[str]) -> LiveActivity[S]:
        session = self._connected()
        try:
            return self._activity(session, metrics)
        except BaseException:
            session.close()
            raise

    def _connected(self) -> S:
        try:
            return self._connect()
        except StageFailed as failure:
            raise EnvironmentLacks(f"target.server: {failure.message.partition(': ')[2]}") from failure

    def _entered(self) -> LiveSettings[S, Any]:
        if self._settings is None:
            raise StageFailed("program", "the target is entered before it is used")
        return self._settings

    def _leave(self, error: BaseException | None) -> None:
        """Let go of everything; a keeper that holds what is to stay puts it back where there is an error."""
        self._settings, self._guard = None, None
        self._held.__exit__(None if error is None else type(error), error, None)


def _present_text(present: Value | None, wanted: Value) -> str:
    """The value in force; servers keep fewer digits of a fraction than a study has."""
    if (
        isinstance(present, float)
        and isinstance(wanted, int | float)
        and isclose(present, wanted, rel_tol=1e-5)
    ):
        return value_text(wanted)
    return UNKNOWN if present is None else value_text(present)


def _tuned_names(space: Space, found: Space) -> tuple[str, ...]:
    """The settings that a study changes: those that it does not pin to the values that it found."""
    default = found.default()
    return tuple(
        name for name in space.names if name not in space.pinned or space.pinned[name] != default.get(name)
    )
