"""What a study needs to run online: `[guard]` and `[online]`, every key explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.capes.session.study import OnlineSection, ProofSection
from ascar.starter.offline import section, study_text
from ascar.study import study_table

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """\
# A study for both loops.
#
#   ascar tune THIS_FILE         search while nobody else uses the system; needs a [workload]
#   ascar capes up THIS_FILE     tune while it works, until ^C; then every value is what it was before
#   ascar capes up THIS_FILE --budget 1h --prove      what it gains (mode = "automatic")
#
# "# text" explains; "#key = value" is a key that is left out, with its default or an example.
"""
_METRIC = """\
# What the objective is made from: indicators, * for anything; sum, mean, max or min of them.
# Once the session ran, `ascard agent --config agent.toml --once` in its folder prints all that there are.
# Bytes also count for work that nobody waits for: where you can, take what an application says of itself.
[[online.metric]]
name = "throughput_bytes_per_s"
indicators = ["block.*.read_bytes_per_s", "block.*.write_bytes_per_s"]
aggregate = "sum"
"""
_WITHOUT_LOAD = """\
# A session needs no load of ascar's: it tunes under the load that is there.
"""


def online_study_text(kind: str) -> str:
    """A study file for a kind of target, for both loops.

    Raises:
        StudyError: no such kind.
        EnvironmentLacks: its package cannot be imported.
    """
    text = study_text(kind, online=True)
    own_load = "[workload]" not in text
    _, _, body = text.partition("\n\n")
    tables = "\n".join(_without_own_load(body)) + "\n"
    has_load = "workload" in study_table(tables)
    metric = "" if has_load or own_load else _METRIC
    if metric:
        tables = tables.replace("maximize throughput_ops_per_s", "maximize throughput_bytes_per_s")
    return "\n".join(
        part
        for part in (
            _HEAD,
            tables,
            section("online", OnlineSection, {"mode": '"observe"'}, ("metric", "proof")),
            metric,
            section("online.proof", ProofSection, {}),
        )
        if part
    )


def _without_own_load(text: str) -> Iterator[str]:
    """The lines of a study; a load that the user would have to write is left out."""
    is_out = False
    for line in text.splitlines():
        if line.startswith("["):
            is_out = False
        if line == "[workload]" and 'kind = "command"' in text:
            is_out = True
            yield from _WITHOUT_LOAD.splitlines()
        yield f"#{line}" if is_out and line and not line.startswith("#") else line
