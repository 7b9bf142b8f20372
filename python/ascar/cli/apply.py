"""`ascar apply`: put a configuration in force, as far as that can be undone; the rest is printed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ascar.cli.epilog import examples
from ascar.cli.options import (
    AllowLives,
    CanaryTime,
    ConfigurationFile,
    ConfirmWithin,
    Device,
    DryRun,
    Json,
    Mountpoint,
    Quiet,
    ServerFiles,
    StudyOrRun,
    TrialNumber,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from ascar.canary import CanaryStanding
    from ascar.history import Run
    from ascar.study import GuardSection
    from ascar.systems import Placement

EXAMPLES = examples(
    "ascar apply mailserver --dry-run --mountpoint /srv/mail",
    "ascar apply mailserver --mountpoint /srv/mail",
    "ascar apply mailserver --mountpoint /srv/mail --confirm '10 min'      until `ascar confirm mailserver`",
    "ascar apply mailserver --configuration configuration.json      what `ascar explore` saved",
    "ascar apply shop --server live.toml --allow-live 127.0.0.1:5432/main      on a server that people use",
    "ascar apply shop --server a.toml --server b.toml --allow-live db1:5432/shop --allow-live db2:5432/shop "
    "--canary '10 min'      a goes first",
    "ascar apply 3 --device /dev/sdb --trial 17      a trial's configuration instead of the recommended one",
)


def apply(
    run: StudyOrRun,
    dry_run: DryRun = False,
    device: Device = None,
    mountpoint: Mountpoint = None,
    confirm: ConfirmWithin = None,
    canary: CanaryTime = None,
    trial: TrialNumber = None,
    configuration: ConfigurationFile = None,
    server: ServerFiles = None,
    allow_live: AllowLives = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Put the recommended configuration in force: what can be changed while everything runs.

    Settings of the kernel stay until `ascar restore` or a reboot, and those of a service's files until
    `ascar restore`. A server that people use is set while it works, if --allow-live names it. What needs a
    remount, an unmount, a new file system or a new start of a server is printed, never done. Warns where this
    machine is not the one that the result is valid for.

    With --confirm, everything is put back when the time is over, unless `ascar confirm` comes first. This
    holds if ascar is killed, the terminal is closed, or the machine reboots.

    With --canary, servers are set one after the other, in the order of --server, while the limits of [guard]
    in their files are watched. A limit that is broken, a server that dies, and an interruption put all of
    them back. --confirm then waits for a person.
    """
    from ascar.application import carry_out, planned
    from ascar.canary import CANARY_MAX_S, CANARY_MIN_S, Canary, GuardedServer
    from ascar.cli.output import emit, people
    from ascar.cli.progress_line import AFTER_TWO_SECONDS, progress_line
    from ascar.cli.studies import configuration_of, find_run
    from ascar.history import History
    from ascar.results.machine import ApplyResult
    from ascar.systems import Placement
    from ascar.systems.confirmation import CONFIRM_MAX_S, CONFIRM_MIN_S
    from ascar.systems.keeper import Hold
    from ascar.systems.place import Place

    confirm_s = _seconds("--confirm", confirm, (CONFIRM_MIN_S, CONFIRM_MAX_S), "from 1 s to 7 d")
    canary_s = _seconds("--canary", canary, (CANARY_MIN_S, CANARY_MAX_S), "from 1 s to 24 h")
    place = Place.named(device, mountpoint)
    with History.existing() as history:
        found = find_run(history, run)
        chosen = configuration_of(found, trial, configuration)
        tables = _tables(found, server or (), allow_live or (), canary)
        servers = [GuardedServer(one, guard, planned(found, one, chosen, place)) for one, guard in tables]
        placement = Placement.joined([one.placement for one in servers])
        if canary_s is not None:
            turns = Canary(found, chosen, servers, canary_s, Hold(confirm_s))
            if dry_run:
                turns.check()
            else:
                with progress_line(_standing, first_s=AFTER_TWO_SECONDS, quiet=quiet or json) as show:
                    turns.carry_out(show)
        elif not dry_run:
            carry_out(found, servers[0].target, chosen, placement, confirm_s)
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


def _tables(
    run: Run, files: Sequence[Path], names: Sequence[str], canary: str | None
) -> list[tuple[Mapping[str, Any], GuardSection]]:
    """`[target]` and `[guard]` of each server, in the order of the command line.

    Raises:
        InputError: several servers are named without --canary, or one of two names is missing.
        AscarError: as `target_tables`.
    """
    from ascar.cli.studies import target_tables
    from ascar.errors import InputError
    from ascar.render import count

    if len(files) > 1 and canary is None:
        raise InputError(
            f"--server: names {len(files)} files; give --canary DURATION: one goes first and is watched"
        )
    servers = max(1, len(files))
    if names and len(names) != servers:
        raise InputError(
            f"--allow-live: is given {len(names)} times for {count(servers, 'server')}; give it once for each"
        )
    return [
        target_tables(run, file, name)
        for file, name in zip(files or (None,), names or [None] * servers, strict=True)
    ]


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


def _seconds(option: str, text: str | None, limits_s: tuple[float, float], allowed: str) -> float | None:
    from ascar.errors import InputError
    from ascar.study import duration

    if text is None:
        return None
    seconds, (least_s, most_s) = duration(option, text), limits_s
    if not least_s <= seconds <= most_s:
        raise InputError(f"{option} = {text!r}: must be {allowed}")
    return seconds


def _standing(now: CanaryStanding) -> str:
    from ascar.render import clock

    return f"{now.name}: its limits hold; {now.number} of {now.servers}, {clock(now.left_s)} left"


def _stays(run_id: int, until_unix_s: int | None) -> str:
    if until_unix_s is None:
        return "`ascar restore` puts back what was there"
    until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(until_unix_s))
    return f"put back at {until} unless you confirm it: ascar confirm {run_id}"
