"""From what the user names to studies and runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from ascar.history import History, Run
    from ascar.study import Study

__all__ = ["find_run", "read_study"]


def read_study(path: Path, budget: str | None = None) -> Study:
    """A study file, with another budget where one is given; everything that can be wrong with it is found now.

    What the study names is constructed once, which touches nothing: a mistake is found before the history, a
    device or a directory is.

    Raises:
        InputError: a key is wrong, or the machine lacks what the study needs.
    """
    from ascar.study import Study, duration

    study = Study.read(path)
    if budget is not None:
        study = msgspec.structs.replace(study, budget_s=duration("--budget", budget))
    return study


def find_run(history: History, named: str) -> Run:
    """The run that a number, a study's name or a study file means; the latest of a study.

    Raises:
        InputError: there is none, or the file is no study.
    """
    from ascar.study import Study

    path = Path(named)
    if path.suffix == ".toml" or "/" in named:
        return history.run(Study.read(path).name)
    return history.run(named)
