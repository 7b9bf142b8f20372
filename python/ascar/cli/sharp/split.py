"""`ascar sharp split`: a rule in parts, so that they can differ."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Along, Json, OneRule, RuleFile

EXAMPLES = examples(
    "ascar sharp split rules.txt > finer.txt",
    "ascar sharp split rules.txt --rule 3 --along pt_ratio",
)
_ALONG = "ack_ewma,send_ewma,pt_ratio"


def split(
    file: RuleFile,
    rule: OneRule = None,
    along: Along = _ALONG,
    json: Json = False,
) -> int:
    """Split a rule at the observed mean of each indicator (Li, algorithm 1, lines 29-30)."""
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import numbered, read
    from ascar.cli.sharp.search_plan import names_in
    from ascar.errors import InputError
    from ascar.results.encode import extended
    from ascar.results.rule_sets import SharpSplitResult
    from ascar.rules import INDICATORS, indicator_numbers
    from ascar.sharp import split as parted
    from ascar.sharp.rule_results import rule_set_result

    rules = read(file)
    at = numbered(rules, rule, file)
    axes = indicator_numbers(names_in(along))
    known = INDICATORS[: len(rules.rules[0].region)]
    if max(axes) >= len(known):
        raise InputError(
            f"--along = {INDICATORS[max(axes)]!r}: {file.name} bounds {', '.join(known)}; "
            "a search with the same --along makes rules that bound it"
        )
    found = parted(rules, at, axes)
    text = found.text()  # refuses what a rule set may not be, such as too many rules
    if json:
        emit("sharp-split", extended(SharpSplitResult, rule_set_result(found), split_rule=at + 1))
    else:
        people().out(text, end="")
    return 0
