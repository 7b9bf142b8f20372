"""`ascar.tune_online`: the online loop from Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ascar.api.showing import ProgressLines
from ascar.capes.session.folder import Folder, sessions_folder
from ascar.capes.session.outcome import SessionRequest
from ascar.capes.session.study import OnlineStudy
from ascar.history import History
from ascar.loops import online
from ascar.study import duration

if TYPE_CHECKING:
    from os import PathLike

    from ascar.results.session import SessionOutcome


def tune_online(
    study: str | PathLike[str],
    *,
    budget: str | None = None,
    prove: bool = False,
    keep: bool = False,
    folder: str | PathLike[str] | None = None,
    progress: bool | None = None,
) -> SessionOutcome:
    """Tune this machine while it works, and put everything back at the end.

    Only the main thread can call it; it returns when the time is over, on ^C, or when a part is given up.

    Args:
        study: a study file with an [online] table.
        budget: the duration of the session, in place of the study's.
        prove: show what the tuning gains, by phases in turns.
        keep: leave the setting that did best in force.
        folder: the folder that keeps the learned state. None uses a folder of the run's name in the user's
            state directory.
        progress: whether progress is shown; None: in a notebook and on a terminal.

    Raises:
        InputError: the study or the machine does not allow it; nothing is left changed.
        Refused: it runs already, or something that it needs is held.
        WorkError: the target cannot be made.
    """
    wanted = OnlineStudy.read(Path(study))
    place = Folder(Path(folder) if folder is not None else sessions_folder() / wanted.session)
    duration_s = wanted.duration_s if budget is None else duration("budget", budget)
    lines = ProgressLines(progress)
    request = SessionRequest(str(study), duration_s, prove, keep)
    with History() as history:
        return online.tune_online(wanted, place, request, history, lines.say)
