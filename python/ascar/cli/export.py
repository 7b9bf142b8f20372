"""`ascar export`: a configuration as commands and files for an administrator."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import As, ConfigurationFile, Json, StudyOrRun, TrialNumber

EXAMPLES = examples(
    "ascar export mailserver --as shell",
    "ascar export 3 --as sysctl > /etc/sysctl.d/90-ascar.conf",
    "ascar export 3 --as ansible > postgresql.yml",
    "ascar export 3 --as fstab --trial 17      a trial's configuration instead of the recommended one",
)


def export(
    run: StudyOrRun,
    form: As = "shell",
    trial: TrialNumber = None,
    configuration: ConfigurationFile = None,
    json: Json = False,
) -> int:
    """Print the recommended configuration as an administrator can use it.

    As shell commands, files of the system (sysctl.d, udev, fstab, TuneD, postgresql.conf, redis.conf,
    an OPTIONS file of RocksDB), statements, commands for ceph, Patroni's dynamic configuration or a playbook
    of Ansible: what differs from the defaults that the study found; the rest is nobody's choice, and left
    out. Nothing is run.
    """
    from ascar.cli.output import emit, people
    from ascar.cli.studies import configuration_of, find_run
    from ascar.history import History
    from ascar.results.machine import ExportResult
    from ascar.systems import commands_of

    with History.existing() as history:
        found = find_run(history, run)
        values = configuration_of(found, trial, configuration)
        chosen = found.space.departures(values)
        target, notes = found.study.target, found.origin_notes
        lines = list(commands_of(target, found.space, values, chosen, notes=notes).get(form, []))
    if json:
        result = ExportResult(
            run_id=found.id, form=form, configuration=values, chosen=tuple(chosen), lines=tuple(lines)
        )
        emit("export", result)
    elif lines:
        people().out("\n".join(lines))
    elif chosen:
        people().out(f"# nothing in this configuration can be said as {form}")
    else:
        people().out("# nothing to set: this is the default configuration")
    return 0
