"""`ascar capes train`: the learner of a session."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Check, Config, Histories, Json, OnlyHistory, Quiet, Steps

EXAMPLES = examples(
    "ascar capes train --config learner.toml",
    "ascar capes train --config learner.toml --check                     is the file right?",
    "ascar capes train --config learner.toml --only-history              learn, save, turn nothing",
    "ascar capes train --config learner.toml --only-history --steps 5000",
)


def train(
    config: Config,
    check: Check = False,
    only_history: OnlyHistory = False,
    steps: Steps = None,
    history: Histories = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Tune a running system: hear its ticks, decide, send actions, until SIGTERM or Ctrl-C.

    Goes on from its state, which it writes now and then and at its end. Knobs stay as they are when it ends.
    """
    from ascar.threads import compute_on_one_thread

    compute_on_one_thread()
    from ascar.capes.process.learner_file import read_plan
    from ascar.cli.capes.train_run import live, replayed
    from ascar.errors import InputError

    plan = read_plan(config)
    if steps is not None and not (only_history and plan.file.algorithm == "classic"):
        raise InputError("--steps: applies only to --only-history with algorithm = 'classic'; leave it out")
    if check:
        return 0
    if only_history:
        return replayed(plan, tuple(history or ()), steps, quiet=quiet, json=json)
    return live(plan, tuple(history or ()), quiet=quiet, json=json)
