"""`ascar capes game`: does the learner converge?"""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Algorithm, Delay, Game, Json, NoiseSd, Quiet, Runs, Seed

EXAMPLES = examples(
    "ascar capes game --noise-sd 50% --delay 3 --runs 20",
    "ascar capes game --noise-sd 0.1 --algorithm sweep          a sweep does not stay at the peak",
    "ascar capes game --noise-sd 0.1 --algorithm classic --game thesis",
)


def game(
    noise: NoiseSd = "10%",
    delay: Delay = 3,
    runs: Runs = 10,
    algorithm: Algorithm = "modern",
    kind: Game = "hard",
    seed: Seed = 1,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Let a learner play StorageGameSim, and say how often and how soon it converges.

    Two knobs, a window and a gap between requests, decide a throughput that is measured with noise and, as
    for the window, with a delay. A run takes 3,600 ticks of a second. In the hard game a run has converged at
    the first tick from which to the end at least 90% of the ticks are within 10% of the ideal, noise aside.
    """
    from ascar.threads import compute_on_one_thread

    compute_on_one_thread()
    from ascar.capes.environments.contest import LearnerContest, play
    from ascar.cli.capes.contest_result import chosen, print_contest, result_of, share
    from ascar.cli.capes.progress import showing
    from ascar.cli.output import emit, people

    contest = LearnerContest(*chosen(kind, algorithm), share(noise), delay, runs, seed)
    with showing(quiet=quiet) as listener:
        played = play(contest, listener)
    if json:
        emit("capes-game", result_of(contest, played))
    else:
        print_contest(people(), contest, played)
    return 0
