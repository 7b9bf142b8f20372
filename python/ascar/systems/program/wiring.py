"""Which parameter reaches the program by which way, and what a change of it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.catalogues import kernel_setting
from ascar.errors import StudyError
from ascar.space import ChangeCost
from ascar.systems.program.placeholders import check_names, names_in, names_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Space
    from ascar.systems.program.files import SettingsFile
    from ascar.systems.program.options import ProgramOptions

OURS = ("directory", "pid")
EACH = ("name", "value")
_OF_UNIT = {ChangeCost.DYN_APP: "reload-or-restart", ChangeCost.APP_RESTART: "restart"}


@dataclass(frozen=True, slots=True)
class Wiring:
    """The ways of the parameters of a study.

    Attributes:
        started: those in the words or the environment of `start`.
        filed: those in files.
        applied: those that `apply` sets, by its words or by name.
        by_name: those among them that nothing else names.
        commanded: those in `restart`.
    """

    started: frozenset[str]
    filed: frozenset[str]
    applied: frozenset[str]
    by_name: frozenset[str]
    commanded: frozenset[str]

    @classmethod
    def of(cls, options: ProgramOptions, files: Collection[SettingsFile], space: Space) -> Wiring:
        """The ways that a study gives its parameters.

        Raises:
            StudyError: a parameter has none, a name in braces means nothing, or a cost contradicts the way.
        """
        known = space.names
        for name in (*OURS, *EACH):
            if name in known:
                raise StudyError(
                    f"space.parameters.{name}: {{{name}}} has a meaning of its own here; name it otherwise"
                )
        for key, words in options.commands.items():
            own = EACH if key in ("apply", "check") else ()
            check_names(f"target.{key}", names_of(words), [*known, *OURS, *own])
        for name, text in options.environment.items():
            check_names(f"target.environment.{name}", names_in(text), [*known, *OURS])
        for file in files:
            for name, value in file.section.keys.items():
                check_names(f"{file.key}.keys.{name}", names_in(str(value)), [*known, *OURS])
        own = set(known)
        in_environment = {name for text in options.environment.values() for name in names_in(text)}
        started = (names_of(options.start) | in_environment) & own
        filed = {name for file in files for name in file.names(known)} & own
        commanded = {name for words in options.restart.values() for name in names_of(words)} & own
        told = names_of(options.apply) & own
        kernel = {one.name for one in space.parameters if kernel_setting(one.native) is not None}
        left = own - started - filed - commanded - told - kernel
        by_name = left if set(EACH) & names_of(options.apply) else set[str]()
        for name in sorted(left - by_name):
            raise StudyError(
                f"space.parameters.{name}: nothing in [target] names {{{name}}}; name it in a command, in "
                "`environment` or in a file, or set it by `apply` with {name} and {value}"
            )
        wiring = cls(*map(frozenset, (started, filed, told | by_name, by_name, commanded)))
        wiring.check_costs(options, space)
        return wiring

    def check_costs(self, options: ProgramOptions, space: Space) -> None:
        """See that no cost contradicts the way of its parameter.

        Raises:
            StudyError: one does.
        """
        if not options.start:
            return
        for one in space.parameters:
            key = f"space.parameters.{one.name}.cost = {one.cost.value!r}"
            if one.name in self.started and one.cost.category == 0:
                raise StudyError(
                    f"{key}: `start` or `environment` names it, so it must be 'app-restart' or more"
                )
            if one.name in self.applied - self.started - self.filed and one.cost.category > 0:
                raise StudyError(f"{key}: `apply` sets it while the program runs, so it must be 'dyn-app'")

    def needs_restart(self, changed: Collection[str], space: Space) -> ChangeCost | None:
        """The highest cost of the changes that the program does not take by `apply` alone; None: none."""
        costs = [
            space[name].cost
            for name in changed
            if name in self.started | self.filed | self.commanded
            or (name in self.applied and space[name].cost.category > 0)
        ]
        return max(costs, key=lambda cost: cost.rank, default=None)


def restart_of(cost: ChangeCost, options: ProgramOptions) -> tuple[str, str] | None:
    """What a change of a cost takes: ("restart", its key) for a command, ("unit", a verb), or nothing."""
    named: Mapping[ChangeCost, tuple[str, str]] = {
        **({known: ("unit", verb) for known, verb in _OF_UNIT.items()} if options.service else {}),
        **{ChangeCost(key): ("restart", key) for key in options.restart},
    }
    fitting = [known for known in named if known.rank <= cost.rank]
    return named[max(fitting, key=lambda known: known.rank)] if fitting else None
