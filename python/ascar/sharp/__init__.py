"""SHARP: rules made by machine, by which every client controls its own congestion (Li, chapter 3)."""

from ascar.sharp.candidates import Steps, candidates
from ascar.sharp.rules import Action, Interval, Observed, Rule, RuleSet
from ascar.sharp.splitting import split

__all__ = ["Action", "Interval", "Observed", "Rule", "RuleSet", "Steps", "candidates", "split"]
