"""SHARP: rules made by machine, by which every client controls its own congestion (Li, chapter 3)."""

from ascar.rules import Action, Interval, Observed, Rule, RuleSet
from ascar.sharp.objectives import FORMS, objective_of
from ascar.sharp.plan import PARTS, SCHEDULES, SearchPlan
from ascar.sharp.rehearsal import rehearsed
from ascar.sharp.rule_search import Found, search
from ascar.sharp.schedules.candidates import Steps, candidates
from ascar.sharp.schedules.splitting import split
from ascar.sharp.trials.bench import Bench, RuleRun, RuleTrial, SimulatedBench
from ascar.sharp.trials.judge import Judge, Judged, SearchLimits, SearchProgress
from ascar.sharp.trials.run_journal import About, Journal
from ascar.sharp.verification import verify

__all__ = [
    "FORMS",
    "PARTS",
    "SCHEDULES",
    "About",
    "Action",
    "Bench",
    "Found",
    "Interval",
    "Journal",
    "Judge",
    "Judged",
    "Observed",
    "Rule",
    "RuleRun",
    "RuleSet",
    "RuleTrial",
    "SearchLimits",
    "SearchPlan",
    "SearchProgress",
    "SimulatedBench",
    "Steps",
    "candidates",
    "objective_of",
    "rehearsed",
    "search",
    "split",
    "verify",
]
