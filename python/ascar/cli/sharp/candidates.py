"""`ascar sharp candidates`: the rule sets that a round of the search tries."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Faithful, Json, OneRule, RuleFile

EXAMPLES = examples(
    "ascar sharp candidates rules.txt --faithful > round1.txt",
    "ascar sharp candidates rules.txt --rule 3",
    "ascar sharp candidates rules.txt --json | jq '.candidates | length'",
)
_FIRST_FAITHFUL = 11


def candidates(
    file: RuleFile,
    rule: OneRule = None,
    faithful: Faithful = False,
    json: Json = False,
) -> int:
    """Print the candidates of a round: the most used rule, or --rule N, with each of its varied actions.

    m, b and tau are changed together, each by steps that grow geometrically (Li, algorithm 1 and table 3.2).
    Each rule set follows a line `# N`, in the format of rule files.
    """
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import numbered, read
    from ascar.results.rule_sets import CandidateAction, SharpCandidatesResult
    from ascar.sharp import candidates as varied
    from ascar.sharp.rule_results import rule_set_result

    rules = read(file)
    at = numbered(rules, rule, file)
    sets = enumerate(varied(rules, at), start=_FIRST_FAITHFUL if faithful else 1)
    if json:
        found = tuple(
            CandidateAction(number=number, m_x100=action.m100, b_x100=action.b100, tau_us=action.tau_us)
            for number, one in sets
            for action in (one.rules[at].action,)
        )
        result = SharpCandidatesResult(base=rule_set_result(rules), varied_rule=at + 1, candidates=found)
        emit("sharp-candidates", result)
        return 0
    out = people()
    for number, one in sets:
        out.out(f"# {number}\n{one.text()}", end="")
    return 0
