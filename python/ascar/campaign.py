"""What tuning and sweeping share: a run's trials, made one after the other."""

from __future__ import annotations

import math
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ascar.abandonment import BestTrial
from ascar.cycles import PairLoad, leaves_work
from ascar.errors import InputError, StageFailed, StudyError
from ascar.evaluation import Evaluator, LoadLimit
from ascar.events import Event
from ascar.reserve import SEARCH_SHARE, SEARCH_SHARE_MIN
from ascar.results.machine_difference import machine_difference
from ascar.results.outcome import saved_s
from ascar.results.trial import Failure, Origin, Purpose, Trial, TrialState
from ascar.space import change_costs_s
from ascar.study import duration
from ascar.systems import Reusing
from ascar.systems.asking import apply_checked, entering
from ascar.workloads import SelfEnding

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from ascar.events import Listener
    from ascar.history import History, Run
    from ascar.optimizers.proposals import Proposal
    from ascar.prepared_study import PreparedStudy
    from ascar.results.outcome import Outcome
    from ascar.space import Configuration

_CRASHES_MAX = 2
# A trial is begun if there is time for what this share of the trials took.
_MOST = 0.8
_WAIT_S = 60.0
# A search should have room for so many trials: a design of the usual size and half as many that it guides;
# twice as many where a short load says the same as a long one.
_SEARCH_TRIALS, _SEARCH_TRIALS_SHORT = 16, 32
# Loads are not made shorter for less than this.
_SHORTER_MAX = 0.75
_LIMIT = "load_limit_s"


@dataclass(slots=True)
class Campaign:
    """The trials of one run: made one after the other, kept in the history, added up.

    Attributes:
        prepared: the study's system, whose target is entered.
        run: the run that keeps the trials.
        listener: told of everything that happens.
        trials: all that have ended, in order, those of an earlier, interrupted part included.
        retry: configurations to try again first, because the machine went down once while they were in force.
        pair_load: the length of the loads of the last comparison.
        budget_s: seconds that the whole run may take.
        spent_before_s: seconds that earlier parts of the run took.
    """

    prepared: PreparedStudy
    run: Run
    listener: Listener
    trials: list[Trial] = field(default_factory=list[Trial])
    retry: list[Configuration] = field(default_factory=list["Configuration"])
    pair_load: PairLoad = field(default_factory=PairLoad)
    budget_s: float = field(init=False)
    spent_before_s: float = field(init=False)
    _start_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Take up what an earlier, interrupted part of the run left."""
        self.budget_s = self.prepared.study.budget_s
        self._start_s = self.prepared.start_s
        self.trials = self.run.trials()
        self.spent_before_s = sum(trial.total_s for trial in self.trials)
        for configuration in self.run.crashed():
            if self.run.crash_count(configuration) < _CRASHES_MAX:
                self.retry.append(configuration)
            else:
                self._quarantine(configuration)

    def announce(self, **data: object) -> None:
        """Tell the listener that the run starts, or goes on, and then of every trial that it had already."""
        known = {
            "study": self.prepared.study.name,
            "run_id": self.run.id,
            "valid_configurations": self.prepared.space.count(),
            "trials_recalled": len(self.trials),
        }
        self.listener(Event("study-started", {**known, **data}))
        for trial in self.trials:
            self.listener(Event("trial-recalled", {"trial": trial.number}, trial))

    def attempt(
        self,
        proposal: Proposal,
        purpose: Purpose,
        *,
        load_max_s: float = math.inf,
        enough_s: float = math.inf,
    ) -> Trial:
        """Evaluate a configuration and keep what became of it; an interruption is kept, and goes on up.

        Args:
            proposal: the configuration, with who proposed it and why.
            purpose: the purpose of the trial.
            load_max_s: the greatest length of the load, if that is below the study's, or the comparison's.
            enough_s: the load ends after so long, if it can.

        Raises:
            InputError: the objective or a constraint names a metric that the load does not report.
        """
        prepared = self.prepared
        self._wait_for_window()
        trial = Trial(
            self.run.next_number(),
            proposal.configuration,
            purpose,
            TrialState.RUNNING,
            metrics=_cost(prepared, proposal.configuration) | _limited(enough_s),
            origin=proposal.origin,
            reason=proposal.reason,
        )
        self.run.start_trial(trial)
        self.listener(Event("trial-started", {"trial": trial.number, "left_s": self.left_s}, trial))
        if purpose.of_comparison and isinstance(prepared.target, Reusing):
            prepared.target.start_afresh()  # what is claimed must hold on a newly made system
        is_even = purpose.of_comparison or purpose is Purpose.BIAS  # which is held against its runs
        even_s = min(self.pair_load.load_s, load_max_s) if is_even else 0.0
        limit = LoadLimit(
            load_min_s=even_s,
            load_max_s=even_s or load_max_s,
            enough_s=enough_s,
            ends_at_s=prepared.clock() + self.left_s,
        )
        evaluator = Evaluator(
            prepared.study, prepared.target, prepared.workload, self._heard, prepared.clock, limit
        )
        try:
            trial = evaluator.evaluate(trial, self._rival(trial))
        except BaseException:
            self.run.finish_trial(msgspec.structs.replace(trial, state=TrialState.INTERRUPTED))
            raise
        self._keep(trial)
        self.listener(Event("trial-finished", {"trial": trial.number, "left_s": self.left_s}, trial))
        return trial

    def _wait_for_window(self) -> None:
        """Wait until the guard allows changes, with the default in force; the wait is not part of the budget.

        Raises:
            StudyError: it never will.
        """
        guard, prepared = self.prepared.study.guard, self.prepared
        day = prepared.day
        if day is None or guard.closed_s(day.time()) == 0:
            return
        start_s = prepared.clock()
        if self.trials:
            with suppress(StageFailed):
                apply_checked(prepared.target, prepared.space.default())
        said = ""
        while closed_s := guard.closed_s(day.time()):
            until = (day.time() + timedelta(seconds=closed_s)).isoformat(" ", "minutes")
            if until != said:
                self.listener(Event("waiting", {"until": until}))
                said = until
            day.wait(min(closed_s, _WAIT_S))
        if closed_s is None:
            raise StudyError("guard.window: no time of the week is in a window; change the windows")
        self._start_s += prepared.clock() - start_s

    def _heard(self, event: Event) -> None:
        """Pass on what a trial reports; readings are noted for whoever looks on from outside."""
        if event.kind == "reading":
            data = cast("dict[str, Any]", event.data)
            self.run.note_reading(data["trial"], data["second"], data["score"])
        self.listener(event)

    def of(self, purpose: Purpose) -> list[Trial]:
        """The complete trials made for a purpose."""
        return [t for t in self.trials if t.purpose is purpose and t.state is TrialState.COMPLETE]

    @property
    def loads_end_themselves(self) -> bool:
        """Whether nobody can make the loads shorter or longer."""
        load = self.prepared.workload
        return isinstance(load, SelfEnding) and load.ends_by_itself

    @property
    def short_loads_mislead(self) -> bool:
        """Whether a load says less when it is shorter: it would end itself later, or leave work undone."""
        defaults = self.of(Purpose.DEFAULT)[:1]
        return self.loads_end_themselves or leaves_work(self.prepared.study, defaults)

    @property
    def search_share(self) -> float:
        """The share of the time that the search has at least.

        It is smaller where the pairs of the last comparison cannot be short.
        """
        return SEARCH_SHARE_MIN if self.short_loads_mislead else SEARCH_SHARE

    @property
    def search_load_s(self) -> float:
        """The load of a search trial may end after so long, so that a small budget holds a search.

        Few long loads say more of each configuration, and less of where the best one is, than many short
        ones. Where a search has room for less than `_SEARCH_TRIALS` trials like the default's first, or
        `_SEARCH_TRIALS_SHORT` where short loads do not mislead, loads are as much shorter, but not below the
        study's least length. Infinite where there is room, or where a load cannot be ended early. What a
        short load says wrong is not claimed: the last comparison has loads of its own length
        (`ascar.cycles.PairLoad`). A run that goes on with another budget keeps what it began with.
        """
        made = self.of(Purpose.DEFAULT)
        if not made:
            return math.inf
        first, again = made[0], made[1:]
        load_s = first.stage_s.get("load", 0.0)
        if again:
            limit_s, again_s = again[0].metrics.get(_LIMIT, math.inf), again[0].stage_s.get("load", 0.0)
            # A load ends with the reading after the limit; one that nobody can end, where the first one did.
            return limit_s if again_s - limit_s < load_s - again_s else math.inf
        wanted = _SEARCH_TRIALS if self.short_loads_mislead else _SEARCH_TRIALS_SHORT
        room_s = (self.prepared.study.budget_s - first.total_s) * self.search_share / wanted
        left_s = room_s - (first.total_s - load_s)
        shorter_s = max(left_s, self._load_min_s)
        return shorter_s if shorter_s < _SHORTER_MAX * load_s else math.inf

    @property
    def defaults(self) -> list[Trial]:
        """The complete runs of the default that search trials are held against: those as long as they are."""
        made = self.of(Purpose.DEFAULT)
        return made if math.isinf(self.search_load_s) else made[1:]

    @property
    def alike(self) -> list[Trial]:
        """The trials whose loads may be held against one another: without a first run that is longer."""
        if math.isinf(self.search_load_s):
            return self.trials
        first = self.of(Purpose.DEFAULT)[0]
        return [trial for trial in self.trials if trial is not first]

    @property
    def elapsed_s(self) -> float:
        """Seconds that the run took so far, earlier parts included."""
        return self.spent_before_s + self.prepared.clock() - self._start_s

    @property
    def left_s(self) -> float:
        """Seconds left of the budget for trials: putting everything back is part of it."""
        return self.budget_s - self.elapsed_s - self.restore_s

    @property
    def restore_s(self) -> float:
        """Seconds that putting everything back will take: those of the longest change so far."""
        return max((trial.stage_s.get("change", 0.0) for trial in self.trials), default=0.0)

    @property
    def trial_s(self) -> float:
        """Seconds that most of the complete trials take; 0 before the first."""
        complete = sorted(t.total_s for t in self.trials if t.state is TrialState.COMPLETE)
        return complete[int(_MOST * (len(complete) - 1))] if complete else 0.0

    def pair_s(self, turn: Iterable[Configuration], *, shortest: bool = False) -> float:
        """Seconds that a run of each of these configurations takes, or would take with the shortest load."""
        shortest = shortest and not self.loads_end_themselves
        return sum(
            total_s - max(0.0, load_s - self._load_min_s) if shortest else total_s
            for total_s, load_s in map(self._usual_s, turn)
        )

    def load_s_for(self, turn: Sequence[Configuration]) -> float:
        """The greatest length of load with which one run of each fits into what is left.

        Infinite where the study's own fits; 0 where not even the shortest load does. Each has the same, so
        that what the load's length does to a score is the same on both sides.
        """
        usual = [self._usual_s(configuration) for configuration in turn]
        if sum(total_s for total_s, _ in usual) <= self.left_s:
            return math.inf
        others_s = sum(total_s - load_s for total_s, load_s in usual)
        load_s = (self.left_s - others_s) / len(usual)
        return load_s if load_s >= max(self._load_min_s, self.pair_load.least_s) else 0.0

    @property
    def _load_min_s(self) -> float:
        return duration("measurement.load_min", self.prepared.study.measurement.load_min)

    def usual_load_s(self, sides: Iterable[Configuration]) -> float:
        """The usual load of these configurations in the search; the first of all if others are shorter."""
        if math.isfinite(self.search_load_s):
            return self.of(Purpose.DEFAULT)[0].stage_s.get("load", 0.0)
        compared = set(sides)
        return median(
            [
                trial.stage_s.get("load", 0.0)
                for trial in self.trials
                if trial.state is TrialState.COMPLETE
                and trial.configuration in compared
                and not trial.purpose.of_comparison
            ]
            or [0.0]
        )

    def _usual_s(self, configuration: Configuration) -> tuple[float, float]:
        """Seconds of a configuration's runs, and of their loads; of all trials where it has none."""
        complete = [trial for trial in self.trials if trial.state is TrialState.COMPLETE]
        known = [trial for trial in complete if trial.configuration == configuration] or complete
        if not known:
            return 0.0, 0.0
        total_s = median(trial.total_s for trial in known)
        load_s = median(trial.stage_s.get("load", 0.0) for trial in known)
        pair_s = self.pair_load.load_s or (
            self.usual_load_s(()) if math.isfinite(self.search_load_s) else load_s
        )
        return total_s + pair_s - load_s, pair_s

    @property
    def stage_s(self) -> dict[str, float]:
        """What the time went on, by stage; "other" is the search itself, the history, the waiting."""
        total: dict[str, float] = {}
        for trial in self.trials:
            for stage, seconds in trial.stage_s.items():
                total[stage] = total.get(stage, 0.0) + seconds
        return {**total, "other": max(0.0, self.elapsed_s - sum(total.values()))}

    @property
    def saved_s(self) -> float:
        """Seconds of load that abandoning worse configurations saved."""
        return saved_s(self.trials)

    @property
    def counts(self) -> dict[TrialState, int]:
        """Trials by how they ended."""
        states = [trial.state for trial in self.trials]
        return {state: states.count(state) for state in TrialState if state in states}

    def accounted(self, outcome: Outcome) -> Outcome:
        """An outcome with what the time went on so far."""
        return msgspec.structs.replace(
            outcome, stage_s=self.stage_s, counts=self.counts, saved_s=self.saved_s
        )

    def keep(self, outcome: Outcome) -> None:
        """Put on disk what is proven while the run goes on: an interruption leaves it there."""
        self.run.keep(self.accounted(outcome))

    def _rival(self, trial: Trial) -> BestTrial | None:
        """What a search trial is held against; None for one that must be carried through.

        A configuration that was measured before is measured again for precision: half a measurement of it
        would be none.
        """
        known = any(one.configuration == trial.configuration and one.score is not None for one in self.trials)
        if trial.purpose is not Purpose.SEARCH or known:
            return None
        study = self.prepared.study
        if len(study.objectives) > 1:
            return None  # what is worse as a compromise may be the best in one objective
        return BestTrial.of(self.alike, study.objective, study.measurement.abandon)

    def _quarantine(self, configuration: Configuration) -> None:
        """A configuration during which the machine went down twice is not tried a third time."""
        failure = Failure("machine", "the machine went down twice while this configuration was in force")
        running = Trial(
            self.run.next_number(), configuration, Purpose.SEARCH, TrialState.RUNNING, origin=Origin.RETRY
        )
        self.run.start_trial(running)
        self._keep(msgspec.structs.replace(running, state=TrialState.QUARANTINED, failure=failure))

    def _keep(self, trial: Trial) -> None:
        self.run.finish_trial(trial)
        self.trials.append(trial)


def _limited(enough_s: float) -> dict[str, float]:
    """The metric of a load that may end after so long: a run that goes on is told by it."""
    return {_LIMIT: enough_s} if math.isfinite(enough_s) else {}


def _cost(prepared: PreparedStudy, configuration: Configuration) -> dict[str, float]:
    """The metric `change_cost_s`, where the study says what changes count for (Cao 9.4: weights of costs).

    It is that of the dearest change from the default: what moving to this configuration takes once, whatever
    was tried before it.
    """
    costs, space = change_costs_s(prepared.study.space), prepared.space
    if not costs:
        return {}
    changed = space.change(space.default(), configuration).parameters
    return {"change_cost_s": max((costs.get(space[name].cost, 0.0) for name in changed), default=0.0)}


@contextmanager
def take_up(
    prepared: PreparedStudy, history: History, *, resume: bool | Run, listener: Listener
) -> Generator[Campaign]:
    """Enter a prepared's target and begin a run on it, or resume one; leaving puts everything back.

    Args:
        prepared: the study's system, not entered.
        history: the history that keeps the run.
        resume: whether the latest run of the study goes on; or the run that does, where it is this machine's:
            on another one, a run begins.
        listener: told of everything that happens.

    Raises:
        InputError: the machine does not allow it, or there is nothing to resume; nothing was touched. Or the
            first trial showed that a formula names a metric that the load does not report; the run is
            removed again.
        Refused: a safety rule said no.
    """
    with entering(prepared.target):
        entered = prepared.entered()
        study = prepared.study
        machine = entered.valid_for()
        which = None if isinstance(resume, bool) else resume
        if which is not None and machine_difference(which.machine, machine):
            resume = False
        if resume:
            run = history.resume(study, machine, which)
        else:
            run = history.begin(study, entered.space, machine)
        try:
            with run:
                yield Campaign(entered, run, listener)
        except InputError:
            # Only the first trial shows which metrics there are: a run that ended there holds nothing.
            if not any(trial.state is TrialState.COMPLETE for trial in run.trials(readings=False)):
                history.purge([run.id])
            raise
