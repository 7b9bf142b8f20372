"""`ascar drift`: is a configuration still in force, and still better than the default?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import (
    AllowLive,
    BudgetOrNone,
    ConfigurationFile,
    Device,
    FormatDevices,
    Json,
    Measure,
    Mountpoint,
    Quiet,
    ServerFile,
    StudyOrRun,
    TrialNumber,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ascar.history import History, Run
    from ascar.results.machine import ConfigurationDrift
    from ascar.results.outcome import Outcome
    from ascar.space import Configuration
    from ascar.study import Study

EXAMPLES = examples(
    "ascar drift mailserver --mountpoint /srv/mail",
    "ascar drift 3 --trial 17                      another configuration than the recommended one",
    "ascar drift 3 --measure --budget '20 min'     is it still better than the default?",
    "ascar drift 3 --json | jq '.settings[] | select(.in_force | not)'",
)


def drift(
    run: StudyOrRun,
    device: Device = None,
    mountpoint: Mountpoint = None,
    trial: TrialNumber = None,
    configuration: ConfigurationFile = None,
    server: ServerFile = None,
    measure: Measure = False,
    budget: BudgetOrNone = None,
    format_device: FormatDevices = None,
    allow_live: AllowLive = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Say whether the recommended configuration is still in force, value by value, and what is instead.

    Reads the machine and changes nothing. With --measure, the configuration and the default that the run
    began with are compared in turns, as by `ascar verify`, with new runs alone. The study's load runs, and
    afterwards everything is put back as it was. The pairs are kept in the run.

    Exit status: 0 decided (scripts read in_force and verdict.kind), 1 the work failed, 2 bad input (nothing
    was touched), 3 what can be read is in force and some of it cannot be read, or --measure ends undecided,
    130 interrupted.
    """
    from ascar.application import drift_of, owner_of
    from ascar.cli.output import emit, people
    from ascar.cli.statuses import decided
    from ascar.cli.studies import (
        Confirmed,
        configuration_of,
        find_run,
        is_study_file,
        read_study,
        study_of_run,
        target_tables,
    )
    from ascar.errors import InputError
    from ascar.history import History
    from ascar.results.machine import DriftResult
    from ascar.systems.applied import unconfirmed
    from ascar.systems.place import Place

    if budget is not None and not measure:
        raise InputError(f"--budget = {budget!r}: is for the comparison; give --measure too, or leave it out")
    if server is not None and measure:
        raise InputError("--server: is not allowed with --measure, which loads the target of the study")
    place = Place.named(device, mountpoint)
    with History() if measure else History.existing() as history:
        found = find_run(history, run)
        chosen = configuration_of(found, trial, configuration)
        target, _ = target_tables(found, server, None)
        drifted = drift_of(found, target, chosen, place)
        waits = any(one.owner == owner_of(found) for one in unconfirmed())
        outcome = None
        if not json:
            _print(people(), drifted)
        if measure:
            confirmed = Confirmed(format_device, allow_live)
            if is_study_file(run):
                study = read_study(Path(run), budget, confirmed)
            else:
                study = study_of_run(found, budget, confirmed)
            outcome = _measured(study, history, found, chosen, quiet=quiet)
    verdict = None if outcome is None else outcome.verdict
    if json:
        result = DriftResult(
            run_id=found.id,
            in_force=drifted.in_force,
            settings=drifted.settings,
            not_read=drifted.not_read,
            warnings=drifted.warnings,
            unconfirmed=waits,
            verdict=verdict,
        )
        emit("drift", result)
    elif outcome is not None:
        from ascar.cli.summary import verdict_line

        people().print(verdict_line(outcome, found.objective), soft_wrap=True, markup=False)
        people().print(f"  {outcome.verdict.note}", style="dim", soft_wrap=True, markup=False)
    return decided(drifted.in_force is not None and (verdict is None or verdict.is_decided))


def _measured(
    study: Study, history: History, run: Run, configuration: Configuration, *, quiet: bool
) -> Outcome:
    """The comparison with the default that the run began with: the one in force may be the configuration."""
    from ascar.cli.process_age import start_s
    from ascar.cli.progress import showing
    from ascar.errors import InputError
    from ascar.loops.offline import verify
    from ascar.results.trial import Purpose

    defaults = [one for one in run.trials(readings=False) if one.purpose is Purpose.DEFAULT]
    if not defaults or defaults[0].configuration == configuration:
        raise InputError(
            f"run {run.id}: this is its default, so there is nothing to compare; name a configuration with "
            "--trial or --configuration"
        )
    with showing(study.objective, quiet=quiet) as listener:
        return verify(
            study,
            history,
            run,
            configuration,
            against=defaults[0],
            afresh=True,
            listener=listener,
            spent_s=start_s(),
        )


def _print(console: Console, drifted: ConfigurationDrift) -> None:
    for warning in drifted.warnings:
        console.print(f"warning: {warning}", style="yellow", soft_wrap=True, markup=False)
    changed = [one for one in drifted.settings if not one.in_force]
    kept = len(drifted.settings) - len(changed)
    if drifted.settings:
        console.print(f"in force: {kept} of {len(drifted.settings)} values that were read")
    elif not drifted.not_read:
        console.print("nothing to read: this is the default configuration")
    for one in changed:
        console.print(
            f"  {one.parameter}: wanted {one.wanted}, found {one.found}",
            style="yellow",
            soft_wrap=True,
            markup=False,
        )
    for rest in drifted.not_read:
        console.print(f"not read ({', '.join(rest.parameters)}): {rest.why}", soft_wrap=True, markup=False)
