"""Schedules of a search for rules: which rule sets are tried next, and which rules are split."""
