"""Exit statuses: each means the same in every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

DONE: Final = 0
FAILED: Final = 1
BAD_INPUT: Final = 2
NO_DECISION: Final = 3
INTERRUPTED: Final = 130

MEANINGS: Final[Mapping[int, str]] = {
    DONE: 'Done; "the default is fine" is a result too.',
    FAILED: "The work failed.",
    BAD_INPUT: "Bad input: one line names the key, its value and what is allowed; nothing was touched.",
    NO_DECISION: "No decision, or stopped early; results are kept.",
    INTERRUPTED: "Interrupted by ^C, SIGTERM or SIGHUP; everything was put back.",
}

WITHOUT_DECISION: Final[Mapping[str, tuple[str, str]]] = {
    "ascar measure": ("A limit ended the session before its goals were reached.", "reached"),
    "ascar compare": ("Some neighbours in the ranking are neither told apart nor shown equal.", "verdict"),
    "ascar tune": (
        "The best found is neither shown to be better nor shown not to be; or it is shown, and an interrupt "
        "came while it was reduced to what is needed.",
        "verdict.kind",
    ),
    "ascar verify": ("The two are neither told apart nor shown equal.", "verdict.kind"),
    "ascar drift": (
        "What can be read is in force and some of it cannot be read; or with --measure the two are neither "
        "told apart nor shown equal.",
        "in_force",
    ),
    "ascar sweep": ("A limit ended the sweep before every configuration was measured.", "complete"),
    "ascar lab optimizers": ("The budget ended before all runs were made.", "runs_missing"),
    "ascar capes up": ("With --prove: the phases in turns show neither a gain nor a loss.", "proof.claim"),
    "ascar capes control": (
        "With `kill`: a node has not confirmed within --wait that its knobs are back; it is named.",
        "answer.unconfirmed",
    ),
    "ascar capes prove": ("The phases in turns show neither a gain nor a loss.", "claim"),
    "ascar sharp search": (
        "The rules that were found are neither shown to be better nor shown not to be.",
        "verification.kind",
    ),
    "ascar library bootstrap": ("The budget ended before the library was filled.", "complete"),
}
"""Commands that can end without a decision: when they do, and the key of their JSON that says so."""


def decided(is_decided: bool) -> int:
    """The exit status of a command whose results are kept, by whether they decide what was asked."""
    return DONE if is_decided else NO_DECISION
