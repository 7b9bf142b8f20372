"""A system at work whose rules are kept, or on trial above those, as loops see it."""

from __future__ import annotations


class RulesAtWork:
    """Keeps rules and tries others; what its intervals bring is a subclass'.

    Args:
        kept: the rules that it keeps at first.
    """

    def __init__(self, kept):
        self.kept, self.trial, self.time_s = kept, None, 0.0

    def in_force(self):
        return self.kept

    def try_out(self, rules):
        self.trial = rules

    def keep(self):
        self.kept, self.trial = self.trial, None

    def back(self):
        self.trial = None

    def take_off(self):
        self.kept = self.trial = None

    def look_again(self):
        """Nobody else changes them."""

    def observe(self, seconds):
        self.time_s += seconds
        return {"threads": 1.0}

    def passes(self, rules, seconds):
        """An interval under rules that are in force goes by."""
        assert rules == (self.trial or self.kept)
        self.time_s += seconds
