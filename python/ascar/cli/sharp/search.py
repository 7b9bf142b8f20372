"""`ascar sharp search`: rules for a workload, made by trying them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import (
    ActiveFiles,
    AlongOrNone,
    Also,
    BudgetOrNone,
    ClientGroup,
    Connection,
    ConstraintTexts,
    DurationOrNone,
    EvaluationsOrNone,
    FirstIn,
    Force,
    GroupRules,
    Json,
    Metadata,
    ObjectiveText,
    Out,
    Pairs,
    Patience,
    Quiet,
    RealRunsOrNone,
    Resume,
    RulesOrNone,
    ScenarioOrTestbedOrLive,
    ScenarioSettings,
    Schedule,
    SeedOrNone,
    Settle,
    Threads,
    WorkloadOrNone,
)
from ascar.cli.sim.options import scenario_of

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.sharp.task import Live

EXAMPLES = examples(
    "ascar sharp search random-write --evaluations 2000 --out rules.txt",
    "ascar sharp search scenario.toml --objective tp-stdev:1 --budget '10 min' --out rules.txt",
    "ascar sharp search scenario.toml --objective 'minimize latency_ms_p99' --out rules.txt --resume",
    "ascar sharp search scenario.toml --constraint 'group_share_min >= 0.95' --out rules.txt",
    "ascar sharp search read-ahead-cliff --active-files 1,2,4 --evaluations 200 --out turns.txt",
    "ascar sharp search random-write --also clients.count=20 --out sizes.txt",
    "ascar sharp search mixed.toml --client-group 2 --group-rules 1=readers.txt --out writers.txt",
    "ascar sharp search mdtest --metadata --out metadata.txt",
    "ascar sharp search mixed.toml --along pt_ratio,write_share,request_kib --out kinds.txt",
    "ascar sharp search measured.toml --first-in model.toml --evaluations 100 --out rules.txt",
    "ascar sharp search testbed.toml --budget '1 h' --out rules.txt     simulated first, then on the testbed",
    "ascar sharp search --workload writers --first-in model.toml --budget '2 h' --out rules.txt",
)
_LIVE_RUN, _SETTLE, _PAIRS = "20 s", "4 s", 20


def search(
    out: Out,
    scenario: ScenarioOrTestbedOrLive = None,
    objective: ObjectiveText = "throughput",
    constraint: ConstraintTexts = None,
    budget: BudgetOrNone = None,
    evaluations: EvaluationsOrNone = None,
    schedule: Schedule = "sharp",
    rules: RulesOrNone = None,
    patience: Patience = None,
    along: AlongOrNone = None,
    active_files: ActiveFiles = None,
    client_group: ClientGroup = None,
    metadata: Metadata = False,
    group_rules: GroupRules = None,
    also: Also = None,
    first_in: FirstIn = None,
    workload: WorkloadOrNone = None,
    connection: Connection = None,
    settle: Settle = _SETTLE,
    pairs: Pairs = _PAIRS,
    real_runs: RealRunsOrNone = None,
    resume: Resume = False,
    force: Force = False,
    seconds: DurationOrNone = None,
    seed: SeedOrNone = None,
    settings: ScenarioSettings = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Make a rule set for a workload (Li, algorithm 1), and compare it with the system as it is.

    Every run is written down in FILE.journal when it ends; after a kill, --resume goes on from there, to the
    same end. The last comparison is made on fresh seeds or intervals: "the default is fine" is a result too.

    No group of threads gets less than 90% of what it gets without rules, unless --constraint says otherwise;
    rules that break a constraint in the last comparison are not called better.

    Without SCENARIO rules are tried on the controllers of a workload, behind a message server, each in an
    interval of the system at work (20 s, or --duration); what was in force before is so again at the end:
    `ascar sharp deploy` puts what was found in force.

    With a testbed file (as `ascar testbed up` takes it) the search is made in the scenario of its disks. Then
    the testbed itself is started for each of --real-runs: some choose among the candidates and static
    windows, in the others the best of both and the default take turns. A run that fails is named, and the
    next goes on; all of the testbed is gone at the end.

    Exit status 3 when there was no last comparison, because too few runs were made or they had no score.
    """
    from ascar.threads import compute_on_one_thread

    compute_on_one_thread()
    from ascar.cli.file_output import check_new, write_new
    from ascar.cli.interrupts import Interrupted
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.found import print_found
    from ascar.cli.sharp.progress import showing
    from ascar.cli.sharp.search_plan import ends_of, plan_from
    from ascar.cli.sharp.system import followers_of, found_testbed, group_rules_of, scenario_or_live
    from ascar.cli.statuses import decided
    from ascar.errors import InputError
    from ascar.history import History
    from ascar.loops.rules import make_rules, make_rules_on_testbed
    from ascar.pilot.turns import PairTest
    from ascar.sharp import objective_of
    from ascar.sharp.metric_bounds import bounds_of
    from ascar.sharp.task import Task

    if resume and force:
        raise InputError("--resume with --force: give one of them; --force throws the journal away")
    plan = plan_from(schedule, rules, patience, active_files, along)
    if first_in is not None and plan.schedule != "sharp":
        raise InputError(f"--first-in with --schedule = {plan.schedule!r}: only 'sharp' has two phases")
    beyond_testbeds: dict[str, object] = {
        "--also": also,
        "--set": settings,
        "--client-group": client_group,
        "--metadata": metadata or None,
        "--group-rules": group_rules,
        "--first-in": first_in,
        "--workload": workload,
        "--connection": connection,
        "--schedule": None if plan.schedule == "sharp" else plan.schedule,
        "--settle": None if settle == _SETTLE else settle,
        "--pairs": None if pairs == _PAIRS else pairs,
    }
    testbed = found_testbed(scenario, others=beyond_testbeds, real_runs=real_runs, seconds=seconds, seed=seed)
    simulated = (
        scenario_or_live(
            scenario,
            simulated={
                "--also": also,
                "--set": settings,
                "--threads": threads,
                "--active-files": active_files,
                "--client-group": client_group,
                "--metadata": metadata or None,
                "--group-rules": group_rules,
            },
            live={"--workload": workload, "--connection": connection},
            seconds=seconds,
            seed=seed,
            settings=settings,
        )
        if testbed is None
        else testbed.scenario
    )
    followers = followers_of(client_group, metadata=metadata, active_files=active_files, start=plan.start)
    ruled = group_rules_of(group_rules or (), client_group, metadata=metadata)
    if simulated is not None:
        simulated = ruled(simulated)
    system = testbed or simulated or _live(workload, connection, (settle, seconds or _LIVE_RUN))
    task = Task(
        system=system,
        also=tuple(
            ruled(scenario_of(scenario or "", seconds, seed, [*(settings or ()), one])) for one in also or ()
        ),
        first_in=None
        if first_in is None
        else ruled(scenario_of(first_in, None if scenario is None else seconds, seed, None)),
        objective=objective_of(objective, followers),
        bounds=bounds_of(constraint),
        plan=plan,
        ends=ends_of(plan, budget, evaluations),
        test=PairTest(pairs_max=pairs),
        threads=threads,
        out=out,
        begin="resume" if resume else "anew" if force else "new",
        followers=followers,
    )
    check_new(task.out, force=task.begin != "new")
    try:
        with showing(quiet=quiet) as listener:
            if testbed is None:
                made = make_rules(task, History, listener)
            else:
                made = make_rules_on_testbed(task, testbed, History, listener)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; the runs that have ended are kept in {task.journal_path().name}; "
            "go on with the same command and --resume"
        ) from None
    if made.found.best is not None:
        write_new(out, made.found.best.observed.text(), force=True)
    if json:
        emit("sharp-search", made.result)
    else:
        print_found(people(), task, made)
        people().print(f"rules: {out}", soft_wrap=True, markup=False)
    return decided(made.verdict is not None and made.verdict.kind in ("improved", "default-is-fine"))


def _live(workload: str | None, connection: Path | None, times: tuple[str, str]) -> Live:
    from ascar.messaging import token
    from ascar.sharp.task import Live
    from ascar.study import duration

    if workload is not None:
        token("--workload", workload)
    settle, run = times
    return Live(
        name=workload or "controllers",
        workload=workload,
        connection=connection,
        settle_s=duration("--settle", settle),
        run_s=duration("--duration", run),
    )
