"""`ascar library add`: a workload, the rules made for it, and what they gain."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Gain,
    Json,
    LibraryFile,
    LibraryWorkload,
    Name,
    ObjectiveText,
    Pairs,
    RulesOrNone,
)

EXAMPLES = examples(
    "ascar library add random-write --rules rules.txt",
    "ascar library add trace.csv --name nightly-backup --rules rules.txt --gain 0.12",
    "ascar library add scenario.toml --name small-files",
)


def add(
    workload: LibraryWorkload,
    rules: RulesOrNone = None,
    name: Name = None,
    gain: Gain = None,
    objective: ObjectiveText = "throughput",
    pairs: Pairs = 4,
    library: LibraryFile = None,
    json: Json = False,
) -> int:
    """Add a workload with its features, a rule set made for it, and the gain of that.

    Of a scenario the gains of all rule sets of the library are measured. A library only grows.
    """
    from ascar.cli.library.workloads import objective_named, path_of, seen
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import read
    from ascar.errors import InputError
    from ascar.library import GainEntry, Library
    from ascar.render import percent
    from ascar.results.library import LibraryAddResult
    from ascar.sharp import SimulatedBench
    from ascar.sharp.matching import gains

    if gain is not None and rules is None:
        raise InputError("--gain: belongs to rules; name them with --rules")
    wanted = objective_named(objective)
    given = None if rules is None else read(rules)
    named = seen(workload)
    if gain is not None and named.scenario is not None:
        raise InputError("--gain: is measured on a scenario; leave it out")
    with Library.writing(path_of(library)) as kept:
        entry = kept.add_workload(name or named.name, named.features, named.source)
        made = None if given is None else kept.add_rules(given, entry.name, wanted.text, "given")
        if made is not None and gain is not None:
            kept.add_gain(GainEntry(made.id, entry.name, wanted.text, gain))
        if named.scenario is not None:
            ids = [one for one in kept.rules if kept.gain(one, entry.name, wanted.text) is None]
            bench = SimulatedBench(named.scenario, wanted)
            sets = [kept.solutions[one].rule_set for one in ids]
            for one, found in zip(ids, gains(bench, wanted, sets, pairs), strict=True):
                if found is not None:
                    kept.add_gain(
                        GainEntry(
                            one, entry.name, wanted.text, found.mean, found.low, found.high, found.pairs
                        )
                    )
        own = None if made is None else kept.gain(made.id, entry.name, wanted.text)
    if json:
        result = LibraryAddResult(
            workload=entry.name,
            source=entry.source,
            rules=None if made is None else made.id,
            objective=wanted.text,
            gain=None if own is None else own.gain,
            gain_low=None if own is None else own.low,
            gain_high=None if own is None else own.high,
        )
        emit("library-add", result)
        return 0
    out = people()
    out.print(f"workload {entry.name} ({entry.source})", soft_wrap=True, markup=False)
    if made is not None:
        text = "not measured" if own is None else percent(own.gain)
        out.print(f"rules {made.id}: gain {text}", soft_wrap=True, markup=False)
    return 0
