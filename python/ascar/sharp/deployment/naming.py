"""What a rule set is called: a digest of its rules, so that the same rules have the same name everywhere."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.rules import RuleSet


def rules_id(rules: RuleSet) -> str:
    """The first 12 hexadecimal digits of SHA-256 of a rule set's text without statistics."""
    return hashlib.sha256(rules.bare().text().encode()).hexdigest()[:12]
