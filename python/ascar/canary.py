"""`ascar apply --canary`: a configuration goes to one server after the other while limits hold."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from ascar.application import kept_by, owner_of, prepared
from ascar.errors import AscarError, InputError, Refused, WorkError
from ascar.expression import parse
from ascar.render import clock
from ascar.systems import open_target, system_of
from ascar.systems.asking import apply_checked
from ascar.systems.existing import ExistingTarget
from ascar.systems.existing.guard import limits_of
from ascar.systems.keeper import Hold, Keeper

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from ascar.history import Run
    from ascar.space import Configuration
    from ascar.study import GuardSection
    from ascar.systems import Placement

CANARY_MIN_S, CANARY_MAX_S = 1.0, 86_400.0
"""The least and the longest time for which each server is watched: a second, a day."""

_LOOK_S, _ANSWER_S = 1.0, 2.0  # a guard puts back by itself, between two looks


@dataclass(frozen=True, slots=True)
class GuardedServer:
    """A server that is to take a configuration.

    Attributes:
        target: its `[target]` table.
        guard: the limits of what its clients get.
        placement: what is to be set.
    """

    target: Mapping[str, Any]
    guard: GuardSection
    placement: Placement

    @property
    def name(self) -> str:
        """What messages call it, e.g. "server 127.0.0.1:5432/main"."""
        return self.placement.settings[0].path


@dataclass(frozen=True, slots=True)
class CanaryStanding:
    """How far the servers are.

    Attributes:
        name: the server that was set last.
        number: its number, from 1 on.
        servers: the number of servers that are to be set.
        left_s: seconds until the next one is set, or until the end.
    """

    name: str
    number: int
    servers: int
    left_s: float


@dataclass(slots=True)
class _Opened:
    server: GuardedServer
    system: ExistingTarget[Any, Any]

    @contextmanager
    def named(self) -> Generator[None]:
        """Errors say which server they are of."""
        try:
            yield
        except AscarError as error:
            if self.server.name not in error.message:
                error.message = f"{self.server.name}: {error.message}"
                error.args = (error.message,)
            raise


@dataclass(frozen=True, slots=True)
class Canary:
    """A run's configuration for several servers: one is set and watched, then the next one.

    Attributes:
        run: the run.
        configuration: its configuration.
        servers: the servers in their order; those with nothing to set are left out.
        watch_s: seconds for which the limits have to hold before the next server is set.
        hold: how long the changes stay.
    """

    run: Run
    configuration: Configuration
    servers: Sequence[GuardedServer]
    watch_s: float
    hold: Hold

    def check(self) -> list[_Opened]:
        """The servers with something to set, not yet entered, with their limits; reads nothing of them.

        Raises:
            InputError: a server is named twice, has no limit, or one that cannot be watched.
            Refused: a rule or a window of its `[guard]` forbids the change.
        """
        if not all(issubclass(system_of(one.target), ExistingTarget) for one in self.servers):
            raise InputError(
                "--canary: watches servers that people use; name their study files with --server"
            )
        changed = [one for one in self.servers if one.placement.settings]
        twice = [name for name, times in Counter(one.name for one in changed).items() if times > 1]
        if twice:
            raise InputError(f"--server: {twice[0]} is named twice")
        return [self._guarded(one) for one in changed]

    def carry_out(self, listener: Callable[[CanaryStanding], None]) -> None:
        """Set the servers in turn; in the end the configuration stays on all, or on none.

        All servers are entered and asked whether they take it before the first is set. From then on, the
        limits of all that were set are watched. One keeper has all changes in one journal: one line of it
        lets all stay, and without that line the end of this process, whatever its reason, has all of them
        put back.

        Args:
            listener: told how far the servers are.

        Raises:
            InputError, Refused: as `check`; or a server is not confirmed, or must not be changed.
            WorkError: a limit was broken, a server died, or a setting could not be made.
        """
        opened, reason = self.check(), None
        if not opened:
            return
        try:
            with Keeper(owner_of(self.run), user=True, hold=self.hold) as keeper, ExitStack() as held:
                try:
                    self._set_in_turn(opened, self._entered(opened, keeper, held), listener)
                except AscarError as error:
                    reason = error
                    raise
        except AscarError as failure:  # what could not be put back hides why it was to be
            if reason is None or reason is failure:
                raise
            raise WorkError(f"{reason.message}; {failure.message}") from failure

    def _guarded(self, server: GuardedServer) -> _Opened:
        system = cast("ExistingTarget[Any, Any]", open_target(server.target))
        opened = _Opened(server, system)
        with opened.named():
            _check_watchable(server.guard, system.watched, self.watch_s)
            self._check_rules(server.guard)
            closed_s = server.guard.closed_s(datetime.now())
            if closed_s != 0:
                when = "at no time" if closed_s is None else f"in {clock(closed_s)}"
                raise Refused(f"guard.window: changes are allowed {when}")
            system.guard_by(server.guard)
        return opened

    def _check_rules(self, guard: GuardSection) -> None:
        for _, formula, names in guard.rule_names():
            if unknown := sorted(names - set(self.run.space.names)):
                raise InputError(
                    f"guard.rule: {formula!r} needs {unknown[0]!r}; --canary knows parameters alone"
                )
            values = {name: self.configuration.get(name) for name in names}
            if parse(formula).evaluate_or_none(values) is True:
                raise Refused(f"guard.rule: {formula!r} forbids the configuration")

    def _entered(self, opened: Sequence[_Opened], keeper: Keeper, held: ExitStack) -> list[Configuration]:
        """Enter all servers, and see that each takes the configuration; changes nothing."""
        wanted: list[Configuration] = []
        for one in opened:
            one.system.shared_keeper = keeper
            with one.named():
                held.enter_context(kept_by(one.system, owner_of(self.run), self.hold))
                names = {setting.parameter for setting in one.server.placement.settings}
                wanted.append(prepared(one.system, self.run.space, self.configuration, names))
        locks = Counter(one.system.lock for one in opened)
        for one in opened:
            with one.named():
                if locks[one.system.lock] > 1:
                    raise Refused("is one server under several addresses; name each server once")
                needed_s = one.system.judged_after_s
                if self.watch_s < needed_s:
                    raise InputError(
                        f"--canary = {self.watch_s:g} s: is too short to judge the limits; "
                        f"allowed: {needed_s:g} s and more"
                    )
                one.system.await_usual()
        return wanted

    def _set_in_turn(
        self,
        opened: Sequence[_Opened],
        wanted: Sequence[Configuration],
        listener: Callable[[CanaryStanding], None],
    ) -> None:
        for number, (one, values) in enumerate(zip(opened, wanted, strict=True), 1):
            with one.named():
                _set(one, values, opened[:number])
            end_s = time.monotonic() + self.watch_s
            while (left_s := end_s - time.monotonic()) > 0:
                listener(CanaryStanding(one.server.name, number, len(opened), left_s))
                time.sleep(min(_LOOK_S, left_s))
                _check_kept(opened[:number])
                _check_answering(opened[number:])
            _check_judged(one, self.watch_s)
        for one in opened:
            one.system.end_watch()
        _check_kept(opened)


def _check_watchable(guard: GuardSection, watched: frozenset[str], watch_s: float) -> None:
    tells = f"the server tells {', '.join(sorted(watched))}"
    if not guard.levels:
        raise InputError(f"guard: has no limit to watch; write [[guard.floor]] or [[guard.ceiling]]: {tells}")
    for level in guard.levels:
        if level.metric not in watched:
            raise InputError(f"{level.key}: --canary cannot watch {level.metric!r:.80}; {tells}")
    for limit in limits_of(guard, watched):
        if limit.window_s > watch_s:
            raise InputError(
                f"--canary = {watch_s:g} s: is shorter than the window of the limit of {limit.metric}, "
                f"{limit.window_s:g} s"
            )


def _set(one: _Opened, values: Configuration, in_force: Sequence[_Opened]) -> None:
    try:
        apply_checked(one.system, values)
    except AscarError:
        _check_kept(in_force)  # a limit that was broken meanwhile is the reason
        raise


def _check_kept(in_force: Sequence[_Opened]) -> None:
    for one in in_force:
        violation = one.system.violation
        if violation is not None:
            others = "" if len(in_force) == 1 else "; the other servers that were set are put back as well"
            raise WorkError(f"{one.server.name}: {violation}{others}")


def _check_answering(waiting: Sequence[_Opened]) -> None:
    for one in waiting:
        with one.named():
            one.system.health(_ANSWER_S)


def _check_judged(one: _Opened, watch_s: float) -> None:
    if one.system.unjudged:
        raise WorkError(
            f"{one.server.name}: {', '.join(one.system.unjudged)}: could not be judged in {watch_s:g} s, for "
            "clients did nothing that tells it; all servers are put back"
        )
