"""What is tuned: systems that know their parameters, read them, set them, and put everything back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast, runtime_checkable

from ascar.extension import load
from ascar.quoting import comment
from ascar.space import ChangeCost
from ascar.systems.catalogue import ListedSetting, catalogue_of, check_known
from ascar.systems.placement import Placement
from ascar.systems.starter import Starter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from types import TracebackType

    from ascar.catalogues import KernelSetting
    from ascar.results.machine import Need
    from ascar.results.trial import Change
    from ascar.space import Configuration, Space, Value
    from ascar.study import GuardSection
    from ascar.systems.catalogue import KnownParameter
    from ascar.systems.keeper import Hold
    from ascar.systems.place import Place
    from ascar.workspace import Workspace

__all__ = [
    "DEFAULT_KIND",
    "Adopting",
    "Advising",
    "Announced",
    "Degradable",
    "Guarded",
    "Owned",
    "Placement",
    "Reusing",
    "Sample",
    "Starter",
    "System",
    "Target",
    "commands_of",
    "open_target",
    "options_of",
    "system_of",
]


@dataclass(frozen=True, slots=True)
class Sample:
    """What a system tells of itself at a moment; names end with the unit.

    Attributes:
        counters: totals that only grow (bytes, joules, CPU seconds); their differences become metrics.
        gauges: values as they are at this moment.
        deferred: work that was accepted and is still to be done: dirty pages, a write-ahead log since its
            last checkpoint, pending compactions. A system that names any must `drain` it.
    """

    counters: Mapping[str, float] = field(default_factory=dict[str, float])
    gauges: Mapping[str, float] = field(default_factory=dict[str, float])
    deferred: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Announced:
    """What a study may do to a system that people use.

    Attributes:
        statements: every statement that may be issued.
        rights: what the account needs for them, as statements that grant it.
        notes: what its trials leave out, and why, a line each.
    """

    statements: tuple[str, ...] = ()
    rights: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@runtime_checkable
class System(Protocol):
    """A system whose parameters can be read and set.

    A system is entered before it is touched and puts everything back when it is left, whatever the reason.
    Constructing one, from the study's `[target]` table without its kind, checks the options and touches
    nothing. A class that derives from this one inherits what is written here, and says the rest.
    """

    starter: ClassVar[Starter] = Starter()
    """What `ascar init` writes for this kind."""

    on_machine: ClassVar[bool] = True
    """Whether it is part of a machine; False for systems on paper, where nothing can be put in force."""

    changes_while_working: ClassVar[frozenset[ChangeCost]] = frozenset(
        {ChangeCost.DYN_KERNEL, ChangeCost.DYN_APP}
    )
    """The costs of changes that it takes while a load runs: what a session of online tuning sets."""

    initialises_lazily: ClassVar[bool | None] = None
    """Whether work that the change left behind disturbs the load; None: not known."""

    call_max_s: float = 1800.0
    """How long one call to it may take, e.g. to format a large device; what takes longer is interrupted."""

    keeps: bool | Hold = False
    """Whether what was applied stays when it is left, until `ascar restore`; `ascar apply` sets it before,
    and the system hands it to its keeper as `hold`."""

    space: Space
    """The catalogue: every parameter and every value it can take; the study may restrict it."""

    works_already: ClassVar[bool] = False
    """Whether it works for others before a study: once entered, its space's defaults are what is in force."""

    def __enter__(self) -> Self:
        """Take what is needed: locks, devices, directories."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put everything back."""
        ...

    @classmethod
    def variant(cls, options: Mapping[str, Any]) -> type[System]:  # noqa: ARG003
        """The class that serves a `[target]` table, where a kind has several.

        Args:
            options: the table without its kind.
        """
        return cls

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """Programs, rights and facilities of the kernel that this kind needs, found or not."""
        return ()

    @staticmethod
    def listed() -> Mapping[str, ListedSetting] | None:
        """Its settings by name, those of all versions; None: there is no list of them."""
        return None

    @classmethod
    def catalogue(cls, options: Mapping[str, Any]) -> Mapping[str, KnownParameter] | None:  # noqa: ARG003
        """What it has, by parameter, told without looking at the machine; None: what a study gives it.

        Where it has a list of settings, those are.

        A history from elsewhere is held against it before anything is exported or put in force.

        Args:
            options: the `[target]` table without its kind.
        """
        known = cls.listed()
        return None if known is None else catalogue_of(one.parameter() for one in known.values())

    @classmethod
    def offers(cls) -> Mapping[str, KernelSetting]:
        """The settings that its `[target]` table may name, by name, where a study has to choose them."""
        return {}

    def read(self, names: Collection[str]) -> Mapping[str, Value]:  # noqa: ARG002
        """The values in force, of those parameters that the system can be asked about."""
        return {}

    def apply(self, configuration: Configuration) -> Change:
        """Put a configuration in force.

        Raises:
            StageFailed: a step failed or ran out of time; the next configuration can be applied all the same.
        """
        ...

    def health(self, limit_s: float) -> None:  # noqa: ARG002
        """Wait until the system can serve a load.

        Raises:
            StageFailed: it cannot within `limit_s`.
        """
        return

    def sample(self) -> Sample:
        """Counters, gauges and deferred work at this moment."""
        return Sample()

    @property
    def sampled(self) -> frozenset[str] | None:
        """The names that `sample` may tell, known before the system is entered; None where they are not."""
        return frozenset() if type(self).sample is System.sample else None

    def drain(self, limit_s: float) -> None:  # noqa: ARG002
        """Do all of the deferred work now, at the pace that the system has under a load.

        Raises:
            StageFailed: it is not done within `limit_s`.
        """
        return

    def cycle_s(
        self,
        configuration: Configuration,  # noqa: ARG002
        metrics: Mapping[str, float],  # noqa: ARG002
    ) -> float:
        """Seconds after which a configuration has deferred work done at the latest; 0: it defers none.

        Args:
            configuration: the configuration.
            metrics: those of a trial of it: a cycle in units of work is as long as the load makes it.
        """
        return 0.0

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for: kernel, device stack, memory; JSON-ready."""
        ...

    def commands(
        self,
        configuration: Configuration,  # noqa: ARG002
        chosen: Collection[str],  # noqa: ARG002
    ) -> Mapping[str, list[str]]:
        """How an administrator would do it: lines by form, those that `ascar export --as` names.

        Args:
            configuration: the configuration to put in force.
            chosen: the parameters to speak of (see `Space.departures`); the others are the system's own
                defaults, and stay as they are. Forms with nothing to say are empty or missing.
        """
        return {}

    def announced(self, names: Collection[str]) -> Announced:  # noqa: ARG002
        """What a study that sets these parameters may do to a system that people use; nothing elsewhere."""
        return Announced()

    @classmethod
    def placement(
        cls,
        options: Mapping[str, Any],
        space: Space,
        configuration: Configuration,
        place: Place,  # noqa: ARG003
    ) -> Placement:
        """What `ascar apply` would do; by default it leaves everything to the user, with its commands.

        Args:
            options: the `[target]` table of the study, without its kind.
            space: the space of the study.
            configuration: the configuration to put in force.
            place: the device or mount point that the user named.
        """
        chosen = space.departures(configuration)
        if not chosen:
            return Placement()
        if not cls.on_machine:
            return Placement.by_hand(chosen, ())
        opened = cast("System", cast("Any", cls)(options))
        return Placement.by_hand(chosen, opened.commands(configuration, chosen).get("shell", []))


@runtime_checkable
class Target(System, Protocol):
    """A system that the offline loop evaluates: it has a workspace for a load, and settles after the fill."""

    default_workload: str | None
    """Workload kind for studies that name none; None where one must be named."""

    workloads: ClassVar[frozenset[str] | None] = None
    """The kinds of loads that run where its files are; None: any, for they are on this machine."""

    device: str | None = None
    """The kernel's name of the block device that it takes, while it is entered; None: none of its own."""

    takes_device_along: bool = False
    """Whether that device is made when it is entered, and goes when it is left."""

    left_to_agent: ClassVar[frozenset[str]] = frozenset()
    """Parameters that a session sets while the load runs: `apply` leaves them alone when they are missing."""

    @classmethod
    def for_session(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The `[target]` table of a session: what else runs on the machine must not be disturbed."""
        return options

    def settle(self) -> Mapping[str, float]:
        """After the fill, bring caches and layout to the same state each time; seconds by step."""
        return {}

    @property
    def workspace(self) -> Workspace:
        """Where the load runs; valid after `apply`."""
        ...


DEFAULT_KIND = "localfs"
"""The kind of a study whose `[target]` names none."""


@runtime_checkable
class Owned(Protocol):
    """A target that takes machine-wide locks, in the name of whoever runs it."""

    owner: str
    """What others who are refused a lock are told."""


@runtime_checkable
class Adopting(Protocol):
    """A target that does not know by itself what it costs to change a study's own parameters."""

    def adopt(self, space: Space) -> None:
        """Learn the study's space."""
        ...


@runtime_checkable
class Advising(Protocol):
    """A target whose manual advises values for a machine like this."""

    @property
    def advice(self) -> Mapping[str, Value]:
        """The advised values by parameter, also of parameters that the study does not search."""
        ...


@runtime_checkable
class Guarded(Protocol):
    """A target that keeps the limits of `[guard]` by itself, within seconds, while a load runs."""

    def guard_by(self, guard: GuardSection) -> None:
        """Keep these limits; called before the target is entered.

        Raises:
            StudyError: a limit cannot be kept.
        """
        ...

    @property
    def violation(self) -> str | None:
        """The limit that the configuration violated, so that the old values were put back; or None."""
        ...


@runtime_checkable
class Degradable(Protocol):
    """A target of which a part can fail while a load runs, so that a study may bound what clients notice."""

    call_max_s: float
    """As of every system."""

    @property
    def degraded_s(self) -> float:
        """Seconds for which the load of each trial runs once more during a failure; 0: there is none."""
        ...

    def degrade(self) -> None:
        """Make the part fail.

        Raises:
            StageFailed: it cannot be done.
        """
        ...

    def repair(self) -> None:
        """Start the part again, and do not wait for it: the load runs on.

        Raises:
            StageFailed: it does not start.
        """
        ...

    def recover(self) -> None:
        """Wait until all is as before the failure, or for as long as the study waits.

        Raises:
            StageFailed: the part does not come back.
        """
        ...


@runtime_checkable
class Reusing(Protocol):
    """A target that can leave a trial the state that the one before left: faster, and biased by age."""

    @property
    def reuses_state(self) -> bool:
        """Whether it does so in this study."""
        ...

    def start_afresh(self) -> None:
        """Make the next configuration start from a newly made state all the same."""
        ...


def open_target(options: Mapping[str, Any]) -> Target:
    """The target that a study's `[target]` table asks for, not yet entered.

    Args:
        options: the table; "kind" says which, the other keys are that kind's own.

    Raises:
        StudyError: unknown kind, or a key of the table is wrong.
        EnvironmentLacks: the machine lacks what it needs.
    """
    return cast("Target", cast("Any", system_of(options))(options_of(options)))


def commands_of(
    options: Mapping[str, Any],
    space: Space,
    configuration: Configuration,
    chosen: Collection[str],
    *,
    notes: Iterable[str] = (),
) -> Mapping[str, list[str]]:
    """How an administrator would put a configuration of a study in force; see `System.commands`.

    Args:
        options: the `[target]` table.
        space: the study's space.
        configuration: the configuration to put in force.
        chosen: the parameters to speak of.
        notes: comments in front of a shell's lines, where there are any.

    Raises:
        StudyError: unknown kind, or a key of the table is wrong.
        InputError: the system has no such parameter, or a value cannot be written so that it stays one.
        EnvironmentLacks: the machine lacks what the system needs.
    """
    check_known(options, space, configuration)
    system = open_target(options)
    if isinstance(system, Adopting):
        system.adopt(space)
    commands = dict(system.commands(configuration, chosen))
    if shell := commands.get("shell"):
        commands["shell"] = [*map(comment, notes), *shell]
    return commands


def system_of(options: Mapping[str, Any]) -> type[System]:
    """The class of the system that a study's `[target]` table names.

    Raises:
        StudyError: unknown kind.
        EnvironmentLacks: the package of the kind cannot be imported.
    """
    kind = str(options.get("kind", DEFAULT_KIND))
    if kind == "function":  # which only Python can name, so that it is not an entry point
        from ascar.systems.function import PythonFunction

        return PythonFunction
    return load("ascar.systems", kind, "target.kind").variant(options)


def options_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a `[target]` table that are the kind's own."""
    return {key: value for key, value in options.items() if key != "kind"}
