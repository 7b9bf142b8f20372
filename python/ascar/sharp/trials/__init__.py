"""Trials of rule sets: the benches that run them, the judge that compares them, the journal of all runs."""
