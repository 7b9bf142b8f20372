"""Rule sets that come with the program, found for the presets of the simulated cluster.

`NAME` was searched for with the objective of most throughput, `NAME-even` with tp - stdev (Li, eq. 3.1 with
alpha = 1), `NAME-sizes` by most throughput with 5, 10 and 20 clients (the file server: 5 and 20).
Where no rules were better than the scenario as it is, there are none.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from ascar.errors import InputError
from ascar.rules import RuleSet

__all__ = ["RULESETS", "ruleset"]

_DIRECTORY = Path(__file__).parent
_SHOWN_MAX = 80

RULESETS: tuple[str, ...] = tuple(sorted(path.stem for path in _DIRECTORY.glob("*.rules")))
"""Their names."""


def ruleset(name: str) -> RuleSet:
    """The rule set of a name, without statistics.

    Raises:
        InputError: there is none.
    """
    if name not in RULESETS:
        near = get_close_matches(name[:_SHOWN_MAX], RULESETS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        shown = repr(name[:_SHOWN_MAX])
        raise InputError(f"rule set {shown}: must be one of {', '.join(RULESETS) or 'none'}{hint}")
    return RuleSet.parse((_DIRECTORY / f"{name}.rules").read_text()).bare()
