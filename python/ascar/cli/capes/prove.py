"""`ascar capes prove`: what a session gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import Budget, Confidence, Json, OneSession, Phase, Quiet, Seed, Settle

if TYPE_CHECKING:
    from ascar.results.session import Proof

EXAMPLES = examples(
    "ascar capes prove --budget 30min",
    "ascar capes prove localfs --budget '10 min' --phase '20 s' --json",
)


def prove(
    session: OneSession = None,
    duration: Budget = "30 min",
    phase: Phase = "45 s",
    settle: Settle = "6 s",
    confidence: Confidence = 0.95,
    seed: Seed = 1,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Compare a session that runs with its baseline: phases with and without tuning, in turns.

    In a baseline phase every knob stands where it stood before the session and the learner may not act; in a
    tuned phase it goes on from where it was. Afterwards it goes on tuning.

    Exit status: 0 a gain or a loss is shown, 3 nothing can be claimed, 1 the session does not answer.
    """
    from ascar.capes.session.folder import find_folder
    from ascar.capes.session.live_proof import ProofTimes, prove_live
    from ascar.cli.capes.up_result import proof_lines
    from ascar.cli.output import emit, people, say
    from ascar.cli.statuses import decided
    from ascar.errors import InputError
    from ascar.messaging import run_interruptible
    from ascar.study import duration as seconds_of

    if not 0.5 <= confidence <= 1 - 1e-6:
        raise InputError(f"--confidence = {confidence!r}: must be from 0.5 to 0.999999, e.g. 0.95")
    folder = find_folder(session)
    times = ProofTimes(
        seconds_of("--budget", duration), seconds_of("--phase", phase), seconds_of("--settle", settle)
    )

    def told(proof: Proof) -> None:
        if not quiet:
            from ascar.capes.session.proof import line_of

            say(line_of(proof))

    running, test = folder.runner(), (1 - confidence, seed)
    proof = run_interruptible(prove_live(folder.settings("session"), running.session, times, test, told))
    if json:
        from ascar.results.capes import CapesProveResult
        from ascar.results.encode import extended

        emit("capes-prove", extended(CapesProveResult, proof))
    else:
        for line in proof_lines(proof):
            people().print(line, markup=False)
    return decided(proof.claim != "none")
