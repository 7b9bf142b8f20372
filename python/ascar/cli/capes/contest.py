"""`ascar capes contest`: which learner converges sooner, and stays nearer the ideal."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Algorithms, Confidence, Delay, Game, Json, NoiseSd, Quiet, Runs, Seed

EXAMPLES = examples(
    "ascar capes contest --noise-sd 50% --runs 20",
    "ascar capes contest --algorithms modern,classic --game thesis      classic needs the extra drl",
)


def contest(
    algorithms: Algorithms = "modern,sweep,random",
    noise: NoiseSd = "10%",
    delay: Delay = 3,
    runs: Runs = 10,
    kind: Game = "hard",
    confidence: Confidence = 0.95,
    seed: Seed = 1,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Let learners play the same games of StorageGameSim, and compare the first with each of the others.

    The games are those of `ascar capes game`. Learners are compared by the share of the ticks of a run in
    which the throughput was within 10% of the ideal, game by game. The level is divided by the number of
    comparisons, so that all intervals hold together.
    """
    from ascar.threads import compute_on_one_thread

    compute_on_one_thread()
    from ascar.capes.environments.contest import LearnerContest
    from ascar.capes.environments.game import TICKS
    from ascar.capes.environments.records import play_each
    from ascar.cli.capes.contest_result import chosen, print_records, share
    from ascar.cli.capes.progress import showing
    from ascar.cli.contenders import contenders_table
    from ascar.cli.output import emit, people
    from ascar.names import names_of
    from ascar.results.contest import CapesContestResult

    noise_sd = share(noise)
    played = [
        LearnerContest(*chosen(kind, name, option="--algorithms"), noise_sd, delay, runs, seed)
        for name in names_of("--algorithms", algorithms)
    ]
    with showing(quiet=quiet) as listener:
        records, contenders = play_each(played, confidence, listener)
    if json:
        result = CapesContestResult(
            noise=noise_sd,
            delay=delay,
            game=played[0].game,
            runs=runs,
            ticks_limit=TICKS,
            confidence=confidence,
            records=records,
            contenders=contenders,
        )
        emit("capes-contest", result)
        return 0
    print_records(people(), records, played[0])
    people().print(contenders_table(contenders, "share of ticks near the ideal"))
    return 0
