"""`ascar testbed up`: start a testbed."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json, Quiet, TestbedFilePath

EXAMPLES = examples(
    "ascar testbed up examples/testbed/contended-disk.toml",
    "ascar testbed up testbed.toml --json | jq -r '.disks[].uris[]'",
)


def up(file: TestbedFilePath, quiet: Quiet = False, json: Json = False) -> int:
    """Start the nodes, disks, proxies, agents and links of a testbed file; back when all of them are ready.

    A process in the background holds them. `ascar testbed down` ends it; whatever else ends it, even SIGKILL,
    ends all of them too, and removes what they had on this machine. What an earlier run that was killed has
    left is removed first.
    """
    from ascar.cli.output import emit, say
    from ascar.cli.progress_line import AFTER_TWO_SECONDS, progress_line
    from ascar.render import count
    from ascar.results.encode import extended
    from ascar.results.testbed import TestbedUpResult
    from ascar.testbed.control import start_testbed
    from ascar.testbed.file import read_testbed

    wanted = read_testbed(file)

    def words(stage: str) -> str:
        return f"{wanted.name}: {stage}"

    with progress_line(words, first_s=AFTER_TWO_SECONDS, quiet=quiet) as tell:
        found = start_testbed(wanted, file, tell)
    if json:
        emit("testbed-up", extended(TestbedUpResult, found))
    elif not quiet:
        has = ", ".join(
            count(len(all_of_kind), kind)
            for kind, all_of_kind in (("node", found.nodes), ("disk", found.disks), ("agent", found.agents))
            if all_of_kind
        )
        say(f"{wanted.name}: is up: {has}; `ascar testbed down {wanted.name}` ends it")
    return 0
