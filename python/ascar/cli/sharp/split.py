"""`ascar sharp split`: a rule in parts, so that they can differ."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Along, Json, OneRule, RuleFile

EXAMPLES = examples(
    "ascar sharp split rules.txt > finer.txt",
    "ascar sharp split rules.txt --rule 3 --along pt_ratio",
)
_AXES = ("ack_ewma", "send_ewma", "pt_ratio")
_ALONG = ",".join(_AXES)


def split(
    file: RuleFile,
    rule: OneRule = None,
    along: Along = _ALONG,
    json: Json = False,
) -> int:
    """Split a rule at the observed mean of each indicator (Li, algorithm 1, lines 29-30)."""
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import numbered, read
    from ascar.errors import InputError
    from ascar.results.encode import extended
    from ascar.results.sharp import SharpSplitResult
    from ascar.sharp import split as parted
    from ascar.sharp.rule_results import rule_set_result

    rules = read(file)
    at = numbered(rules, rule, file)
    names = [name.strip() for name in along.split(",")]
    unknown = [name for name in names if name not in _AXES]
    if unknown:
        raise InputError(f"--along = {unknown[0]!r}: allowed: {', '.join(_AXES)}")
    found = parted(rules, at, [_AXES.index(name) for name in names])
    text = found.text()  # refuses what a rule set may not be, such as too many rules
    if json:
        emit("sharp-split", extended(SharpSplitResult, rule_set_result(found), split_rule=at + 1))
    else:
        people().out(text, end="")
    return 0
