"""A configuration put in force on this machine: what can be done at once, what is left to the user."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ascar.catalogues import kernel_setting
from ascar.errors import Refused
from ascar.systems import Adopting, open_target, options_of, system_of
from ascar.systems.adapter import in_force
from ascar.systems.asking import apply_checked, entering
from ascar.systems.catalogue import check_known
from ascar.systems.holders import holder_of
from ascar.systems.keeper import Keeper
from ascar.systems.machine import describe_machine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ascar.history import Run
    from ascar.results.machine import AppliedSetting
    from ascar.space import Configuration
    from ascar.systems import Placement
    from ascar.systems.place import Place

# What the machine is described by, and what a difference is called.
_ALIKE = {
    "kernel": "kernel",
    "cpu": "processor",
    "cpus": "number of processors",
    "machine_memory_bytes": "memory in bytes",
    "virtual": "virtual machine",
}


def planned(run: Run, configuration: Configuration, place: Place) -> Placement:
    """What puts a run's configuration in force in a place. Reads the machine, changes nothing.

    Raises:
        EnvironmentLacks: the package of the system cannot be imported.
        InputError: the system does not have a parameter, or does not take its value.
        Refused: a study that is running holds a knob, so what is in force now is a trial's.
    """
    options = run.study.target
    check_known(options, run.space, configuration)
    found = system_of(options).placement(options_of(options), run.space, configuration, place)
    _refuse_held(found.settings)
    settings = tuple(one for one in found.settings if one.before != one.after)
    return replace(found, settings=settings, warnings=(*_differences(run), *found.warnings))


def carry_out(run: Run, configuration: Configuration, placement: Placement, owner: str) -> None:
    """Set what can be set at once, to stay until `ascar restore`.

    Settings of the kernel go through the keeper, the others through the system.

    Raises:
        EnvironmentLacks: no root, or no keeper.
        Refused: a study that is running holds a setting.
        WorkError: a setting could not be made; those made before it were put back.
    """
    of_kernel = [one for one in placement.settings if kernel_setting(one.knob) is not None]
    others = {one.parameter for one in placement.settings} - {one.parameter for one in of_kernel}
    if of_kernel:
        _set(of_kernel, owner)
    if others:
        system = open_target(run.study.target)
        system.keeps = True
        if isinstance(system, Adopting):
            system.adopt(run.space)
        with entering(system):
            wanted = {name: configuration[name] for name in others}
            apply_checked(system, run.space.validate({**in_force(system, run.space), **wanted}))


def _set(settings: Iterable[AppliedSetting], owner: str) -> None:
    with Keeper(owner, hold=True) as keeper:
        try:
            for setting in settings:
                value = int(setting.after) if setting.after.lstrip("-").isdecimal() else setting.after
                keeper.knob_write(setting.knob, value)
        except BaseException:
            keeper.restore()
            raise


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
