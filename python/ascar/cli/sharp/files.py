"""Rule files as commands read and print them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascar.pilot.turns import InTurns
    from ascar.sharp import Rule, RuleSet


def read(path: Path) -> RuleSet:
    """The rules of a file, or those of a name that comes with the program; a file of that name goes first.

    Raises:
        InputError: it cannot be read, or is no rule set: the file, the line, the field.
    """
    from ascar.sharp import RuleSet

    return RuleSet.read(Path("/dev/stdin") if str(path) == "-" else located(path), str(path))


def located(path: Path) -> Path:
    """A rule file: that of a path, or where there is none, that of a name that comes with the program."""
    from ascar.sharp import rulesets

    if str(path) in rulesets.RULESETS and not path.exists():
        return Path(rulesets.__file__).with_name(f"{path}.rules")
    return path


def estimates_ready(found: InTurns | None) -> dict[str, float | None]:
    """The gain that a comparison shows, with its limits, ready for JSON; all null where it shows none."""
    from ascar.pilot.turns import ESTIMATES

    if found is None or found.gain is None:
        return dict.fromkeys(ESTIMATES)
    return found.gain.estimates()


def rule_ready(rule: Rule) -> dict[str, Any]:
    """A rule, ready for JSON."""
    names = ("ack_ewma_us", "send_ewma_us", "pt_ratio_x100", "slow_ack_ewma_us", "timeouts_per_1000")
    return {
        "region": {name: [at.lo, at.hi] for name, at in zip(names, rule.region, strict=False)},
        "m_x100": rule.action.m100,
        "b_x100": rule.action.b100,
        "tau_us": rule.action.tau_us,
        "used_times": None if rule.observed is None else rule.observed.used_times,
        "means": None if rule.observed is None else dict(zip(names, rule.observed.means, strict=False)),
    }


def set_ready(rule_set: RuleSet) -> dict[str, Any]:
    """A rule set, ready for JSON."""
    return {
        "updates_per_second": rule_set.updates_per_second,
        "rules": [rule_ready(rule) for rule in rule_set.rules],
    }
