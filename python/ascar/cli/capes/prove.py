"""`ascar capes prove`: what a session gains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.cli.epilog import examples
from ascar.cli.options import Budget, Confidence, Json, OneSession, Phase, Quiet, Seed, Settle

if TYPE_CHECKING:
    from ascar.capes.session.folder import Folder
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
    from ascar.cli.capes.up_result import proof_lines
    from ascar.cli.output import emit, people, say
    from ascar.cli.statuses import decided
    from ascar.errors import InputError, WorkError
    from ascar.study import duration as seconds_of

    if not 0.5 <= confidence <= 1 - 1e-6:
        raise InputError(f"--confidence = {confidence!r}: must be from 0.5 to 0.999999, e.g. 0.95")
    folder = find_folder(session)
    times = [
        seconds_of(key, text)
        for key, text in (("--budget", duration), ("--phase", phase), ("--settle", settle))
    ]

    def told(proof: Proof) -> None:
        if not quiet:
            from ascar.capes.session.proof import line_of

            say(line_of(proof))

    proof = _run(folder, times, (1 - confidence, seed), told)
    if not proof.pairs:
        raise WorkError("not one pair of phases was over; give more time with --budget")
    if json:
        from ascar.results.capes import CapesProveResult
        from ascar.results.encode import extended

        emit("capes-prove", extended(CapesProveResult, proof))
    else:
        for line in proof_lines(proof):
            people().print(line, markup=False)
    return decided(proof.claim != "none")


def _run(folder: Folder, times: list[float], terms: tuple[float, int], told: Any) -> Proof:
    import asyncio

    from ascar.capes.messages.bus import Bus
    from ascar.capes.messages.state import SessionState
    from ascar.capes.session.best_setting import Record
    from ascar.capes.session.messenger import Messenger
    from ascar.capes.session.phase_turns import Alternation, PhaseTurns
    from ascar.errors import InputError
    from ascar.messaging import run_interruptible
    from ascar.objective import Objective

    for_s, phase_s, settle_s = times
    if phase_s < settle_s + 3 or for_s < 2 * phase_s:
        raise InputError(
            f"--phase = {phase_s:g} s: must be at least 3 s longer than --settle = {settle_s:g} s, and at "
            f"most half of --budget = {for_s:g} s"
        )
    running = folder.runner()
    settings = folder.settings("session")

    async def work() -> Proof:
        async with await Bus.open(settings, running.session, name="ascar capes prove") as bus:
            state = SessionState(running.session)
            messenger = Messenger(bus, "", 1.0, None, dict, Record(1), state)
            listening = asyncio.create_task(messenger.listen())
            try:
                async with asyncio.timeout(20):
                    while messenger.state.tick is None or messenger.state.objective is None:
                        await messenger.next_tick(1.0)
                objective = Objective.parse(messenger.state.objective)
                messenger.record.sign = objective.sign
                turns = PhaseTurns(objective, phase_s, settle_s, *terms)
                alternation = Alternation(messenger, turns, "ascar capes prove", told)
                try:
                    async with asyncio.timeout(for_s):
                        await alternation.run()
                except TimeoutError:
                    pass
                finally:
                    await alternation.back_to_tuning()
                return alternation.proof
            finally:
                listening.cancel()

    return run_interruptible(work())
