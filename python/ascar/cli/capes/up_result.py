"""What came of a session, for people and as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.render import compact, count, duration, percentage, plain

if TYPE_CHECKING:
    from rich.console import Console

    from ascar.results.session import Proof, SessionOutcome


def deliver(ended: SessionOutcome, *, as_json: bool) -> None:
    """Print it."""
    from ascar.cli.output import emit, people, say
    from ascar.results.capes import CapesUpResult
    from ascar.results.encode import extended

    if as_json:
        emit("capes-up", extended(CapesUpResult, ended))
    else:
        print_session(people(), ended)
    for key, value in ended.left_changed.items():
        say(f"{key} is {plain(value)} now, not {plain(ended.defaults.get(key))}; run `ascar restore`")
    if ended.problem is not None:
        say(f"the session ended early: {ended.problem}")


def print_session(out: Console, ended: SessionOutcome) -> None:
    """Its result for people."""
    out.print(f"session {ended.session} ran for {duration(ended.seconds)}", markup=False)
    changed = {key: value for key, value in ended.setting.items() if ended.defaults.get(key) != value}
    for key, value in sorted(changed.items()):
        out.print(f"  {key} = {plain(value)}   before: {plain(ended.defaults.get(key))}", markup=False)
    if not changed:
        out.print("  no setting did better than the one before", markup=False)
    for line in proof_lines(ended.proof):
        out.print(line, markup=False)
    if ended.kept is not None:
        names = ", ".join(f"{key} = {plain(value)}" for key, value in ended.kept.items()) or "nothing"
        out.print(f"kept until `ascar restore`: {names}", markup=False)
    elif not ended.left_changed:
        out.print("every knob was put back", markup=False)


def proof_lines(proof: Proof | None) -> list[str]:
    """A few lines."""
    from ascar.capes.session.proof import words_of

    if proof is None:
        return []
    pairs = count(proof.pairs, "pair")
    lines = [
        f"baseline {compact(proof.baseline_mean)}, tuned {compact(proof.tuned_mean)}: "
        f"{pairs} of phases, {proof.baseline_ticks} and {proof.tuned_ticks} ticks "
        f"(worth {proof.baseline_samples} and {proof.tuned_samples} independent ones)"
    ]
    gain = words_of(proof)
    if gain is None:
        return [*lines, "there is no interval yet; nothing is claimed"]
    claim = "nothing is claimed" if proof.claim == "none" else proof.claim
    return [*lines, f"{claim}: {gain} at {percentage(proof.confidence, 0)}"]
