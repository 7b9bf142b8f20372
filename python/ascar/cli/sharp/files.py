"""Rule files as commands read and print them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.sharp import RuleSet


def read(path: Path) -> RuleSet:
    """The rules of a file, or those of a name that comes with the program; a file of that name goes first.

    Raises:
        InputError: it cannot be read, or is not a rule set: the file, the line, the field.
    """
    from ascar.sharp import RuleSet

    return RuleSet.read(Path("/dev/stdin") if str(path) == "-" else located(path), str(path))


def numbered(rules: RuleSet, rule: int | None, file: Path) -> int:
    """The place of the rule that --rule names; None: the most used one.

    Raises:
        InputError: there is no such rule.
    """
    from ascar.errors import InputError

    if rule is not None and not 1 <= rule <= len(rules.rules):
        raise InputError(f"--rule = {rule}: {file} has rules 1 to {len(rules.rules)}")
    return rules.hottest() if rule is None else rule - 1


def located(path: Path) -> Path:
    """A rule file: that of a path, or where there is none, that of a name that comes with the program."""
    from ascar.sharp import rulesets

    if str(path) in rulesets.RULESETS and not path.exists():
        return Path(rulesets.__file__).with_name(f"{path}.rules")
    return path
