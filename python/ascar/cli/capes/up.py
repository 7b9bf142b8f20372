"""`ascar capes up`: the online loop on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import AllowLive, BudgetOrNone, Detach, Folder, FormatDevices, Json, Keep, Prove, Quiet

if TYPE_CHECKING:
    from ascar.capes.session.study import OnlineStudy

EXAMPLES = examples(
    "ascar capes up examples/capes-localfs.toml",
    "ascar capes up examples/capes-localfs.toml --budget 30min --prove",
    "ascar capes up study.toml --detach          go on without this terminal; `ascar capes down` ends it",
)


def up(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="A study file with an [online] table.")],
    duration: BudgetOrNone = None,
    prove: Prove = False,
    keep: Keep = False,
    detach: Detach = False,
    folder: Folder = None,
    format_device: FormatDevices = None,
    allow_live: AllowLive = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Tune this machine while it works: agent, messages, interface, learner and load as separate processes.

    It ends when its time is over, on ^C, SIGTERM or `ascar capes down`; then every knob stands where it was,
    unless it is to be kept. Whatever is killed, knobs are put back. What was learnt and seen stays in the
    session's folder, and the next start goes on from it.

    Exit status: 0 ended as asked, 1 something was given up, 2 bad input (nothing was touched), 3 neither a
    gain nor a loss is shown by --prove.
    """
    from ascar.threads import compute_on_one_thread

    compute_on_one_thread()
    from ascar.capes.session.folder import Folder, sessions_folder
    from ascar.capes.session.outcome import SessionRequest
    from ascar.cli.capes.up_result import deliver
    from ascar.cli.output import say
    from ascar.cli.statuses import FAILED, decided
    from ascar.cli.studies import Confirmed, read_online_study
    from ascar.history import History
    from ascar.loops.online import tune_online
    from ascar.study import duration as seconds_of

    wanted = read_online_study(study, Confirmed(format_device, allow_live))
    place = Folder(folder if folder is not None else sessions_folder() / wanted.session)
    duration_s = wanted.duration_s if duration is None else seconds_of("--budget", duration)
    request = SessionRequest(str(study), duration_s, prove, keep)
    if detach:
        return _detach(wanted, place)

    def tell(line: str) -> None:
        if not quiet:
            say(f"{wanted.session}: {line}")

    with History() as history:
        ended = tune_online(wanted, place, request, history, tell)
    deliver(ended, as_json=json)
    if ended.problem is not None or ended.left_changed:
        return FAILED
    return decided(not prove or (ended.proof is not None and ended.proof.claim != "none"))


def _detach(study: OnlineStudy, folder: object) -> int:
    """The same command in a session of its own; back as soon as it runs."""
    import sys

    from ascar.capes.session.detached import detach
    from ascar.capes.session.folder import Folder
    from ascar.cli.output import say

    assert isinstance(folder, Folder)
    words = [word for word in sys.argv[1:] if word != "--detach"]
    log = detach(folder, words)
    say(
        f"{study.session}: runs; `ascar capes status {study.session}` shows it, and its messages are in {log}"
    )
    return 0
