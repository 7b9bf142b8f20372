"""`ascar verify`: the last comparison of a run alone."""

from __future__ import annotations

import shlex
from pathlib import Path

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Against,
    AllowLive,
    BudgetOrNone,
    ConfigurationFile,
    FormatDevices,
    Json,
    Quiet,
    StudyOrRun,
    TrialNumber,
)

EXAMPLES = examples(
    "ascar verify mailserver --budget '20 min'",
    "ascar verify 3 --trial 17                     another configuration than the best found",
    "ascar verify 3 --configuration chosen.json    one that `ascar explore` saved",
    "ascar verify 3 --trial 17 --against 9         two configurations of the run",
)


def verify(
    run: StudyOrRun,
    trial: TrialNumber = None,
    configuration: ConfigurationFile = None,
    against: Against = "default",
    budget: BudgetOrNone = None,
    format_device: FormatDevices = None,
    allow_live: AllowLive = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Compare a configuration of a run with the default, in turns, and record the verdict.

    The comparison goes on with the pairs of runs that the run has. On another machine it begins anew, as a
    run of its own. Without --trial and --configuration, the best found is compared. Without --budget, it may
    take as long as the study.

    Exit status: 0 decided, 1 the work failed, 2 bad input (nothing was touched), 3 undecided (scripts read
    verdict.kind), 130 interrupted; then everything was put back, and the same command goes on.
    """
    from ascar.cli.interrupts import resumable
    from ascar.cli.process_age import start_s
    from ascar.cli.progress import showing
    from ascar.cli.statuses import decided
    from ascar.cli.studies import (
        Confirmed,
        compared_configuration,
        find_run,
        is_study_file,
        read_study,
        reference_trial,
        study_of_run,
    )
    from ascar.cli.tune import show_outcome
    from ascar.history import History
    from ascar.loops.offline import verify as run_comparison

    with History() as history:
        found = find_run(history, run)
        confirmed = Confirmed(format_device, allow_live)
        if is_study_file(run):
            study = read_study(Path(run), budget, confirmed)
        else:
            study = study_of_run(found, budget, confirmed)
        candidate = compared_configuration(found, trial, configuration)
        reference = reference_trial(found, against)
        compared = {"--trial": trial, "--configuration": configuration}
        named = {**compared, "--against": None if reference is None else against}
        words = [word for name, value in named.items() if value is not None for word in (name, str(value))]
        same = shlex.join(["verify", str(run), *words])
        with resumable(same), showing(study.objective, quiet=quiet) as listener:
            outcome = run_comparison(
                study,
                history,
                found,
                candidate,
                against=reference,
                listener=listener,
                spent_s=start_s(),
            )
        show_outcome(outcome, history, "verify", as_json=json)
    return decided(outcome.verdict.is_decided)
