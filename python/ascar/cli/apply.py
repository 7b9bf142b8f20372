"""`ascar apply`: put a configuration in force, as far as that can be undone; the rest is printed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import (
    AllowLive,
    ConfigurationFile,
    ConfirmWithin,
    Device,
    DryRun,
    Json,
    Mountpoint,
    ServerFile,
    StudyOrRun,
    TrialNumber,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ascar.systems import Placement

EXAMPLES = examples(
    "ascar apply mailserver --dry-run --mountpoint /srv/mail",
    "ascar apply mailserver --mountpoint /srv/mail",
    "ascar apply mailserver --mountpoint /srv/mail --confirm '10 min'      until `ascar confirm mailserver`",
    "ascar apply mailserver --configuration configuration.json      what `ascar explore` saved",
    "ascar apply shop --server live.toml --allow-live 127.0.0.1:5432/main      on a server that people use",
    "ascar apply 3 --device /dev/sdb --trial 17      a trial's configuration instead of the recommended one",
)


def apply(
    run: StudyOrRun,
    dry_run: DryRun = False,
    device: Device = None,
    mountpoint: Mountpoint = None,
    confirm: ConfirmWithin = None,
    trial: TrialNumber = None,
    configuration: ConfigurationFile = None,
    server: ServerFile = None,
    allow_live: AllowLive = None,
    json: Json = False,
) -> int:
    """Put the recommended configuration in force: what can be changed while everything runs.

    Settings of the kernel stay until `ascar restore` or a reboot, and those of a service's files until
    `ascar restore`. A server that people use is set while it works, if --allow-live names it. What needs a
    remount, an unmount, a new file system or a new start of a server is printed, never done. Warns where this
    machine is not the one that the result is valid for.

    With --confirm, everything is put back when the time is over, unless `ascar confirm` comes first. This
    holds if ascar is killed, the terminal is closed, or the machine reboots.
    """
    from ascar.application import carry_out, planned
    from ascar.cli.output import emit, people
    from ascar.cli.studies import configuration_of, find_run, target_table
    from ascar.history import History
    from ascar.results.machine import ApplyResult
    from ascar.systems.place import Place

    confirm_s = None if confirm is None else _confirm_s(confirm)
    place = Place.named(device, mountpoint)
    with History.existing() as history:
        found = find_run(history, run)
        chosen = configuration_of(found, trial, configuration)
        target = target_table(found, server, allow_live)
        placement = planned(found, target, chosen, place)
        if not dry_run:
            carry_out(found, target, chosen, placement, confirm_s)
    awaited = confirm_s is not None and bool(placement.settings) and not dry_run
    until_unix_s = round(time.time() + confirm_s) if awaited and confirm_s is not None else None
    if json:
        result = ApplyResult(
            run_id=found.id,
            dry_run=dry_run,
            configuration=chosen,
            settings=placement.settings,
            left_to_you=placement.left,
            warnings=placement.warnings,
            until_unix_s=until_unix_s,
        )
        emit("apply", result)
    else:
        _print(people(), placement, dry_run=dry_run)
        if placement.settings and not dry_run:
            people().print(_stays(found.id, until_unix_s), soft_wrap=True, markup=False)
    return 0


def _print(console: Console, placement: Placement, *, dry_run: bool) -> None:
    for warning in placement.warnings:
        console.print(f"warning: {warning}", style="yellow", soft_wrap=True, markup=False)
    if placement.settings:
        console.print("would be set:" if dry_run else "set:")
    for setting in placement.settings:
        was = f"# {setting.parameter}, was {setting.before}"
        console.print(f"  {setting.command}    {was}", soft_wrap=True, markup=False)
    if not placement.settings:
        console.print("nothing to set: what can be set at once is in force already, or has no place here")
    for left in placement.left:
        console.print(f"left to you ({', '.join(left.parameters)}): {left.why}", soft_wrap=True, markup=False)
        for command in left.commands:
            console.print(f"  {command}", soft_wrap=True, markup=False)


def _confirm_s(text: str) -> float:
    from ascar.errors import InputError
    from ascar.study import duration
    from ascar.systems.confirmation import CONFIRM_MAX_S, CONFIRM_MIN_S

    seconds = duration("--confirm", text)
    if not CONFIRM_MIN_S <= seconds <= CONFIRM_MAX_S:
        raise InputError(f"--confirm = {text!r}: must be from 1 s to 7 d")
    return seconds


def _stays(run_id: int, until_unix_s: int | None) -> str:
    if until_unix_s is None:
        return "`ascar restore` puts back what was there"
    until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(until_unix_s))
    return f"put back at {until} unless you confirm it: ascar confirm {run_id}"
