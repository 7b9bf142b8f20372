"""A configuration put in force on this machine: what can be done at once, what is left to the user."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ascar.catalogues import kernel_setting
from ascar.errors import Refused
from ascar.results.machine import UNKNOWN, ComparedSetting, ConfigurationDrift, NotRead
from ascar.systems import Adopting, Owned, open_target, options_of, system_of
from ascar.systems.adapter import in_force
from ascar.systems.asking import apply_checked, entering
from ascar.systems.catalogue import check_known
from ascar.systems.holders import holder_of
from ascar.systems.keeper import Hold, Keeper
from ascar.systems.machine import describe_machine

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping

    from ascar.history import Run
    from ascar.results.machine import AppliedSetting
    from ascar.space import Configuration, Space
    from ascar.systems import Placement, System
    from ascar.systems.place import Place

# What the machine is described by, and what a difference is called.
_ALIKE = {
    "kernel": "kernel",
    "cpu": "processor",
    "cpus": "number of processors",
    "machine_memory_bytes": "memory in bytes",
    "virtual": "virtual machine",
}
_ELSEWHERE = "machine: not compared with that of the result; the server is not known to be on this one"


def found_in_force(
    run: Run, target: Mapping[str, Any], configuration: Configuration, place: Place
) -> Placement:
    """A run's configuration beside what is in force in a place. Reads the machine, changes nothing.

    Args:
        run: the run.
        target: the `[target]` table of what takes the configuration: the run's own, or that of a server.
        configuration: its configuration.
        place: the device or mount point that the user named.

    Raises:
        EnvironmentLacks: the package of the system cannot be imported.
        InputError: the system does not have a parameter, or does not take its value.
        Refused: a study that is running holds a knob, so what is in force now is a trial's; or the run was
            imported, and its author's commands would be run.
    """
    check_known(target, run.space, configuration)
    if system_of(target).catalogue(options_of(target)) is None:  # its commands are the study's own
        run.check_made_here(f"read what `ascar export {run.id} --as shell` prints")
    found = system_of(target).placement(options_of(target), run.space, configuration, place)
    _refuse_held(found.settings)
    alike = _differences(run) if found.is_here else [_ELSEWHERE]
    return replace(found, warnings=(*alike, *found.warnings))


def planned(run: Run, target: Mapping[str, Any], configuration: Configuration, place: Place) -> Placement:
    """What puts a run's configuration in force in a place. Reads the machine, changes nothing.

    Raises:
        AscarError: as `found_in_force`.
    """
    found = found_in_force(run, target, configuration, place)
    settings = tuple(one for one in found.settings if one.before != one.after)
    return replace(found, settings=settings)


def drift_of(
    run: Run, target: Mapping[str, Any], configuration: Configuration, place: Place
) -> ConfigurationDrift:
    """Which values of a run's configuration are in force in a place, and which are not any more.

    Raises:
        AscarError: as `found_in_force`.
    """
    found = found_in_force(run, target, configuration, place)
    settings = tuple(
        ComparedSetting(one.parameter, one.knob, one.after, one.before, one.before == one.after)
        for one in found.settings
        if one.before != UNKNOWN
    )
    unknown = tuple(one.parameter for one in found.settings if one.before == UNKNOWN)
    silent = (NotRead(unknown, "the system does not tell the value in force"),) if unknown else ()
    left = tuple(NotRead(one.parameters, f"ascar does not set them: {one.why}") for one in found.left)
    return ConfigurationDrift(settings, (*silent, *left), found.warnings)


def owner_of(run: Run) -> str:
    """In whose name a run's configuration is put in force, and confirmed."""
    return f"apply {run.id} ({run.name})"


def carry_out(
    run: Run,
    target: Mapping[str, Any],
    configuration: Configuration,
    placement: Placement,
    confirm_s: float | None = None,
) -> None:
    """Set what can be set at once, to stay until `ascar restore`.

    Settings of the kernel go through the keeper, the others through the system.

    Args:
        run: the run.
        target: the `[target]` table of what takes the configuration.
        configuration: its configuration.
        placement: what is to be set.
        confirm_s: put everything back after this time, unless it is confirmed; None: it stays.

    Raises:
        EnvironmentLacks: no root, or no keeper.
        Refused: a study that is running holds a setting, or something else waits for its confirmation.
        WorkError: a setting could not be made; those made before it were put back.
    """
    of_kernel = [one for one in placement.settings if kernel_setting(one.knob) is not None]
    others = {one.parameter for one in placement.settings} - {one.parameter for one in of_kernel}
    hold = Hold(confirm_s)
    with ExitStack() as held:
        if of_kernel:
            _set(held.enter_context(Keeper(owner_of(run), hold=hold)), of_kernel)
        if others:
            system = open_target(target)
            held.enter_context(kept_by(system, owner_of(run), hold))
            apply_checked(system, prepared(system, run.space, configuration, others))


@contextmanager
def kept_by(system: System, owner: str, hold: Hold) -> Generator[None]:
    """Enter a system so that what is set stays when it is left, and is put back if it is left by an error.

    Args:
        system: the system, not yet entered.
        owner: in whose name it is held.
        hold: how long it stays.

    Raises:
        AscarError: as the system.
    """
    system.keeps = hold
    if isinstance(system, Owned):
        system.owner = owner
    with entering(system):
        yield


def prepared(
    system: System, space: Space, configuration: Configuration, names: Collection[str]
) -> Configuration:
    """What an entered system takes for some parameters, the others being as they are; changes nothing.

    Args:
        system: the system.
        space: the space of the run.
        configuration: the run's configuration.
        names: the parameters.

    Raises:
        Refused: the system must not change one of them.
        SpaceError: it cannot take them beside the values in force.
    """
    space = _space_on(system, space, names)
    if isinstance(system, Adopting):
        system.adopt(space)
    wanted = {name: configuration[name] for name in names}
    return space.validate({**in_force(system, space), **wanted})


def _space_on(system: System, space: Space, wanted: Collection[str]) -> Space:
    """The space in which parameters are set: the run's, or that of a system which works already."""
    if not system.works_already:
        return space
    present = system.space.permit_weaker(space.allow_weaker)
    return present.pin({name: value for name, value in present.default().items() if name not in wanted})


def _set(keeper: Keeper, settings: Iterable[AppliedSetting]) -> None:
    for setting in settings:
        value = int(setting.after) if setting.after.lstrip("-").isdecimal() else setting.after
        keeper.knob_write(setting.knob, value)


def _refuse_held(settings: Iterable[AppliedSetting]) -> None:
    for setting in settings:
        holder = holder_of([setting.knob])
        if holder is not None:
            raise Refused(
                f"{setting.knob}: is held by {holder}, so what is in force now, {setting.before}, is a "
                "trial's value and no setting of yours; wait for that study or stop it"
            )


def _differences(run: Run) -> Iterator[str]:
    here = describe_machine()
    for key, name in _ALIKE.items():
        there = run.machine.get(key)
        if there is not None and there != here.get(key):
            yield f"{name}: the result is valid for {there}, this machine has {here.get(key)}"
    stack = run.machine.get("device")
    iops = cast("dict[str, object]", stack).get("iops_max") if isinstance(stack, dict) else None
    if iops is not None:
        yield f"device: the result is valid for a volume limited to {iops} reads and writes a second"
