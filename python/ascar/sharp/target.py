"""Rules in force as a system under tuning: the numbers of a rule set are its parameters (Li, 6.3.1).

[target]
kind = "rules"
rules = "rules.txt"                # whose numbers are turned
fields = ["tau_us"]                # of m100, b100 and tau_us; left out: all of them
at = [1, 3]                        # only these rules, from 1; left out: all of them
workload = "writers"               # the controllers of this workload, behind a message server
scenario = "random-write"          # or a simulated cluster of its own, in virtual time
settle = "4 s"                     # left out of readings after rules have changed

What is tried is on trial: when the study ends, or its process dies, the rules from before are in force again.
Controllers need no communication while they follow what was chosen.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from ascar.errors import AscarError, InputError, StageFailed, StudyError
from ascar.messaging import token
from ascar.results.measurement import Readings, Series
from ascar.results.trial import Change
from ascar.rules import RuleSet
from ascar.sharp.deployment.managed_system import METRICS, ManagedSystem, interval_metrics
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.ranges import FIELDS
from ascar.sharp.rule_knobs import space_of, with_values
from ascar.sharp.running import SimulatedRunning
from ascar.simulation import open_scenario
from ascar.study import convert, duration
from ascar.systems import Target
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from ascar.sharp.running import TickedSystem as RunningSeries
    from ascar.space import Configuration
    from ascar.workspace import LoadTiming

_BYTES_MAX = 1 << 20
_TRIAL_MAX_S = 3_600.0
_TOTAL = "throughput_mb_per_s"


class RuleParametersOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` with kind = "rules"; see the module.

    Attributes:
        rules: file of the rule set whose numbers are turned.
        fields: the numbers to use: of `m100`, `b100` and `tau_us`.
        at: numbers of the rules, from 1; empty: all of them.
        workload: the workload whose controllers follow the rules.
        connection: connection file of the message server; else ASCAR_NATS_URL, or the server here.
        scenario: a simulated cluster instead: a file or a preset.
        settle: left out of readings after rules have changed.
        trial: the time that rules stay in force when this process dies.
    """

    rules: str
    fields: tuple[str, ...] = tuple(FIELDS)
    at: tuple[int, ...] = ()
    workload: str | None = None
    connection: str | None = None
    scenario: str | None = None
    settle: str = "4 s"
    trial: str = "10 min"


def read_rules(path: Path, key: str) -> RuleSet:
    """The rules of a file.

    Raises:
        StudyError: it cannot be read, or is not a rule set.
    """
    return RuleSet.read(path, f"{key} = {str(path)!r}", StudyError).bare()


class RuleParameters(Target):
    """A target and its own load: what runs there, under rules whose numbers are turned.

    Attributes:
        space: a parameter for each number, such as `rule3_tau_us`; the defaults are those of the rules.
        default_workload: None: it is its own.

    Args:
        options: the study's `[target]` table without its kind.

    Raises:
        StudyError: an option is missing, unknown or out of range, or the file is not a rule set.
    """

    default_workload: str | None = None

    def __init__(self, options: Mapping[str, Any]) -> None:
        chosen = convert(options, RuleParametersOptions, "target")
        self._options = chosen
        self._rules = read_rules(Path(chosen.rules), "target.rules")
        self._settle_s = duration("target.settle", chosen.settle) if chosen.settle != "0 s" else 0.0
        self._trial_s = duration("target.trial", chosen.trial)
        if not 0 < self._trial_s <= _TRIAL_MAX_S:
            raise StudyError(f"target.trial = {chosen.trial!r}: must be at most an hour")
        if chosen.scenario is not None and (chosen.workload is not None or chosen.connection is not None):
            raise StudyError(
                "target.scenario: cannot be given together with workload or connection; leave out one of them"
            )
        try:
            if chosen.workload is not None:
                token("target.workload", chosen.workload)
            self._scenario = None if chosen.scenario is None else open_scenario(chosen.scenario)
            self.space = space_of(self._rules, chosen.fields, [one - 1 for one in chosen.at] or None)
        except InputError as error:
            raise StudyError(f"target: {error.message}") from None
        self._now = self._rules
        self._applied: Configuration | None = None
        self._open: ExitStack | None = None
        self._system: RunningSeries | None = None
        self._directory: Path | None = None
        self._left_s = 0.0

    def __enter__(self) -> Self:
        """Find the controllers, or begin the simulation.

        Raises:
            MessagingError: there is no connection, or no controller.
        """
        stack = ExitStack()
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ascar-rules-"))
            self._directory = Path(folder)
            self._system = self._opened(stack)
        except BaseException:
            stack.close()
            raise
        self._open = stack
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put back the rules from before."""
        stack, self._open = self._open, None
        self._left_s = self.clock()
        self._system, self._directory, self._applied = None, None, None
        if stack is not None:
            stack.close()

    def apply(self, configuration: Configuration) -> Change:
        """Put the rules with these numbers in force, on trial.

        Raises:
            StageFailed: a controller refuses or does not answer; the rules from before are in force.
        """
        before, self._applied = self._applied, None
        self._now = with_values(self._rules, dict(configuration))
        begun_s = self.clock()
        try:
            self._running.back()
            self._running.try_out(self._now)
        except AscarError as error:
            raise StageFailed("change", error.message) from None
        self._applied = configuration
        difference = self.space.change({} if before is None else before, configuration)
        return Change.of(difference, {"rules": self.clock() - begun_s}, filled=True)

    def settle(self) -> Mapping[str, float]:
        """Nothing: readings leave the first seconds out."""
        return {}

    @property
    def workspace(self) -> Workspace:
        """An empty directory."""
        return Workspace(self._directory or Path(tempfile.gettempdir(), "ascar-rules"))

    def describe(self) -> Mapping[str, Any]:
        """Whose numbers are turned, and where."""
        given = {key: value for key, value in msgspec.to_builtins(self._options).items() if value}
        return {"target": "rules", **given, "rules": rules_id(self._rules)}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """How controllers take the numbers, once they follow the rules."""
        values = [f"{name}={configuration[name]}" for name in configuration if name in set(chosen)]
        if not values or self._options.workload is None:
            return {}
        return {"shell": [f"ascar sharp set --workload {self._options.workload} {' '.join(values)}"]}

    def prepare(self, workspace: Workspace) -> None:
        """There is nothing to fill."""

    def clock(self) -> float:
        """Seconds of the system; they stand still while it is not entered."""
        return self._left_s if self._system is None else self._left_s + self._system.time_s

    @property
    def reported(self) -> frozenset[str]:
        """What an interval of a running system tells."""
        return METRICS

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:  # noqa: ARG002
        """Readings of what runs there, until it is enough.

        Raises:
            StageFailed: a controller is lost, or follows other rules.
        """
        try:
            return self._read(pace)
        except AscarError as error:
            raise StageFailed("load", error.message) from None

    def _read(self, pace: LoadTiming) -> Readings:
        begun_s = self.clock()
        seconds: list[float] = []
        totals: list[float] = []
        whole: dict[str, list[float]] = {}
        load_s, ended, renewed_s = 0.0, "time", begun_s
        while load_s < pace.load_max_s - 1e-9:
            if self.clock() - renewed_s > self._trial_s / 3:
                self._running.renew()
                renewed_s = self.clock()
            own = self._running.collect(self._now, self._settle_s, pace.reading_s, going_on=bool(seconds))
            load_s += pace.reading_s
            for name, values in own.items():
                whole.setdefault(name, []).extend(values)
            seconds.append(load_s)
            totals.append(interval_metrics(own)[_TOTAL])
            if pace.asks(load_s + 1e-9) and pace.may_end({_TOTAL: Series.of(seconds, totals)}):
                ended = "enough"
                break
        # How even the throughput is, the whole alone tells.
        return Readings({_TOTAL: Series.of(seconds, totals)}, interval_metrics(whole), load_s, ended)

    @property
    def _running(self) -> RunningSeries:
        assert self._system is not None, "the target is entered"
        return self._system

    def _opened(self, stack: ExitStack) -> RunningSeries:
        if self._scenario is not None:
            return SimulatedRunning(self._scenario)
        given = self._options.connection
        connection = None if given is None else Path(given)
        return stack.enter_context(
            ManagedSystem.connected(self._options.workload, connection, trial_s=self._trial_s)
        )
